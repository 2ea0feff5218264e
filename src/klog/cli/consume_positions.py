"""Where `klog consume` starts and stops: the values of `-o` and `--offset`, resolved to offsets.

`earliest` and `latest` are the console consumer's; `beginning`, `end`, `-N`, `s@` and `e@` are
kcat's. There are no records before the log start or after the last record, so a time later than
every record means the end. Only a plain offset must be in the log.
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


def parse_position(text: str) -> Position:
    """Parse the value of one `-o`. Raises `ValueError`."""
    word = _WORDS.get(text.lower())
    if word is not None:
        return Position(word)
    match = _NUMBER.fullmatch(text)
    if match is None:
        raise ValueError(
            "must be one of earliest, beginning, latest, end, N, -N, s@MILLISECONDS, "
            f"e@MILLISECONDS, got {text!r}"
        )
    sign, number, edge, time = match.groups()
    return Position(_NUMBERS[edge or sign], int(time or number))


def window(positions: Iterable[Position]) -> tuple[Position, Position]:
    """Return the start and the end; by default earliest and latest. Raises `ValueError`."""
    starts = [position for position in positions if position.word != "until"]
    ends = [position for position in positions if position.word == "until"]
    if len(starts) > 1 or len(ends) > 1:
        raise ValueError("--offset: give at most one start and one end (e@...)")
    return (starts or [EARLIEST])[0], (ends or [LATEST])[0]


def offset_at(position: Position, log: PartitionSnapshot, latest: int) -> int:
    """Resolve a position to an offset. `latest` is where the reader's isolation level stops.

    Raises `OffsetOutOfRangeError` for an offset that the log does not hold.
    """
    if position.word == "earliest":
        return log.log_start
    if position.word == "last":
        return max(log.log_start, latest - position.number)
    if position.word in ("since", "until"):
        offset = log.offset_for_time(position.number, latest)
        return latest if offset is None else offset
    if position.word == "offset":
        if not log.log_start <= position.number <= log.log_end:
            raise OffsetOutOfRangeError(
                f"{log.name}: offset {position.number} is out of range; the log has "
                f"{log.log_start} to {log.log_end}. Give one --partition, or start at -o beginning"
            )
        return position.number
    return latest
