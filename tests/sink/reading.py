"""Segments as the entries of a state name them, read back with klog's decoder."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import google_crc32c
import numpy as np

from klog.connector.log import entries
from klog.connector.log.state import State
from klog.logformat import batch as v2
from klog.logformat.codecs import NAMES
from klog.logformat.columnar import decode
from tests.commits.logs import ROOT, CountingStore

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


def read_back(store: CountingStore, state: State, partition: int) -> list[Row]:
    """Give the records of a partition, at the offsets of the log."""
    rows: list[Row] = []
    for entry in entries.of_partition(state.segments, partition).to_pylist():
        assert entry["base_offset"] == (rows[-1].offset + 1 if rows else 0)
        rows += read_segment(store.files[f"{ROOT}/{entry['file']}"], entry)
        assert rows[-1].offset + 1 == entry["next_offset"]
    return rows


def read_segment(data: bytes, entry: Any) -> list[Row]:
    """Give the records of a segment, each field of whose entry has to be what its bytes say."""
    batches = v2.scan(data, 0, len(data))
    assert len(batches)
    assert int(batches.ends[-1]) == len(data)
    v2.check_crcs(data, batches)
    found = decode(data, batches, COLUMNS)
    assert found.timestamp_ms is not None
    assert found.timestamp_type is not None
    first = entry["base_offset"] - entry["offset_shift"]
    headers, count = batches.headers, len(found.offset)
    assert found.offset.tolist() == list(range(first, first + count))
    said = {
        "next_offset": entry["base_offset"] + count,
        "size_bytes": len(data),
        "crc32c": google_crc32c.value(data),
        "record_count": count,
        "batch_count": len(batches),
        "min_timestamp_ms": int(found.timestamp_ms.min()),
        "max_timestamp_ms": int(found.timestamp_ms.max()),
        "leader_epoch": int(headers["leader_epoch"][0]),
        "codec": NAMES[int(headers["attributes"][0]) & v2.CODEC_MASK],
        "producer_ids": np.unique(headers["producer_id"]).tolist(),
    }
    assert {name: entry[name] for name in said} == said
    columns = (found.key, found.value, found.headers)
    return [
        Row(offset + entry["offset_shift"], time, kind, key, value, tuple(map(_pair, pairs or ())))
        for offset, time, kind, key, value, pairs in zip(
            found.offset.tolist(),
            found.timestamp_ms.tolist(),
            found.timestamp_type.tolist(),
            *(column.to_pylist() for column in columns if column is not None),
            strict=True,
        )
    ]


def _pair(header: dict[str, Any]) -> tuple[str, bytes | None]:
    return header["key"], header["value"]
