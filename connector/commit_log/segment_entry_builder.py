"""Build the entry of a segment: the row that a commit adds for it.

The rule: an entry has every column of `segment_entries.SCHEMA`, and only `build_segment_entry`
makes one from the facts of a segment file. Everything else reads an entry from a commit
(`segment_entries.entry_from_json`) or copies one with other values.
"""

from __future__ import annotations

from collections.abc import Iterable

from klog.connector.commit_log.segment_entries import SegmentEntry


def build_segment_entry(
    *,
    file: str,
    partition: int,
    base_offset: int,
    next_offset: int,
    size_bytes: int,
    crc32c: int,
    record_count: int,
    batch_count: int,
    min_timestamp_ms: int,
    max_timestamp_ms: int,
    leader_epoch: int,
    codec: str,
    producer_ids: Iterable[int],
    origin: str,
    index_bytes: int = 0,
    time_index_bytes: int = 0,
    torn_bytes: int = 0,
    aborted: Iterable[int] = (),
) -> SegmentEntry:
    """Return the entry of a segment whose file says the offsets of the log.

    Args:
        file: Path of the `.log` file, relative to the root.
        partition: Number of the partition.
        base_offset: First offset of the log that the segment stands for.
        next_offset: Offset after the last one. Compaction may have removed the records before it.
        size_bytes: Size of the batches in the file.
        crc32c: CRC-32C of these bytes.
        record_count: Number of data records that a read_committed reader gets.
        batch_count: Number of record batches.
        min_timestamp_ms: Lowest timestamp of a record, -1 if there is none.
        max_timestamp_ms: Highest timestamp of a record, -1 if there is none.
        leader_epoch: Highest leader epoch of a batch.
        codec: Compression of the last batch, one of `CODEC_NAMES`.
        producer_ids: Ids of the producers that have batches in the segment.
        origin: One of `segment_entries.ORIGINS`.
        index_bytes: Size of the offset index, 0 if there is no such file.
        time_index_bytes: Size of the time index, 0 if there is no such file.
        torn_bytes: Size of the torn append after the batches, which no reader reads.
        aborted: Aborted transactions with data in the segment, three numbers each: producer id,
            first offset, last offset.
    """
    return {
        "partition": partition,
        "file": file,
        "base_offset": base_offset,
        "next_offset": next_offset,
        "offset_shift": 0,
        "size_bytes": size_bytes,
        "index_bytes": index_bytes,
        "time_index_bytes": time_index_bytes,
        "crc32c": crc32c,
        "record_count": record_count,
        "batch_count": batch_count,
        "min_timestamp_ms": min_timestamp_ms,
        "max_timestamp_ms": max_timestamp_ms,
        "leader_epoch": leader_epoch,
        "codec": codec,
        "producer_ids": list(producer_ids),
        "origin": origin,
        "torn_bytes": torn_bytes,
        "aborted": list(aborted),
    }
