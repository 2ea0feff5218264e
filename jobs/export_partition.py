"""One partition of a klog root, copied into an export's directory: the unit of the job's work.

The rule: what is written comes from the bytes that were just checked. A segment is read in chunks,
each held to its commit before it is written, so memory is that of a chunk whatever the size of the
segment, and a damaged one ends the export before a broker could meet it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from klog.connector.log.committed import CommittedPartition
from klog.connector.log.entries import Entry, aborted_of
from klog.connector.log.lookup import path_of
from klog.connector.log.partition import TopicPartition
from klog.connector.log.segment import located
from klog.connector.log.whole import whole_segment
from klog.connector.sink.identity import LOWEST_ID
from klog.errors import CorruptRecordError, KlogError, OptionError, UnsupportedFormatError
from klog.jobs.export_directory import Checkpointed, ExportDirectory
from klog.logformat.control import ABORT, COMMIT
from klog.logformat.handover import Handover, Piece
from klog.logformat.rolling import RollLimits

_log = logging.getLogger(__name__)
_ENTRIES = 1000
"""So many entries of segments are Python objects at a time."""
NO_ID = -1


@dataclass(frozen=True, slots=True)
class ExportedPartition:
    """What of a partition is exported; sizes in bytes, offsets of the log, ends exclusive.

    `segments` are those of the topic's log, `records` theirs, those below the log start among them.
    `shifted` counts the segments whose files said other offsets than the log, `ended` the markers
    that end open transactions: the export's log end lies so many offsets behind that of the log.
    """

    topic: str
    partition: int
    log_start: int
    log_end: int
    segments: int
    records: int
    size_bytes: int
    shifted: int
    ended: int = 0


@dataclass(frozen=True, slots=True)
class Staged:
    """A partition that is copied, and what its checkpoints are to say.

    `low_ids` counts the producers that it knows by ids that a broker gave out, `lowest_id` is one.
    """

    said: Checkpointed
    low_ids: int
    lowest_id: int

    def warn(self, name: TopicPartition) -> None:
        """Warn of ids that a new cluster gives out too."""
        if self.low_ids:
            _log.warning(
                "%s: it knows %d producers by ids that a broker gave out, such as %d. A new "
                "cluster gives out the same ids: producers that get them are refused until these "
                "expire, a day after their last records",
                name, self.low_ids, self.lowest_id,
            )  # fmt: skip


def planned(partition: CommittedPartition) -> ExportedPartition:
    """Say what of a partition would be exported; nothing is read."""
    return ExportedPartition(
        partition.name.topic,
        partition.name.partition,
        partition.log_start,
        partition.log_end,
        partition.segment_count,
        int(partition.numbers("record_count").sum()),
        partition.size_bytes,
        int((partition.numbers("offset_shift") != 0).sum()),
    )


def stage_partition(
    partition: CommittedPartition,
    target: ExportDirectory,
    limits: RollLimits,
    now_ms: int,
    *,
    end_open: bool = False,
) -> Staged:
    """Copy a partition to where no broker mounts it yet.

    With `end_open` transactions that are open get their markers behind the log. Raises
    `CorruptFileError` for a segment that is damaged or missing, `OptionError` for a log that ends
    within a transaction otherwise, and `KlogError` for one whose segments do not follow each other.
    """
    handover = Handover(
        partition.log_start, now_ms, limits.segment_index_bytes, limits.index_interval_bytes
    )
    size_bytes = target.stage(partition.name, _pieces(partition, handover, end_open=end_open))
    low_ids = [one for one in handover.producer_ids if one < LOWEST_ID]
    first = handover.base_offsets[0]
    log_start = partition.log_start if partition.log_start > first else None
    said = Checkpointed(log_start, _log_end(partition, handover), size_bytes)
    return Staged(said, len(low_ids), min(low_ids, default=NO_ID))


def _log_end(partition: CommittedPartition, handover: Handover) -> int:
    """Give where the export ends: the log's last offsets may have no batch, and markers follow."""
    return max(partition.log_end, handover.next_offset)


def _pieces(
    partition: CommittedPartition, handover: Handover, *, end_open: bool
) -> Iterator[Piece]:
    hidden: list[tuple[int, int, int]] = []
    for rows in partition.segments.to_batches(max_chunksize=_ENTRIES):
        for entry in rows.to_pylist():
            if entry["base_offset"] < handover.next_offset:
                raise KlogError(
                    f"{partition.name}: {entry['file']} begins at offset {entry['base_offset']}, "
                    f"and the segment before it ends at {handover.next_offset}: the topic's log "
                    "was changed by something that is not klog; restore it from a copy"
                )
            yield from handover.begin(entry["base_offset"])
            yield from _segment(partition, handover, entry)
            hidden += aborted_of(entry)
    if end_open:
        yield from _markers(partition, handover, hidden)
    _refuse_open_transactions(partition, handover)
    yield from handover.finish(_log_end(partition, handover), partition.topic_id)


def _segment(partition: CommittedPartition, handover: Handover, entry: Entry) -> Iterator[Piece]:
    path, name = path_of(partition.root, entry), str(partition.name)
    for chunk in whole_segment(partition.root, entry):
        try:
            with located(chunk.position):
                yield from handover.add(chunk.data, chunk.batches, entry["offset_shift"])
        except (CorruptRecordError, UnsupportedFormatError) as exc:
            raise exc.in_file(path, name) from exc


def _markers(
    partition: CommittedPartition, handover: Handover, hidden: Sequence[tuple[int, int, int]]
) -> Iterator[Piece]:
    """End open transactions as the topic's readers see them: one whose records they hide aborts."""
    open_ones = handover.open_transactions.items()
    for offset, (producer_id, first) in enumerate(open_ones, partition.log_end):
        is_hidden = any(one == producer_id and last >= first for one, _, last in hidden)
        yield from handover.end_transaction(producer_id, ABORT if is_hidden else COMMIT, offset)


def _refuse_open_transactions(partition: CommittedPartition, handover: Handover) -> None:
    """Refuse a log that a new cluster could never end: its coordinator knows nothing of it."""
    for producer_id, offset in handover.open_transactions.items():
        raise OptionError(
            f"{partition.name}: the transaction of producer {producer_id} that began at offset "
            f"{offset} has no end in this log. No broker that mounts it could end it, and "
            "consumers that read committed records would stop there for good. With "
            "--open-transactions end its marker is written behind the log, as the topic's readers "
            "see it; or have the broker that the log came from end it, and adopt the log again"
        )
