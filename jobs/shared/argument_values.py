"""Values that options of many verbs take: numbers, patterns, `NAME=VALUE`, durations.

The rule: an option that takes one value is refused when it is repeated, as Kafka's tools do. The
values before the last would be ignored without a word.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Sequence

MAX_INT = (1 << 31) - 1
MAX_LONG = (1 << 63) - 1
_WHOLE = re.compile(r"-?[0-9]{1,19}")
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


def whole_number(quantity: str, minimum: int = 0, maximum: int = MAX_LONG) -> Callable[[str], int]:
    """Return an argparse type for a whole number in ASCII digits.

    Args:
        quantity: What the number counts, for the error: "a number of bytes".
        minimum: The least number.
        maximum: The greatest number.

    Returns:
        The type; it raises `argparse.ArgumentTypeError`.
    """
    bounds = f"from {minimum}" if maximum == MAX_LONG else f"from {minimum} to {maximum}"

    def parse(text: str) -> int:
        if _WHOLE.fullmatch(text) is None or not minimum <= int(text) <= maximum:
            raise argparse.ArgumentTypeError(f"must be {quantity} {bounds}, got {text!r}")
        return int(text)

    return parse


def topic_pattern(text: str) -> re.Pattern[str]:
    """Compile patterns of topic names; a comma is "or", as in Kafka's tools.

    Args:
        text: A regular expression, or several with commas between them.

    Raises:
        argparse.ArgumentTypeError: It is not a regular expression.
    """
    try:
        return re.compile(text.strip().replace(",", "|"))
    except re.error as exc:
        raise argparse.ArgumentTypeError(
            f"must be a regular expression, got {text!r}: {exc}"
        ) from exc


PARTITION = whole_number("the number of a partition,", 0, MAX_INT)
MILLISECONDS = whole_number("a number of milliseconds", 0, MAX_INT)


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


def names_with_commas(text: str) -> list[str]:
    """Split names at commas, which no topic's name has.

    Args:
        text: The names.

    Raises:
        argparse.ArgumentTypeError: A name is empty.
    """
    names = [name.strip() for name in text.split(",")]
    if not all(names):
        raise argparse.ArgumentTypeError(f"must be names with commas between them, got {text!r}")
    return names


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
