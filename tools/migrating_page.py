"""Write the table of docs/migrating.md from the differences that are tested: `make migrating`.

The rule: the page lists the differences that the tests expect
(`tests/kafka/two_sources/meant_differences.py`), because it is made of that table. The rest of the
page is written by hand. A test holds the page to this module.
"""

from __future__ import annotations

from pathlib import Path

from tests.kafka.two_sources.meant_differences import MEANT
from tools.generated_part import markdown_table, with_generated_part

PAGE = Path(__file__).parents[1] / "docs" / "migrating.md"


def migrating_page(text: str) -> str:
    """Return the text of docs/migrating.md with its table as the tests have it.

    Args:
        text: The present page.
    """
    return with_generated_part(text, "migrating", difference_table())


def difference_table() -> str:
    """Return the differences as a table of Markdown."""
    return markdown_table(
        ("Kafka option", "klog option", "difference"),
        ((row.kafka_option, row.klog_option, row.difference) for row in MEANT),
    )


if __name__ == "__main__":
    PAGE.write_text(migrating_page(PAGE.read_text()))
