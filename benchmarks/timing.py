"""Time several pieces of work in turns and compare them within each turn.

The rule: A B C A B C, so that whatever else the machine does meets all of them; a ratio is taken
within a round and then the median over rounds. One round before the first is not counted.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TypeAlias

Work: TypeAlias = Callable[[], int]
"""Does the work once and returns its number of records."""


@dataclass(frozen=True, slots=True)
class Spread:
    """The median over rounds, and the lowest and highest of them."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """Return the spread of the values of all rounds."""
        return cls(median(values), min(values), max(values))

    def __str__(self) -> str:
        """Return the median, and the range in brackets."""
        return f"{self.median:.2f} ({self.low:.2f} to {self.high:.2f})"


@dataclass(frozen=True, slots=True)
class Times:
    """The records of each piece of work, and its seconds in each round."""

    records: dict[str, int]
    seconds: dict[str, list[float]]

    def median_seconds(self, name: str) -> float:
        """Return the median time in seconds."""
        return median(self.seconds[name])

    def rate(self, name: str) -> float:
        """Return the records a second of the median time."""
        return self.records[name] / self.median_seconds(name)

    def ratio(self, name: str, other: str, fixed: str | None = None) -> Spread:
        """Compare the rates of two pieces of work round by round; above 1, `name` is faster.

        `fixed` names a piece of work whose time is taken off both first.
        """
        ratios = []
        for index, (mine, theirs) in enumerate(
            zip(self.seconds[name], self.seconds[other], strict=True)
        ):
            off = self.seconds[fixed][index] if fixed else 0.0
            faster = (theirs - off) / (mine - off) if mine > off else float("nan")
            ratios.append(faster * self.records[name] / self.records[other])
        return Spread.of(ratios)


def interleaved(
    works: Mapping[str, Work],
    rounds: int,
    clock: Callable[[], float],
    prepare: Callable[[], object] = gc.collect,
) -> Times:
    """Run every piece of work once a round; `clock` returns seconds, `prepare` is not timed."""
    records = {name: work() for name, work in works.items()}
    seconds: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(rounds):
        for name, work in works.items():
            prepare()
            began = clock()
            work()
            seconds[name].append(clock() - began)
    return Times(records, seconds)
