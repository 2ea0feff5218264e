"""Leader epochs of a partition: which epoch starts at which offset (docs/format.md, 12).

The rule: epochs and start offsets both rise strictly. An entry that contradicts entries before it
replaces them. `leader-epoch-checkpoint` holds these entries. (Kafka's `LeaderEpochFileCache`.)
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from klog.logformat.batches.record_batch import UNSET, Batches


@dataclass(frozen=True, slots=True, order=True)
class EpochEntry:
    """An epoch and the offset at which it starts."""

    epoch: int
    start_offset: int


@dataclass(frozen=True, slots=True)
class LeaderEpochs:
    """Entries in order. A value: each change returns another one."""

    entries: tuple[EpochEntry, ...] = ()

    @property
    def latest_epoch(self) -> int:
        """Return the latest epoch, -1 without entries."""
        return self.entries[-1].epoch if self.entries else UNSET

    def assign_all(self, starts: Iterable[tuple[int, int]]) -> LeaderEpochs:
        """Return the entries after epochs have started; linear in their number.

        The latest epoch keeps its start offset unless the new one is lower.

        Args:
            starts: (epoch, start offset), one after the other.

        Raises:
            ValueError: For a negative epoch or offset.
        """
        entries = list(self.entries)
        for epoch, start_offset in starts:
            if epoch < 0 or start_offset < 0:
                raise ValueError(
                    f"leader epoch {epoch} at offset {start_offset}: must not be negative"
                )
            if entries and entries[-1].epoch == epoch and start_offset >= entries[-1].start_offset:
                continue
            while entries and (
                entries[-1].epoch >= epoch or entries[-1].start_offset >= start_offset
            ):
                entries.pop()
            entries.append(EpochEntry(epoch, start_offset))
        return LeaderEpochs(tuple(entries))

    def assign_batches(self, batches: Batches) -> LeaderEpochs:
        """Return the entries after batches were appended.

        A batch starts an epoch if its epoch is above the latest one and above that of all batches
        before it.

        Args:
            batches: The next batches of the log.
        """
        epochs = batches.headers["leader_epoch"].astype(np.int64)
        epochs_before = np.maximum.accumulate(np.append(self.latest_epoch, epochs))[:-1]
        rises = np.flatnonzero(epochs > epochs_before)
        start_offsets = batches.base_offsets[rises].tolist()
        return self.assign_all(zip(epochs[rises].tolist(), start_offsets, strict=True))

    def truncate_from_start(self, offset: int) -> LeaderEpochs:
        """Return the entries of a log that starts at `offset`.

        Args:
            offset: The log start; the epoch that it was written in starts there.
        """
        started = [entry for entry in self.entries if entry.start_offset <= offset]
        if not started:
            return self
        first = EpochEntry(started[-1].epoch, offset)
        return LeaderEpochs((first, *self.entries[len(started) :]))


NO_EPOCHS = LeaderEpochs()
