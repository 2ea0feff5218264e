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
from klog.connector.kafka_dir.partition_directory import PartitionDirectory
from klog.connector.kafka_dir.raw_partition import RawPartition
from klog.connector.kafka_dir.segment_reader import SegmentReader
from klog.connector.segment_chunks import Chunk, at_file_position, read_chunks
from klog.connector.store.readable_store import ReadableStore
from klog.errors import CorruptRecordError
from klog.logformat.batches.batch_checksum import check_batch_crcs
from klog.logformat.batches.record_batch import HEADER_BYTES
from klog.logformat.producers import transaction_outcomes
from klog.logformat.producers.producer_snapshot import parse_open_transactions


@dataclass(frozen=True, slots=True)
class FollowedBatch:
    """A batch that was followed. Where it still is, the log before it is the one that was followed.

    An inode number alone cannot say so: a file system uses it again as soon as no file has it.

    Attributes:
        segment_base: The base offset of its segment.
        identity: The file of that.
        position: Where it begins there.
        header: The bytes of its header, with the CRC of the others.
    """

    segment_base: int
    identity: str
    position: int
    header: bytes


@dataclass(frozen=True, slots=True)
class OpenTransactions:
    """The transactions that are open at an offset.

    Attributes:
        offset: The offset.
        first_offsets: The first offset of each, by producer id.
        position: Where the next batch begins, in the segment of `last_batch`.
        last_batch: The batch before that; None if no batch was followed.
    """

    offset: int
    first_offsets: dict[int, int] = field(default_factory=dict)
    position: int = 0
    last_batch: FollowedBatch | None = None

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


def follow_transactions(earlier: OpenTransactions, log: RawPartition) -> OpenTransactions | None:
    """Carry open transactions on to the log end, by the headers between.

    Args:
        earlier: The transactions that are open at an earlier offset.
        log: The partition.

    Returns:
        None if the log is not the one that was followed before.

    Raises:
        CorruptFileError: If a batch between is damaged.
    """
    transactions, last_batch = earlier, earlier.last_batch
    is_known = last_batch is None
    for segment, next_base in log.segments_with_ends():
        if segment.base_offset >= log.log_end:
            break
        has_last_batch = last_batch is not None and segment.base_offset == last_batch.segment_base
        is_followed = next_base <= earlier.offset and not log.is_active(segment)
        if is_followed and not has_last_batch:
            continue
        reader = log.open(segment)
        try:
            if has_last_batch and not _has_batch(reader, last_batch):
                return None
            is_known |= has_last_batch
            if is_followed or not is_known:
                continue
            end_offset, end_position = min(next_base, log.log_end), log.readable_bytes(reader)
            transactions = _follow_segment(reader, transactions, end_offset, end_position)
        except CorruptRecordError as exc:
            raise exc.in_file(segment.log.path, str(log.name)) from exc
        finally:
            reader.close()
    return replace(transactions, offset=log.log_end) if is_known else None


def _follow_segment(
    reader: SegmentReader, transactions: OpenTransactions, end_offset: int, end_position: int
) -> OpenTransactions:
    """Carry open transactions through one segment up to an offset."""
    last_batch = transactions.last_batch
    if last_batch is not None and last_batch.segment_base == reader.base_offset:
        position = transactions.position
    else:
        position = reader.position_before(transactions.offset)
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
            last_batch = _followed(reader, chunk, count - 1)
        transactions = OpenTransactions(
            min(next_offset, end_offset), first_offsets, chunk.position + stop, last_batch
        )
        if count < len(bases) or next_offset >= end_offset:
            break  # The file's other bytes are not of the log, and no reader looks at them.
    return transactions


def _followed(reader: SegmentReader, chunk: Chunk, number: int) -> FollowedBatch:
    start = int(chunk.batches.starts[number])
    header = bytes(chunk.data[start : start + HEADER_BYTES])
    position = chunk.position + start
    return FollowedBatch(reader.base_offset, reader.file.identity, position, header)


def _has_batch(reader: SegmentReader, batch: FollowedBatch | None) -> bool:
    if batch is None or batch.identity != reader.file.identity:
        return False
    end_position = batch.position + len(batch.header)
    return reader.file.read(batch.position, end_position) == batch.header
