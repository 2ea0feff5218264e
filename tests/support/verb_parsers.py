"""The parsers of all verbs, by the words that select them, such as `topics create`."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from klog.cli.command_line import command_line


def _verbs(
    parser: argparse.ArgumentParser, name: str = ""
) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    verbs = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    for action in verbs:
        for verb, verb_parser in action.choices.items():
            yield from _verbs(verb_parser, f"{name} {verb}".strip())
    if not verbs:
        yield name, parser


VERBS = dict(_verbs(command_line()))
