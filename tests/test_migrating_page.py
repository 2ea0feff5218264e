"""docs/migrating.md has the table of tested differences; `make migrating` writes it."""

from __future__ import annotations

from tools.migrating_page import PAGE, migrating_page


def test_page_has_the_table_of_differences() -> None:
    text = PAGE.read_text()
    assert text == migrating_page(text), "run: make migrating"
