"""docs/options.md is the table of options; `make options` writes it."""

from __future__ import annotations

from tools.options_page import PAGE, options_page


def test_page_is_the_table_of_options() -> None:
    assert PAGE.read_text() == options_page(), "run: make options"
