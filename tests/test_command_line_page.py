"""docs/command-line.md has every verb and option; `make command-line` writes them."""

from __future__ import annotations

from tools.command_line_page import PAGE, command_line_page


def test_page_has_the_verbs_and_options_of_the_parser() -> None:
    text = PAGE.read_text()
    assert text == command_line_page(text), "run: make command-line"
