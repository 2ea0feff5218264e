"""Write the table of docs/migrating.md from the differences that are tested: `make migrating`.

The rule: the page lists the differences that the tests expect
(`tests/kafka/two_sources/meant_differences.py`), because it is made of that table. The rest of the
page is written by hand. A test holds the page to this module.
"""

from __future__ import annotations

from pathlib import Path

from tests.kafka.two_sources.meant_differences import MEANT

PAGE = Path(__file__).parents[1] / "docs" / "migrating.md"
_BEGIN = "<!-- `make migrating` writes this table. -->\n"
_END = "<!-- The rest is written by hand. -->\n"


def migrating_page(text: str) -> str:
    """Return the text of docs/migrating.md with its table as the tests have it.

    Args:
        text: The present page.
    """
    before, rest = text.split(_BEGIN)
    _, after = rest.split(_END)
    return f"{before}{_BEGIN}\n{difference_table()}\n{_END}{after}"


def difference_table() -> str:
    """Return the differences as a table of Markdown."""
    rows = [("Kafka option", "klog option", "difference"), ("---", "---", "---")]
    rows += [(row.kafka_option, row.klog_option, row.difference) for row in MEANT]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


if __name__ == "__main__":
    PAGE.write_text(migrating_page(PAGE.read_text()))
