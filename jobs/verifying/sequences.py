"""Sequences of producers in a partition: no gap and no double for each producer id and epoch.

The rule: sequences of a producer id and epoch begin at 0 and each batch follows the one before it;
behind 2147483647 comes 0. Where what lay directly before a batch is not there (deleted, damaged,
compacted away), its sequence may be any above the last one seen: it never goes back.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np

from klog.logformat import batch as v2
from klog.logformat.index import Longs, Mask
from klog.logformat.sequence import MAX_SEQUENCE

_MOST_AHEAD = 1 << 30
"""A sequence that is further ahead than this lies behind: half of what there are."""


@dataclass(frozen=True, slots=True)
class Runs:
    """Batches of one producer id and epoch that follow each other, a row each, in the log's order.

    `first` and `last` are sequences. `offset` is the first one, of the log; `position` that of its
    batch in the file with number `file`. `loose` says that what lay before it is not known.
    """

    producer_id: Longs
    epoch: Longs
    first: Longs
    last: Longs
    offset: Longs
    position: Longs
    file: Longs
    loose: Mask

    def __len__(self) -> int:
        """Give the number of runs."""
        return len(self.first)

    def where(self, chosen: Mask | Longs) -> Runs:
        """Keep rows by mask or by number."""
        return Runs(*(getattr(self, each.name)[chosen] for each in fields(self)))

    def loose_at(self, offset: int) -> Runs:
        """Mark the run that begins at an offset."""
        return replace(self, loose=self.loose | (self.offset == offset))

    def of_file(self, number: int) -> Runs:
        """Say in which file these runs lie."""
        return replace(self, file=np.full(len(self), number, np.int64))


def runs_of(batches: v2.Batches, loose: Mask, position: int, shift: int) -> Runs:
    """Give the runs of some batches; `position` is that of the buffer in its file."""
    headers = batches.headers
    first = headers["base_sequence"].astype(np.int64)
    deltas = headers["last_offset_delta"].astype(np.int64)
    found = Runs(
        headers["producer_id"].astype(np.int64),
        headers["producer_epoch"].astype(np.int64),
        first,
        (first + deltas) & MAX_SEQUENCE,
        batches.base_offsets + shift,
        batches.starts + position,
        np.zeros(len(batches), np.int64),
        loose,
    )
    return merged(found.where((found.producer_id >= 0) & (first >= 0)))


def joined(parts: list[Runs]) -> Runs:
    """Put runs one behind the other."""
    none = np.empty(0, np.int64)
    nothing = Runs(none, none, none, none, none, none, none, np.empty(0, np.bool_))
    names = [each.name for each in fields(Runs)]
    return Runs(
        *(np.concatenate([getattr(one, name) for one in [nothing, *parts]]) for name in names)
    )


def merged(runs: Runs) -> Runs:
    """Make one run of those that follow each other; the order stays that of the first of each."""
    if not len(runs):
        return runs
    order, new, follows = _in_groups(runs)
    starts = np.flatnonzero(new | ~follows)
    ends = np.append(starts[1:], len(runs)) - 1
    back = np.argsort(order[starts], kind="stable")
    found = runs.where(order[starts])
    return replace(found, last=runs.last[order[ends]]).where(back)


def unsound(runs: Runs) -> tuple[Runs, Longs]:
    """Find the runs that do not follow from those before, and the sequence that each should have.

    `runs` are all of a partition, in the order of the log.
    """
    if not len(runs):
        return runs, runs.first
    order, new, follows = _in_groups(runs)
    rows = runs.where(order)
    due = np.where(new, 0, (np.append(0, rows.last[:-1]) + 1) & MAX_SEQUENCE)
    ahead = (rows.first - due) & MAX_SEQUENCE
    sound = np.where(new, rows.first == 0, follows)
    sound |= rows.loose & (new | (ahead < _MOST_AHEAD))
    wrong = np.flatnonzero(~sound)
    wrong = wrong[np.argsort(order[wrong], kind="stable")]
    return rows.where(wrong), due[wrong]


def _in_groups(runs: Runs) -> tuple[Longs, Mask, Mask]:
    """Sort by producer and epoch: the order, where a group begins, what follows the one before."""
    order = np.lexsort((runs.epoch, runs.producer_id)).astype(np.int64)  # stable
    ids, epochs = runs.producer_id[order], runs.epoch[order]
    new = np.append(True, (ids[1:] != ids[:-1]) | (epochs[1:] != epochs[:-1]))
    due = np.append(0, (runs.last[order][:-1] + 1) & MAX_SEQUENCE)
    return order, new, ~new & (runs.first[order] == due)
