"""What a broker asks its leader epochs, as it truncates a log or answers a follower.

Kafka's `LeaderEpochFileCache`; `LeaderEpochs` has the rest (docs/format.md, 12).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right

from klog.logformat.broker_files.leader_epochs import EpochEntry, LeaderEpochs

UNDEFINED = -1
"""An epoch, or an offset, that is not known."""


def assign(epochs: LeaderEpochs, epoch: int, start_offset: int) -> LeaderEpochs:
    """Start an epoch at an offset."""
    return epochs.assign_all([(epoch, start_offset)])


def end_offset_for(epochs: LeaderEpochs, epoch: int, log_end: int) -> tuple[int, int]:
    """Return the greatest epoch up to `epoch` and the offset at which the next one starts.

    That is `log_end` for the latest epoch; (`UNDEFINED`, `UNDEFINED`) for an epoch above it.
    """
    if epoch == UNDEFINED or epoch > epochs.latest_epoch:
        return UNDEFINED, UNDEFINED
    if epoch == epochs.latest_epoch:
        return epoch, log_end
    number = bisect_right(_epochs(epochs), epoch)
    floor = epochs.entries[number - 1].epoch if number else epoch
    return floor, epochs.entries[number].start_offset


def epoch_for(epochs: LeaderEpochs, offset: int) -> int:
    """Return the epoch in which an offset was written, `UNDEFINED` before all entries."""
    number = bisect_right([entry.start_offset for entry in epochs.entries], offset)
    return epochs.entries[number - 1].epoch if number else UNDEFINED


def previous_entry(epochs: LeaderEpochs, epoch: int) -> EpochEntry | None:
    """Return the entry of the greatest epoch below `epoch`."""
    number = bisect_left(_epochs(epochs), epoch)
    return epochs.entries[number - 1] if number else None


def next_entry(epochs: LeaderEpochs, epoch: int) -> EpochEntry | None:
    """Return the entry of the smallest epoch above `epoch`."""
    number = bisect_right(_epochs(epochs), epoch)
    return epochs.entries[number] if number < len(epochs.entries) else None


def truncate_from_end(epochs: LeaderEpochs, offset: int) -> LeaderEpochs:
    """Drop the entries that start at or after `offset`; `UNDEFINED` drops none."""
    if offset < 0:
        return epochs
    return LeaderEpochs(tuple(entry for entry in epochs.entries if entry.start_offset < offset))


def _epochs(epochs: LeaderEpochs) -> list[int]:
    return [entry.epoch for entry in epochs.entries]
