"""Where `klog consume` starts and stops: the words of `-o` and `--offset`, resolved to offsets.

`earliest` and `latest` are the console consumer's, `beginning`, `end`, `-N`, `s@` and `e@` kcat's.
What lies before the log start or behind the last record is not there to print, so a time later
than every record is the end; only a plain offset has to be in the log.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from klog.connector.snapshot import PartitionSnapshot
from klog.errors import OffsetOutOfRangeError

Word: TypeAlias = Literal["earliest", "latest", "offset", "last", "since", "until"]

_WORDS: dict[str, Word] = {
    "earliest": "earliest",
    "beginning": "earliest",
    "latest": "latest",
    "end": "latest",
}
_NUMBERS: dict[str, Word] = {"": "offset", "-": "last", "s@": "since", "e@": "until"}
_NUMBER = re.compile(r"(-|)([0-9]{1,19})|([se]@)(-?[0-9]{1,19})")


@dataclass(frozen=True, slots=True)
class Position:
    """A place in a log: `number` is an offset, a count of offsets, or a time in ms."""

    word: Word
    number: int = 0


EARLIEST, LATEST = Position("earliest"), Position("latest")


def position(text: str) -> Position:
    """Parse one `-o`. Raises `ValueError`."""
    word = _WORDS.get(text.lower())
    if word is not None:
        return Position(word)
    found = _NUMBER.fullmatch(text)
    if found is None:
        raise ValueError(
            f"{text!r} is none of earliest, beginning, latest, end, N, -N, s@MILLISECONDS, "
            "e@MILLISECONDS"
        )
    sign, number, edge, time = found.groups()
    return Position(_NUMBERS[edge or sign], int(time or number))


def window(positions: Iterable[Position]) -> tuple[Position, Position]:
    """Give start and end of several `-o`, from earliest to latest. Raises `ValueError`."""
    starts = [one for one in positions if one.word != "until"]
    ends = [one for one in positions if one.word == "until"]
    if len(starts) > 1 or len(ends) > 1:
        raise ValueError("give one start and one end (e@...)")
    return (starts or [EARLIEST])[0], (ends or [LATEST])[0]


def offset_at(place: Position, log: PartitionSnapshot, latest: int) -> int:
    """Resolve a position. `latest` is where the reader's isolation level stops.

    Raises `OffsetOutOfRangeError` for an offset that the log does not hold.
    """
    if place.word == "earliest":
        return log.log_start
    if place.word == "last":
        return max(log.log_start, latest - place.number)
    if place.word in ("since", "until"):
        found = log.offset_for_time(place.number, latest)
        return latest if found is None else found
    if place.word == "offset":
        if not log.log_start <= place.number <= log.log_end:
            raise OffsetOutOfRangeError(
                f"{log.name}: offset {place.number} is out of range, the log holds "
                f"{log.log_start} to {log.log_end}; name one --partition, or start at -o beginning"
            )
        return place.number
    return latest
