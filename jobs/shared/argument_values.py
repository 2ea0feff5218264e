"""What the options of every verb and job script have in common: `NAME=VALUE`, durations, one value.

The rule: an option that takes one value is refused when it is repeated, as Kafka's tools do. The
values before the last would be ignored without a word.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence

_UNITS_MS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_DURATION = re.compile(r"(?P<number>[0-9]{1,12})(?P<unit>ms|s|m|h|d)")
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


def duration_ms(text: str) -> int:
    """Parse a duration such as `24h`, `90m`, `30s`, `500ms` or `7d`.

    Args:
        text: A number and a unit: `ms`, `s`, `m`, `h` or `d`.

    Raises:
        argparse.ArgumentTypeError: The text is not a duration.
    """
    match = _DURATION.fullmatch(text.strip())
    if match is None:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a duration; examples: 24h, 90m, 30s, 500ms, 7d"
        )
    return int(match["number"]) * _UNITS_MS[match["unit"]]
