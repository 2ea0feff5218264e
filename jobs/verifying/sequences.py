"""Sequences of producers in a partition: no gap and no double for each producer id and epoch.

The rule: sequences of a producer id and epoch begin at 0 and each batch follows the one before it;
behind 2147483647 comes 0. Where what lay directly before a batch is not there (deleted, damaged,
compacted away), its sequence may be any above the last one seen: it never goes back.

A broker checks less, so less is asked of what a broker wrote (docs/format.md, 10; Kafka's
`ProducerAppendInfo`): the first batch of a producer may have any sequence, so may one that comes
after the producer had expired, and coordinators, which alone write to internal topics, begin each
batch at 0. klog's own producers have ids that no broker gives out.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np

from klog.connector.sink.identity import LOWEST_ID
from klog.logformat import batch as v2
from klog.logformat.index import Longs, Mask
from klog.logformat.names import INTERNAL_TOPICS
from klog.logformat.producer import EXPIRATION_MS
from klog.logformat.sequence import MAX_SEQUENCE

_MOST_AHEAD = 1 << 30
"""A sequence that is further ahead than this lies behind: half of what there are."""


@dataclass(frozen=True, slots=True)
class Runs:
    """Batches of one producer id and epoch that follow each other, a row each, in the log's order.

    `first` and `last` are sequences. `offset` is the first one, of the log; `position` that of its
    batch in the file with number `file`. `loose` says that what lay before it is not known.
    `first_ms` and `last_ms` are the times that the first and the last batch have.
    """

    producer_id: Longs
    epoch: Longs
    first: Longs
    last: Longs
    offset: Longs
    position: Longs
    file: Longs
    loose: Mask
    first_ms: Longs
    last_ms: Longs

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


def runs_of(topic: str, batches: v2.Batches, loose: Mask, position: int, shift: int) -> Runs:
    """Return the runs of some batches of a topic; `position` is that of the buffer in its file."""
    headers = batches.headers
    ids = headers["producer_id"].astype(np.int64)
    first = headers["base_sequence"].astype(np.int64)
    deltas = headers["last_offset_delta"].astype(np.int64)
    times = headers["max_timestamp"].astype(np.int64)
    found = Runs(
        ids,
        headers["producer_epoch"].astype(np.int64),
        first,
        (first + deltas) & MAX_SEQUENCE,
        batches.base_offsets + shift,
        batches.starts + position,
        np.zeros(len(batches), np.int64),
        loose | (ids < LOWEST_ID),
        times,
        times,
    )
    min_id = LOWEST_ID if topic in INTERNAL_TOPICS else 0
    return merged(found.where((ids >= min_id) & (first >= 0)))


def joined(parts: list[Runs]) -> Runs:
    """Put runs one behind the other."""
    none, no = np.empty(0, np.int64), np.empty(0, np.bool_)
    nothing = Runs(none, none, none, none, none, none, none, no, none, none)
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
    last = order[ends]
    return replace(found, last=runs.last[last], last_ms=runs.last_ms[last]).where(back)


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
    idle_ms = rows.first_ms - np.append(0, rows.last_ms[:-1])
    may_begin = new | (ahead < _MOST_AHEAD) | (idle_ms >= EXPIRATION_MS)
    sound |= rows.loose & may_begin
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
