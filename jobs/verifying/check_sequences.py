"""Check the sequences of producers in a partition: no gap and no duplicate.

The rule: sequences of a producer id and epoch begin at 0, and each batch follows the one before it;
0 follows 2147483647. If the batch directly before is missing (deleted, damaged, compacted away),
the sequence may be any above the last one: it never goes back.

A broker checks less, so less is asked of what a broker wrote (docs/format.md, 10; Kafka's
`ProducerAppendInfo`). The first batch of a producer may have any sequence, and so may the first one
after the producer expired. Coordinators, which alone write to internal topics, begin each batch at
0. klog's own producers have ids that no broker gives out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np

from klog.connector.producer_ids import MIN_PRODUCER_ID
from klog.logformat.array_types import Longs, Mask
from klog.logformat.batches import record_batch as v2
from klog.logformat.batches.sequence_numbers import MAX_SEQUENCE
from klog.logformat.broker_files.file_names import INTERNAL_TOPICS
from klog.logformat.producers.producer_state import EXPIRATION_MS

_MAX_AHEAD = 1 << 30
"""A sequence that is further ahead than this, half of all, counts as one that goes back."""


@dataclass(frozen=True, slots=True)
class SequenceRuns:
    """Runs of batches of one producer id and epoch whose sequences follow each other.

    A row for each run, in the order of the log. `offset` is its first offset in the log,
    `position` that of its first batch in the file with number `file`. With `after_gap` it is not
    known which batch was directly before. `first_ms` and `last_ms` are the timestamps of its first
    and last batch.
    """

    producer_id: Longs
    epoch: Longs
    first_sequence: Longs
    last_sequence: Longs
    offset: Longs
    position: Longs
    file: Longs
    after_gap: Mask
    first_ms: Longs
    last_ms: Longs

    def __len__(self) -> int:
        """Return the number of runs."""
        return len(self.first_sequence)

    def where(self, rows: Mask | Longs) -> SequenceRuns:
        """Return the rows of a mask, or of these numbers.

        Args:
            rows: A mask of the rows, or their numbers.
        """
        return SequenceRuns(*(getattr(self, column.name)[rows] for column in fields(self)))

    def with_gap_before(self, offset: int) -> SequenceRuns:
        """Return the runs with the one that begins at an offset marked as after a gap.

        Args:
            offset: The first offset of a run.
        """
        return replace(self, after_gap=self.after_gap | (self.offset == offset))

    def in_file(self, number: int) -> SequenceRuns:
        """Return the runs as those of the file with this number.

        Args:
            number: The number of the file in its partition.
        """
        return replace(self, file=np.full(len(self), number, np.int64))


def runs_of_batches(
    topic: str, batches: v2.Batches, after_gap: Mask, position: int, offset_shift: int
) -> SequenceRuns:
    """Return the runs of batches.

    Args:
        topic: The topic.
        batches: The batches, with the offsets of their file.
        after_gap: For which batches the one directly before is not known.
        position: The position of their buffer in the file.
        offset_shift: What the commit adds to the file's offsets.
    """
    headers = batches.headers
    producer_ids = headers["producer_id"].astype(np.int64)
    first_sequence = headers["base_sequence"].astype(np.int64)
    deltas = headers["last_offset_delta"].astype(np.int64)
    timestamps = headers["max_timestamp"].astype(np.int64)
    runs = SequenceRuns(
        producer_ids,
        headers["producer_epoch"].astype(np.int64),
        first_sequence,
        (first_sequence + deltas) & MAX_SEQUENCE,
        batches.base_offsets + offset_shift,
        batches.starts + position,
        np.zeros(len(batches), np.int64),
        after_gap | (producer_ids < MIN_PRODUCER_ID),
        timestamps,
        timestamps,
    )
    min_id = MIN_PRODUCER_ID if topic in INTERNAL_TOPICS else 0
    return _merge_following(runs.where((producer_ids >= min_id) & (first_sequence >= 0)))


def join_runs(parts: Sequence[SequenceRuns]) -> SequenceRuns:
    """Return the runs of several parts of the log in order, joined where they follow each other.

    Args:
        parts: The runs of each part, in the order of the log.
    """
    return _merge_following(_concat(parts))


def find_wrong_sequences(runs: SequenceRuns) -> tuple[SequenceRuns, Longs]:
    """Find the runs that do not follow from those before.

    Args:
        runs: All runs of a partition, in the order of the log.

    Returns:
        The wrong runs, and the first sequence that each should have.
    """
    if not len(runs):
        return runs, runs.first_sequence
    order, is_first, follows = _by_producer(runs)
    rows = runs.where(order)
    due = np.where(is_first, 0, (np.append(0, rows.last_sequence[:-1]) + 1) & MAX_SEQUENCE)
    ahead = (rows.first_sequence - due) & MAX_SEQUENCE
    is_right = np.where(is_first, rows.first_sequence == 0, follows)
    idle_ms = rows.first_ms - np.append(0, rows.last_ms[:-1])
    may_skip = is_first | (ahead < _MAX_AHEAD) | (idle_ms >= EXPIRATION_MS)
    is_right |= rows.after_gap & may_skip
    wrong = np.flatnonzero(~is_right)
    wrong = wrong[np.argsort(order[wrong], kind="stable")]
    return rows.where(wrong), due[wrong]


def _concat(parts: Sequence[SequenceRuns]) -> SequenceRuns:
    no_numbers, no_flags = np.empty(0, np.int64), np.empty(0, np.bool_)
    columns = [column.name for column in fields(SequenceRuns)]
    return SequenceRuns(
        *(
            np.concatenate(
                [
                    no_flags if column == "after_gap" else no_numbers,
                    *(getattr(runs, column) for runs in parts),
                ]
            )
            for column in columns
        )
    )


def _merge_following(runs: SequenceRuns) -> SequenceRuns:
    """Merge the runs that follow each other; each keeps the place of its first one."""
    if not len(runs):
        return runs
    order, is_first, follows = _by_producer(runs)
    starts = np.flatnonzero(is_first | ~follows)
    ends = np.append(starts[1:], len(runs)) - 1
    in_log_order = np.argsort(order[starts], kind="stable")
    last = order[ends]
    merged = replace(
        runs.where(order[starts]),
        last_sequence=runs.last_sequence[last],
        last_ms=runs.last_ms[last],
    )
    return merged.where(in_log_order)


def _by_producer(runs: SequenceRuns) -> tuple[Longs, Mask, Mask]:
    """Sort runs by producer id and epoch.

    Returns:
        The order; which sorted runs are the first of their producer; which follow the one before.
    """
    order = np.lexsort((runs.epoch, runs.producer_id)).astype(np.int64)  # stable
    ids, epochs = runs.producer_id[order], runs.epoch[order]
    is_first = np.append(True, (ids[1:] != ids[:-1]) | (epochs[1:] != epochs[:-1]))
    due = np.append(0, (runs.last_sequence[order][:-1] + 1) & MAX_SEQUENCE)
    return order, is_first, ~is_first & (runs.first_sequence[order] == due)
