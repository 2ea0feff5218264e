"""The records of staged segments, decoded, each segment checked against its entry."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import google_crc32c
import numpy as np

from klog.connector.commit_log import segment_entries
from klog.connector.commit_log.topic_state import TopicState
from klog.logformat.batches import record_batch as v2
from klog.logformat.batches.batch_checksum import check_batch_crcs
from klog.logformat.batches.decode_records import decode_records
from klog.logformat.batches.scan_batches import scan_batches
from klog.logformat.codecs.codec_names import CODEC_NAMES
from tests.connector.commit_log.memory_logs import ROOT, CountingStore

COLUMNS = ("key", "value", "headers", "timestamp_ms", "timestamp_type")


@dataclass(frozen=True, slots=True)
class Row:
    """A record as a reader gets it."""

    offset: int
    timestamp: int
    timestamp_type: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


def read_back(store: CountingStore, state: TopicState, partition: int) -> list[Row]:
    """Return the records of a partition, at the offsets of the log."""
    rows: list[Row] = []
    for entry in segment_entries.rows_of_partition(state.segments, partition).to_pylist():
        assert entry["base_offset"] == (rows[-1].offset + 1 if rows else 0)
        rows += read_segment(store.files[f"{ROOT}/{entry['file']}"], entry)
        assert rows[-1].offset + 1 == entry["next_offset"]
    return rows


def read_segment(data: bytes, entry: Any) -> list[Row]:
    """Return the records of a segment; each field of its entry has to agree with its bytes."""
    batches = scan_batches(data, 0, len(data))
    assert len(batches)
    assert int(batches.ends[-1]) == len(data)
    check_batch_crcs(data, batches)
    records = decode_records(data, batches, COLUMNS)
    assert records.timestamp_ms is not None
    assert records.timestamp_type is not None
    first_offset = entry["base_offset"] - entry["offset_shift"]
    headers, count = batches.headers, len(records.offset)
    assert records.offset.tolist() == list(range(first_offset, first_offset + count))
    expected = {
        "next_offset": entry["base_offset"] + count,
        "size_bytes": len(data),
        "crc32c": google_crc32c.value(data),
        "record_count": count,
        "batch_count": len(batches),
        "min_timestamp_ms": int(records.timestamp_ms.min()),
        "max_timestamp_ms": int(records.timestamp_ms.max()),
        "leader_epoch": int(headers["leader_epoch"][0]),
        "codec": CODEC_NAMES[int(headers["attributes"][0]) & v2.CODEC_MASK],
        "producer_ids": np.unique(headers["producer_id"]).tolist(),
    }
    assert {name: entry[name] for name in expected} == expected
    columns = (records.key, records.value, records.headers)
    return [
        Row(
            offset + entry["offset_shift"],
            timestamp_ms,
            timestamp_type,
            key,
            value,
            tuple(map(_pair, record_headers or ())),
        )
        for offset, timestamp_ms, timestamp_type, key, value, record_headers in zip(
            records.offset.tolist(),
            records.timestamp_ms.tolist(),
            records.timestamp_type.tolist(),
            *(column.to_pylist() for column in columns if column is not None),
            strict=True,
        )
    ]


def _pair(header: dict[str, Any]) -> tuple[str, bytes | None]:
    return header["key"], header["value"]
