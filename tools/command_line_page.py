"""Write the verbs of docs/command-line.md from klog's own parser: `make command-line`.

The rule: the page has every verb with every option, because it is made of the parser. The rest of
the page is written by hand. A test holds the page to this module.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

from klog.cli.command_line import command_line
from tools.generated_part import markdown_table, with_generated_part

PAGE = Path(__file__).parents[1] / "docs" / "command-line.md"


def command_line_page(text: str) -> str:
    """Return the text of docs/command-line.md with the verbs that the parser has.

    Args:
        text: The present page.
    """
    return with_generated_part(text, "command-line", "\n".join(_sections("klog", command_line())))


def _sections(words: str, parser: argparse.ArgumentParser) -> Iterator[str]:
    """Return a section for each verb, or for each action of a verb that has some."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for choice in action._choices_actions:
                inner = action.choices[choice.dest]
                verb = f"{words} {choice.dest}"
                if inner._subparsers is None:
                    yield _section(verb, choice.help or "", inner)
                else:
                    yield from _sections(verb, inner)


def _section(verb: str, summary: str, parser: argparse.ArgumentParser) -> str:
    rows = [
        (_name(action), _help(action))
        for action in parser._actions
        if not isinstance(action, argparse._HelpAction) and action.help is not argparse.SUPPRESS
    ]
    section = f"### {verb}\n\n{summary[0].upper()}{summary[1:]}.\n"
    if rows:
        section += "\n" + markdown_table(("option", "meaning"), rows)
    if parser.epilog:
        section += f"\n```text\n{parser.epilog.strip()}\n```\n"
    return section


def _name(action: argparse.Action) -> str:
    """Return how an option is typed, its long name first; of a plain argument its name."""
    names = sorted(action.option_strings, key=len, reverse=True)
    if not names:
        return f"`{action.metavar or action.dest}`"
    value = _value(action)
    longest, *shorter = names
    first = f"`{longest} {value}`" if value else f"`{longest}`"
    return ", ".join([first, *(f"`{name}`" for name in shorter)])


def _value(action: argparse.Action) -> str:
    if action.nargs == 0:
        return ""
    if action.metavar is not None:
        return str(action.metavar)
    if action.choices is not None:
        return " or ".join(map(str, action.choices))
    return action.dest.upper()


def _help(action: argparse.Action) -> str:
    text = (action.help or "") % {**vars(action), "prog": "klog"}
    needed = "required; " if action.required and action.option_strings else ""
    return f"{needed}{text}".replace("|", r"\|")


if __name__ == "__main__":
    PAGE.write_text(command_line_page(PAGE.read_text()))
