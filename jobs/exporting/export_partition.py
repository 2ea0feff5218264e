"""Copy one partition of a klog root into an export's directory.

The rule: each chunk of a segment is verified against its commit before it is written, so the memory
is that of a chunk, and a damaged segment ends the export before a broker can read it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from klog.connector.commit_log.committed_snapshot import CommittedPartition
from klog.connector.commit_log.segment_entries import SegmentEntry, aborted_transactions
from klog.connector.commit_log.verified_segment import read_verified
from klog.connector.producer_ids import MIN_PRODUCER_ID
from klog.connector.segment_chunks import at_file_position
from klog.errors import CorruptRecordError, KlogError, OptionError, UnsupportedFormatError
from klog.jobs.exporting.export_directory import Checkpointed, ExportDirectory
from klog.logformat.producers.control_records import ABORT, COMMIT
from klog.logformat.segments.partition_exporter import FileChunk, PartitionExporter
from klog.logformat.segments.segment_rolling import RollLimits
from klog.logformat.topic_partition import TopicPartition

_log = logging.getLogger(__name__)
_CHUNK_ROWS = 1000
"""So many segment entries are dicts at a time."""
NO_ID = -1


@dataclass(frozen=True, slots=True)
class StagedPartition:
    """A partition that was copied, and the values for its checkpoints.

    `broker_id_count` is how many of its producers have an id that a broker gave out;
    `min_broker_id` is the lowest such id.
    """

    checkpointed: Checkpointed
    broker_id_count: int
    min_broker_id: int

    def warn(self, name: TopicPartition) -> None:
        """Log a warning if a new cluster may give out the ids of the partition's producers.

        Args:
            name: The partition, as the warning names it.
        """
        if self.broker_id_count:
            _log.warning(
                "%s: %d of its producers have ids that a broker gave out, such as %d. A new "
                "cluster gives out the same ids, and refuses producers that get them until "
                "these expire, a day after their last records",
                name, self.broker_id_count, self.min_broker_id,
            )  # fmt: skip


def stage_partition(
    partition: CommittedPartition,
    target: ExportDirectory,
    limits: RollLimits,
    now_ms: int,
    *,
    end_open: bool = False,
) -> StagedPartition:
    """Copy a partition to a directory that no broker mounts yet.

    Args:
        partition: The partition.
        target: The directory of the export.
        limits: The limits of a segment and its indexes.
        now_ms: The time that markers get.
        end_open: Whether open transactions get their markers after the log.

    Raises:
        CorruptFileError: A segment is damaged or missing.
        OptionError: The log ends within a transaction, without `end_open`.
        KlogError: The segments do not follow each other.
    """
    exporter = PartitionExporter(
        partition.log_start, now_ms, limits.segment_index_bytes, limits.index_interval_bytes
    )
    size_bytes = target.stage(partition.name, _file_chunks(partition, exporter, end_open=end_open))
    broker_ids = [
        producer_id for producer_id in exporter.producer_ids if producer_id < MIN_PRODUCER_ID
    ]
    first = exporter.base_offsets[0]
    log_start = partition.log_start if partition.log_start > first else None
    checkpointed = Checkpointed(log_start, _log_end(partition, exporter), size_bytes)
    return StagedPartition(checkpointed, len(broker_ids), min(broker_ids, default=NO_ID))


def _log_end(partition: CommittedPartition, exporter: PartitionExporter) -> int:
    """Return the export's log end: the last offsets may have no batch, and markers may follow."""
    return max(partition.log_end, exporter.next_offset)


def _file_chunks(
    partition: CommittedPartition, exporter: PartitionExporter, *, end_open: bool
) -> Iterator[FileChunk]:
    aborted: list[tuple[int, int, int]] = []
    for rows in partition.segments.to_batches(max_chunksize=_CHUNK_ROWS):
        for entry in rows.to_pylist():
            if entry["base_offset"] < exporter.next_offset:
                raise KlogError(
                    f"{partition.name}: {entry['file']} begins at offset {entry['base_offset']}, "
                    f"and the segment before it ends at {exporter.next_offset}: the topic's log "
                    "was changed by something that is not klog; restore it from a copy"
                )
            yield from exporter.start_segment(entry["base_offset"])
            yield from _segment_chunks(partition, exporter, entry)
            aborted += aborted_transactions(entry)
    if end_open:
        yield from _markers(partition, exporter, aborted)
    _refuse_open_transactions(partition, exporter)
    yield from exporter.finish(_log_end(partition, exporter), partition.topic_id)


def _segment_chunks(
    partition: CommittedPartition, exporter: PartitionExporter, entry: SegmentEntry
) -> Iterator[FileChunk]:
    path, name = partition.root.segment_path(entry), str(partition.name)
    for chunk in read_verified(partition.root, entry):
        try:
            with at_file_position(chunk.position):
                yield from exporter.append(chunk.data, chunk.batches, entry["offset_shift"])
        except (CorruptRecordError, UnsupportedFormatError) as exc:
            raise exc.in_file(path, name) from exc


def _markers(
    partition: CommittedPartition,
    exporter: PartitionExporter,
    aborted: Sequence[tuple[int, int, int]],
) -> Iterator[FileChunk]:
    """End open transactions as the topic's readers see them: abort those whose records they skip.

    `aborted` has the producer id, first and last offset of each aborted transaction.
    """
    open_transactions = exporter.open_transactions.items()
    for offset, (producer_id, first) in enumerate(open_transactions, partition.log_end):
        is_aborted = any(
            aborted_id == producer_id and last >= first for aborted_id, _, last in aborted
        )
        yield from exporter.end_transaction(producer_id, ABORT if is_aborted else COMMIT, offset)


def _refuse_open_transactions(partition: CommittedPartition, exporter: PartitionExporter) -> None:
    """Refuse a log with a transaction that no coordinator of a new cluster could end."""
    for producer_id, offset in exporter.open_transactions.items():
        raise OptionError(
            f"{partition.name}: the transaction of producer {producer_id} that began at offset "
            f"{offset} has no end in this log. A broker that mounts the log cannot end it, and "
            "consumers that read committed records would stop there for good. Give "
            "--open-transactions end to write its marker after the log, as the topic's readers see "
            "it; or let the broker that wrote the log end it, and adopt the log again"
        )
