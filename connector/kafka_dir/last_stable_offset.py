"""The last stable offset: the first offset of the earliest transaction that is still open.

The rule (docs/format.md, 10; Kafka's `UnifiedLog.lastStableOffset`): it is at least the log start,
and without an open transaction it is the log end, which is the high watermark while a broker runs.
A reader with read_committed returns records below it. The open transactions are those of the newest
complete producer snapshot, carried on by the batches after it, as a broker does. Without such a
snapshot klog reads the headers from the log start; a broker would forget the transactions
(docs/format.md, 10 and 14).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from klog.connector.kafka_dir.companion_files import read_companion_file
from klog.connector.kafka_dir.log_bounds import UNKNOWN_POSITION
from klog.connector.kafka_dir.partition_directory import PartitionDirectory
from klog.connector.kafka_dir.raw_partition import RawPartition
from klog.connector.kafka_dir.segment_reader import SegmentReader
from klog.connector.segment_chunks import at_file_position, read_chunks
from klog.connector.store.readable_store import ReadableStore
from klog.errors import CorruptRecordError
from klog.logformat.batches.batch_checksum import check_batch_crcs
from klog.logformat.producers import transaction_outcomes
from klog.logformat.producers.producer_snapshot import parse_open_transactions


@dataclass(frozen=True, slots=True)
class OpenTransactions:
    """The transactions that are open at an offset.

    Attributes:
        offset: The offset.
        first_offsets: The first offset of each, by producer id.
        position: Where in the segment the next batch begins; valid if `last_batch` still does.
        last_batch: Where the batch before that begins, or `UNKNOWN_POSITION`.
    """

    offset: int
    first_offsets: dict[int, int] = field(default_factory=dict)
    position: int = 0
    last_batch: int = UNKNOWN_POSITION

    @property
    def last_stable_offset(self) -> int:
        """Return the first offset of the earliest open transaction, else `offset` itself."""
        return min(self.first_offsets.values(), default=self.offset)


def read_newest_snapshot(
    store: ReadableStore, directory: PartitionDirectory, end_offset: int
) -> OpenTransactions | None:
    """Read the newest well-formed producer snapshot at or below an offset.

    Args:
        store: The store of the partition.
        directory: The files of the partition.
        end_offset: The offset.

    Returns:
        The transactions that are open at the snapshot's offset; None if there is no such snapshot.
    """
    first_offset = directory.segments[0].base_offset if directory.segments else 0
    for offset in sorted(directory.snapshots, reverse=True):
        if first_offset <= offset <= end_offset:
            data = read_companion_file(store, directory.snapshots[offset].path)
            first_offsets = None if data is None else parse_open_transactions(data)
            if first_offsets is not None:
                return OpenTransactions(offset, first_offsets)
    return None


def follow_transactions(earlier: OpenTransactions, log: RawPartition) -> OpenTransactions:
    """Carry open transactions on to the log end, by the headers between.

    Args:
        earlier: The transactions that are open at an earlier offset.
        log: The partition.

    Raises:
        CorruptFileError: If a batch between is damaged.
    """
    transactions = earlier
    for segment, next_base in log.segments_with_ends():
        if segment.base_offset >= log.log_end:
            break
        if next_base <= earlier.offset and not log.is_active(segment):
            continue
        reader = log.open(segment)
        try:
            end_offset, end_position = min(next_base, log.log_end), log.readable_bytes(reader)
            transactions = _follow_segment(reader, transactions, end_offset, end_position)
        except CorruptRecordError as exc:
            raise exc.in_file(segment.log.path, str(log.name)) from exc
        finally:
            reader.close()
    return replace(transactions, offset=log.log_end)


def _follow_segment(
    reader: SegmentReader, transactions: OpenTransactions, end_offset: int, end_position: int
) -> OpenTransactions:
    """Carry open transactions through one segment up to an offset."""
    position, last_batch = transactions.position, transactions.last_batch
    if not _can_resume(reader, transactions):
        position, last_batch = reader.position_before(transactions.offset), UNKNOWN_POSITION
    for chunk in read_chunks(reader.file, position, end_position):
        bases, next_offsets = chunk.batches.base_offsets, chunk.batches.next_offsets
        batches = chunk.batches.where((next_offsets > transactions.offset) & (bases < end_offset))
        with at_file_position(chunk.position):
            control = batches.where(batches.is_control)
            check_batch_crcs(chunk.data, control)
            first_offsets = transaction_outcomes.replay_transactions(
                transactions.first_offsets, chunk.data, batches
            )
        count = int(np.searchsorted(bases, end_offset))
        stop = int(np.append(chunk.batches.starts, chunk.batches.ends[-1])[count])
        next_offset = int(np.append(bases, next_offsets[-1])[count])
        if count:
            last_batch = chunk.position + int(chunk.batches.starts[count - 1])
        transactions = OpenTransactions(
            min(next_offset, end_offset), first_offsets, chunk.position + stop, last_batch
        )
        if count < len(bases) or next_offset >= end_offset:
            break  # The file's other bytes are not of the log, and no reader looks at them.
    return transactions


def _can_resume(reader: SegmentReader, transactions: OpenTransactions) -> bool:
    """Return whether every batch before `position` in this segment was followed already.

    The inode number cannot say so: a file system reuses it as soon as no file has it.
    """
    if transactions.last_batch == UNKNOWN_POSITION:
        return False
    end = reader.batch_end(transactions.last_batch)
    return (
        end is not None
        and end.next_offset <= transactions.offset
        and end.position == transactions.position
    )
