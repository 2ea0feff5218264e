"""Leader epochs of a partition: which epoch began at which offset (docs/format.md, 12).

Epochs and start offsets both rise strictly: an entry that does not fit behind the others takes the
place of those it contradicts. This is what `leader-epoch-checkpoint` holds, and how a follower
learns where its log parts from the leader's. (Kafka's `LeaderEpochFileCache`.)
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import dataclass

MAX_EPOCH = (1 << 31) - 1
UNDEFINED = -1
"""An epoch, or an offset, that is not known."""


@dataclass(frozen=True, slots=True, order=True)
class EpochEntry:
    """An epoch and the offset at which it began."""

    epoch: int
    start_offset: int


@dataclass(frozen=True, slots=True)
class LeaderEpochs:
    """Entries in order. A value: each change gives another one."""

    entries: tuple[EpochEntry, ...] = ()

    @property
    def latest_epoch(self) -> int:
        """Give the latest epoch, `UNDEFINED` if there is none."""
        return self.entries[-1].epoch if self.entries else UNDEFINED

    @property
    def earliest(self) -> EpochEntry | None:
        """Give the first entry, None if there is none."""
        return self.entries[0] if self.entries else None

    def assign(self, epoch: int, start_offset: int) -> LeaderEpochs:
        """Let `epoch` begin at `start_offset`; entries that contradict this go.

        The latest epoch keeps its start unless the new one is lower. Raises `ValueError` for a
        negative epoch or offset.
        """
        return self.assign_all([(epoch, start_offset)])

    def assign_all(self, starts: Iterable[tuple[int, int]]) -> LeaderEpochs:
        """Do as `assign` for one (epoch, start offset) after the other, in linear time."""
        entries = list(self.entries)
        for epoch, start in starts:
            if epoch < 0 or start < 0:
                raise ValueError(f"leader epoch {epoch} at offset {start}: neither is negative")
            if entries and entries[-1].epoch == epoch and start >= entries[-1].start_offset:
                continue
            while entries and (entries[-1].epoch >= epoch or entries[-1].start_offset >= start):
                entries.pop()
            entries.append(EpochEntry(epoch, start))
        return LeaderEpochs(tuple(entries))

    def end_offset_for(self, epoch: int, log_end: int) -> tuple[int, int]:
        """Give the greatest epoch up to `epoch` and the offset at which the next one begins.

        That is `log_end` for the latest epoch; (`UNDEFINED`, `UNDEFINED`) for an epoch beyond it.
        """
        if epoch == UNDEFINED or epoch > self.latest_epoch:
            return UNDEFINED, UNDEFINED
        if epoch == self.latest_epoch:
            return epoch, log_end
        above = bisect_right(self._epochs(), epoch)
        found = self.entries[above - 1].epoch if above else epoch
        return found, self.entries[above].start_offset

    def epoch_for(self, offset: int) -> int:
        """Give the epoch in which an offset was written, `UNDEFINED` if it lies before all."""
        below = bisect_right([entry.start_offset for entry in self.entries], offset)
        return self.entries[below - 1].epoch if below else UNDEFINED

    def previous(self, epoch: int) -> EpochEntry | None:
        """Give the entry of the greatest epoch below `epoch`, None if there is none."""
        at = bisect_left(self._epochs(), epoch)
        return self.entries[at - 1] if at else None

    def next(self, epoch: int) -> EpochEntry | None:
        """Give the entry of the smallest epoch above `epoch`, None if there is none."""
        at = bisect_right(self._epochs(), epoch)
        return self.entries[at] if at < len(self.entries) else None

    def truncate_from_end(self, offset: int) -> LeaderEpochs:
        """Drop the entries that begin at or behind `offset`; `UNDEFINED` drops none."""
        if offset < 0:
            return self
        return LeaderEpochs(tuple(e for e in self.entries if e.start_offset < offset))

    def truncate_from_start(self, offset: int) -> LeaderEpochs:
        """Let the log begin at `offset`: the epoch that was current there begins there."""
        passed = [entry for entry in self.entries if entry.start_offset <= offset]
        if not passed:
            return self
        first = EpochEntry(passed[-1].epoch, offset)
        return LeaderEpochs((first, *self.entries[len(passed) :]))

    def _epochs(self) -> list[int]:
        return [entry.epoch for entry in self.entries]


NO_EPOCHS = LeaderEpochs()
