"""The name of the table of a topic, when each topic has a table of its own.

The rule: `{topic}` stands for the topic's name. In a path that is all. In the name of a catalog's
table, where dots part the names, the part with `{topic}` is quoted if the topic's name asks for it.
"""

from __future__ import annotations

import re

TOPIC_PLACE = "{topic}"
_PLAIN_NAME = re.compile(r"\w+")


def table_of_topic(table: str, topic: str) -> str:
    """Return the table of a topic.

    Args:
        table: What the user has named: a path, a URL, or a name in a catalog.
        topic: The name of the topic.
    """
    if "/" in table:
        return table.replace(TOPIC_PLACE, topic)
    return ".".join(_named(part, topic) for part in table.split("."))


def _named(part: str, topic: str) -> str:
    if TOPIC_PLACE not in part:
        return part
    name = part.replace(TOPIC_PLACE, topic)
    is_quoted = "`" in part
    return name if is_quoted or _PLAIN_NAME.fullmatch(name) else f"`{name}`"
