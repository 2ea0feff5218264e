"""The option `columns`: the same rows, and less is read for them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timezone
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import klog
from klog.connector.commit_log import small_segments
from klog.connector.options.read_columns import COLUMNS
from klog.errors import CorruptFileError
from klog.logformat.batches import decode_records
from klog.logformat.batches.gather_fields import gather_fields
from klog.logformat.batches.record_sections import record_sections
from tests import golden
from tests.connector.committed_topic import START_MS, between, make_root
from tests.connector.log_dirs import read, write_log
from tests.corpus import Scene, scene
from tests.support.batch_bytes import (
    CODECS,
    LOG_APPEND_TIME,
    ZSTD,
    Record,
    batch,
)

NAMES = ("transactions", "compacted-again", "2.8.2")
OF_HEADERS = (
    ("offset",),
    ("topic", "partition"),
    ("partition", "offset", "timestampType"),
    ("topic", "timestampType"),
    ("offset", "timestamp"),
)


class Decoded:
    """Counts what is decompressed and copied."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Count from now on."""
        self.batches: list[int] = []
        self.fields = 0

        def count_sections(data: bytes, batches: Any, part_bytes: int) -> Any:
            self.batches += batches.base_offsets.tolist()
            return record_sections(data, batches, part_bytes)

        def count_fields(*arguments: Any) -> Any:
            self.fields += 1
            return gather_fields(*arguments)

        monkeypatch.setattr(decode_records, "record_sections", count_sections)
        monkeypatch.setattr(decode_records, "gather_fields", count_fields)


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> Decoded:
    return Decoded(monkeypatch)


def scene_of(name: str) -> Scene:
    return golden.scene(name) if name in golden.VERSIONS else scene(name)


@cache
def all_rows(name: str, level: str) -> list[dict[str, Any]]:
    (log_dir,) = scene_of(name).log_dirs
    return read(log_dir, subscribePattern=".*", isolationLevel=level)


def only(rows: Sequence[dict[str, Any]], columns: Sequence[str]) -> list[dict[str, Any]]:
    return [{name: row[name] for name in COLUMNS if name in columns} for row in rows]


@pytest.mark.parametrize("columns", OF_HEADERS, ids=",".join)
@pytest.mark.parametrize("name", NAMES)
def test_rows_of_a_real_broker_are_the_same(name: str, columns: tuple[str, ...]) -> None:
    (log_dir,) = scene_of(name).log_dirs
    for level in ("read_committed", "read_uncommitted"):
        expected = only(all_rows(name, level), columns)
        assert expected
        options = {"subscribePattern": ".*", "isolationLevel": level, "columns": ",".join(columns)}
        assert read(log_dir, **options) == expected


def log_of(codec: int) -> list[bytes]:
    """Make batches of ten offsets: three in turn with all records, with gaps, with append time."""
    log = []
    for number in range(0, 120, 10):
        kind = number // 10 % 3
        offsets = range(number, number + 10) if kind != 1 else (number + 1, number + 6)
        rows = [Record(offset, 1000 - offset, b"k", b"v") for offset in offsets]
        flags = codec | (LOG_APPEND_TIME if kind == 2 else 0)
        log.append(
            batch(
                rows, base_offset=number, last_offset_delta=9, attributes=flags, max_timestamp=5000
            )
        )
    return log


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("columns", OF_HEADERS, ids=",".join)
def test_every_range(tmp_path: Path, columns: tuple[str, ...], codec: int) -> None:
    write_log(tmp_path, {0: log_of(codec)})
    for start, end in ((0, 120), (3, 117), (12, 16), (11, 17), (17, 18), (25, 26), (33, 98)):
        expected = only(read(tmp_path, **between(start, end)), columns)
        assert read(tmp_path, columns=",".join(columns), **between(start, end)) == expected


def test_what_is_decompressed(tmp_path: Path, decoded: Decoded) -> None:
    write_log(tmp_path, {0: log_of(ZSTD)})
    for columns, first_offsets in {
        "topic,partition": [],
        "timestampType": [],
        "offset": [10, 40, 70, 100],
        "offset,timestamp": [0, 10, 30, 40, 60, 70, 90, 100],
        "timestamp": [0, 10, 30, 40, 60, 70, 90, 100],
        "offset,key": list(range(0, 120, 10)),
    }.items():
        decoded.batches.clear()
        read(tmp_path, columns=columns)
        assert sorted(decoded.batches) == first_offsets, columns
    decoded.batches.clear()
    read(tmp_path, columns="topic", **between(15, 45))
    assert decoded.batches == [10, 40], "bounds cut these, and offsets are missing"


@pytest.mark.parametrize(
    ("columns", "fields"),
    [("key,offset", 1), ("value", 1), ("key,value", 2), ("timestamp,offset", 0)],
)
def test_only_what_is_asked_for_is_copied(
    tmp_path: Path, decoded: Decoded, columns: str, fields: int
) -> None:
    write_log(tmp_path, {0: [batch([Record(0, 2, b"k", b"v"), Record(1, 1, b"k", b"v")])]})
    read(tmp_path, columns=columns)
    assert decoded.fields == fields


def test_bounds_leave_out_batches(tmp_path: Path, decoded: Decoded) -> None:
    write_log(tmp_path, {0: log_of(ZSTD)[:6], 60: log_of(ZSTD)[6:]})
    assert len(read(tmp_path, **between(25, 31))) == 6
    assert decoded.batches == [20, 30]


@pytest.mark.parametrize("kind", ["klog", "raw"])
def test_times_leave_out_batches(
    tmp_path: Path, decoded: Decoded, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Batches of small segments are decoded together, with other offsets.
    monkeypatch.setattr(small_segments, "MAX_WHOLE_BYTES", 0)
    if kind == "raw":
        rows = [Record(n, START_MS + 1000 * n, b"k", b"v" * 30) for n in range(400)]
        batches = [batch(rows[n : n + 10], attributes=ZSTD) for n in range(0, 400, 10)]
        write_log(tmp_path, {0: batches[:20], 200: batches[20:]})
        path = tmp_path
    else:
        path = make_root(tmp_path)
    start, end = (
        datetime.fromtimestamp((START_MS + ms) / 1000, timezone.utc) for ms in (250_500, 263_500)
    )
    table = klog.open(path).scan("t", start, end, ["offset", "value"]).read_all()
    assert table["offset"].to_pylist() == list(range(251, 264))
    assert decoded.batches, "with those of the time look-ups:"
    assert all(230 <= offset < 270 for offset in decoded.batches)


def test_a_damaged_batch_is_an_error_whatever_the_columns(tmp_path: Path) -> None:
    log = bytearray(b"".join(log_of(ZSTD)))
    log[-1] ^= 1
    write_log(tmp_path, {0: [bytes(log)], 120: [batch([Record(120, 1)])]})
    with pytest.raises(CorruptFileError, match="CRC"):
        read(tmp_path, columns="topic")


def test_the_scan_of_a_klog_root(tmp_path: Path, decoded: Decoded) -> None:
    log = klog.open(make_root(tmp_path))
    offsets = log.scan("t", columns=["offset", "partition"]).read_all()
    assert offsets["offset"].to_pylist() == list(range(3000))
    assert offsets.schema.names == ["offset", "partition"]
    assert log.scan("t", columns=["topic"]).read_all().num_rows == 3000
    assert decoded.batches == []
    since = datetime.fromtimestamp(1_700_000_000 + 2990, timezone.utc)
    assert log.scan("t", start=since, columns=["topic"]).read_all().num_rows == 10
