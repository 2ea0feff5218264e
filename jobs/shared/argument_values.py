"""What the options of every verb and job script have in common: `NAME=VALUE`, and one value each.

The rule: an option that takes one value is refused when it is repeated, as Kafka's tools do. The
values before the last would be ignored without a word.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

_SET_OPTIONS = "set options"
"""In a namespace: the options that the command line has set so far."""


class StoreOnce(argparse._StoreAction):
    """argparse's action for one value, which refuses a second one."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[object] | None,
        option_string: str | None = None,
    ) -> None:
        """Store the value. Raises `ArgumentError` if the option has one already."""
        set_options: frozenset[str] = getattr(namespace, _SET_OPTIONS, frozenset())
        if option_string is not None and self.dest in set_options:
            raise argparse.ArgumentError(self, "takes one value. Give the option only once")
        setattr(namespace, _SET_OPTIONS, set_options | {self.dest})
        setattr(namespace, self.dest, values)


def refuse_repeats(parser: argparse.ArgumentParser) -> None:
    """Make a parser refuse options with one value that are repeated.

    Args:
        parser: The parser, before it gets options.
    """
    for action in (None, "store"):  # argparse looks up None for an option without `action`.
        parser.register("action", action, StoreOnce)


def name_and_value(text: str) -> tuple[str, str]:
    """Split `name=value`.

    Args:
        text: The text.

    Returns:
        The name and the value; spaces around the name are dropped.

    Raises:
        argparse.ArgumentTypeError: The text has no `=` or no name.
    """
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE")
    return name.strip(), value
