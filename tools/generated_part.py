"""The part of a page that a task of `make` writes; the rest of the page is written by hand.

The rule: two marks in the page enclose the part, and the first one names the task. A test holds the
page to the module that writes it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

_END = "<!-- The rest is written by hand. -->\n"


def with_generated_part(text: str, task: str, part: str) -> str:
    """Return a page with its generated part replaced.

    Args:
        text: The present page.
        task: The task of `make` that writes the part.
        part: The new part, in Markdown.
    """
    begin = f"<!-- `make {task}` writes this part. -->\n"
    before, rest = text.split(begin)
    _, after = rest.split(_END)
    return f"{before}{begin}\n{part}\n{_END}{after}"


def markdown_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of Markdown.

    Args:
        columns: The names of the columns.
        rows: As many cells in each.
    """
    lines = [columns, ["---"] * len(columns), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
