"""The name of the table of a topic, when each topic has a table of its own.

The rule: `{topic}` stands for the topic's name. In a path that is all. In the name of a catalog's
table dots part the names, and a topic's name may have some: the part with `{topic}` is quoted.
"""

from __future__ import annotations

import re

TOPIC_PLACE = "{topic}"
_PARTS = re.compile(r"`[^`]*`|[^.`]+|.")
"""Of the name of a table: quoted ones, others, and what is between."""


def table_of_topic(table: str, topic: str) -> str:
    """Return the table of a topic.

    Args:
        table: What the user has named: a path, a URL, or a name in a catalog.
        topic: The name of the topic.
    """
    if "/" in table:
        return table.replace(TOPIC_PLACE, topic)
    return "".join(_named(part, topic) for part in _PARTS.findall(table))


def _named(part: str, topic: str) -> str:
    if TOPIC_PLACE not in part:
        return part
    name = part.replace(TOPIC_PLACE, topic)
    return name if part.startswith("`") else f"`{name}`"
