"""Staged files have each row once, in order, and their entries agree with them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from io import BytesIO
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from klog.connector.commit_log import live_segments
from klog.connector.producer_ids import producer_identity
from klog.connector.sink.write_rows import MAX_CHUNK_ROWS
from klog.errors import KlogError
from klog.logformat.batches import record_batch as v2
from klog.logformat.batches.batch_attributes import BatchAttributes
from klog.logformat.batches.encode_batches import encode_batches
from klog.logformat.batches.record_headers import HEADERS_TYPE
from klog.logformat.batches.records_to_write import Records
from klog.logformat.batches.scan_batches import scan_batches
from klog.logformat.codecs.codec_names import CODEC_NAMES
from klog.logformat.indexes.index_building import batches_as_appends
from klog.logformat.indexes.offset_index import encode_offset_index
from klog.logformat.indexes.time_index import encode_time_index
from klog.logformat.segments.segment_rolling import OpenSegment, plan_rolls
from tests.connector.commit_log.memory_logs import ROOT, TOPIC
from tests.connector.sink.staged_tasks import NOW_MS, stage_rows, topic_state
from tests.support.broker_loader.index_updates import index_batches

MS = pa.timestamp("ms")
BYTES = st.none() | st.binary(max_size=30)
HEADERS = st.lists(st.tuples(st.text(max_size=5), BYTES), max_size=3)
ROWS = st.lists(st.tuples(BYTES, BYTES, HEADERS, st.integers(-1, 1 << 42), st.integers(0, 3)))
ANY_TIME = {"message_timestamp_after_max_ms": str((1 << 63) - 1)}
SMALL = {"batch.size": "150", "segment.bytes": "400"}


def table(rows: list[Any]) -> pa.Table:
    """Return a table of (key, value, headers, timestamp, partition)."""
    columns = [list(column) for column in zip(*rows, strict=True)] or [[]] * 5
    pairs = [[{"key": k, "value": v} for k, v in headers] for headers in columns[2]]
    return pa.table(
        {
            "key": pa.array(columns[0], pa.binary()),
            "value": pa.array(columns[1], pa.binary()),
            "headers": pa.array(pairs, HEADERS_TYPE),
            "timestamp": pa.array(columns[3], pa.timestamp("ms", "UTC")),
            "partition": pa.array(columns[4], pa.int32()),
        }
    )


def numbered(count: int, value_bytes: int = 20) -> pa.Table:
    """Return rows of one partition, a millisecond apart, that compress well."""
    return pa.table(
        {
            "value": pa.array([str(i).zfill(value_bytes).encode() for i in range(count)]),
            "timestamp": pa.array(np.arange(count) + NOW_MS, pa.int64()).cast(pa.timestamp("ms")),
        }
    )


@settings(max_examples=60, deadline=None)
@given(
    rows=ROWS,
    chunk_rows=st.integers(1, 7),
    codec=st.sampled_from(CODEC_NAMES),
    options=st.sampled_from([{}, SMALL, {"batch.size": "0"}, SMALL | {"buffer.memory": "0"}]),
)
def test_staged_rows_are_read_back(
    rows: list[Any], chunk_rows: int, codec: str, options: dict[str, str]
) -> None:
    batches = table(rows).to_batches(max_chunksize=chunk_rows)
    task = stage_rows(topic_state(4, **ANY_TIME), batches, options | {"compression.type": codec})
    for partition in range(4):
        expected = [row[:4] for row in rows if row[4] == partition]
        records = task.rows(partition)
        assert [(r.key, r.value, list(r.headers), r.timestamp) for r in records] == expected
        assert [r.offset for r in records] == list(range(len(expected)))
    positions = [(entry["partition"], entry["base_offset"]) for entry in task.staged.segments]
    assert positions == sorted(positions)


@settings(max_examples=40, deadline=None)
@given(rows=ROWS, chunk_rows=st.integers(1, 9), batch_size=st.sampled_from([0, 90, 200, 1000]))
def test_batches_are_those_of_one_encoder(
    rows: list[Any], chunk_rows: int, batch_size: int
) -> None:
    """However the rows arrive, while memory lasts."""
    rows = [(*row[:4], 0) for row in rows]
    input_rows = table(rows)
    batches = input_rows.to_batches(max_chunksize=chunk_rows)
    task = stage_rows(topic_state(1, **ANY_TIME), batches, {"batch.size": str(batch_size)})
    producer = producer_identity("a writer", 0, 40_000)
    attributes = BatchAttributes(
        batch_bytes=batch_size,
        codec=CODEC_NAMES.index("zstd"),
        leader_epoch=0,
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        base_sequence=0,
    )
    timestamps = input_rows["timestamp"].cast(pa.int64())
    records = Records(timestamps, input_rows["key"], input_rows["value"], input_rows["headers"])
    assert task.log_bytes(0) == b"".join(encode_batches(records, attributes))


def test_batches_are_full_however_the_rows_arrive() -> None:
    rows = numbered(30_000, 100)
    options = {"batch.size": "20000", "compression.type": "none"}
    log = stage_rows(topic_state(), rows, options).log_bytes(0)
    batches = scan_batches(log, 0, len(log))
    # A record has 8 to 11 bytes besides its value.
    assert set(batches.headers["count"][:-1].tolist()) <= set(range(179, 185))
    assert len(batches) > 100
    assert (
        stage_rows(topic_state(), rows.to_batches(max_chunksize=777), options).log_bytes(0) == log
    )
    sequences = batches.headers["base_sequence"].tolist()
    assert sequences == batches.base_offsets.tolist(), "sequences count from 0, as offsets do here"


@pytest.mark.parametrize("codec", CODEC_NAMES)
def test_codec_is_in_the_file_and_its_entry(codec: str) -> None:
    task = stage_rows(topic_state(), numbered(5000), {"compression.type": codec})
    assert [entry["codec"] for entry in task.staged.segments] == [codec]
    assert [row.value for row in task.rows(0)] == numbered(5000)["value"].to_pylist()


def test_small_partitions_take_one_put_each() -> None:
    rows = pa.table({"value": ["a"] * 12, "partition": list(range(6)) * 2})
    task = stage_rows(topic_state(6), rows)
    assert task.store.requests == {"put": 6}
    assert sorted(task.store.files) == [
        f"{ROOT}/{TOPIC}-{partition}/{0:020d}-{0:010d}-0123abcd.log" for partition in range(6)
    ]
    assert {(e["index_bytes"], e["time_index_bytes"]) for e in task.staged.segments} == {(0, 0)}


def test_large_segments_have_the_indexes_of_a_broker() -> None:
    task = stage_rows(
        topic_state(), numbered(20_000), {"batch.size": "2000", "compression.type": "none"}
    )
    (entry,) = task.staged.segments
    assert task.store.requests == {"put": 3}
    data = task.bytes_of(entry)
    index, time_index = index_batches(scan_batches(data, 0, len(data)), 0)
    assert len(index) > 50
    assert task.bytes_of(entry, ".index") == encode_offset_index(index)
    assert task.bytes_of(entry, ".timeindex") == encode_time_index(time_index)
    assert entry["index_bytes"] == 8 * len(index)
    assert entry["time_index_bytes"] == 12 * len(time_index)


def test_log_is_put_before_its_indexes() -> None:
    """Vacuum finds the files of a killed writer by their log."""
    task = stage_rows(
        topic_state(), numbered(20_000), {"batch.size": "2000", "compression.type": "none"}
    )
    assert [path.rpartition(".")[2] for path in task.store.files] == ["log", "index", "timeindex"]


@pytest.mark.parametrize(("size", "files"), [(65535, 1), (65536, 3)])
def test_segments_from_sixteen_intervals_on_have_indexes(size: int, files: int) -> None:
    value = bytes(size - 61 - 11)  # a batch's header, and a record's seven other fields
    task = stage_rows(topic_state(), pa.table({"value": [value]}), {"compression.type": "none"})
    assert task.staged.segments[0]["size_bytes"] == size
    assert task.store.requests["put"] == files


def test_segments_roll_at_segment_bytes() -> None:
    options = {"segment.bytes": "10000", "batch.size": "1000", "compression.type": "none"}
    task = stage_rows(topic_state(), numbered(2000), options)
    sizes = [entry["size_bytes"] for entry in task.staged.segments]
    assert max(sizes) <= 10000
    assert min(sizes[:-1]) > 9000
    assert len(task.rows(0)) == 2000
    for previous, following in zip(task.staged.segments, task.staged.segments[1:], strict=False):
        assert previous["next_offset"] == following["base_offset"]
    names = {entry["file"] for entry in task.staged.segments}
    assert names == {
        f"{TOPIC}-0/{entry['base_offset']:020d}-{0:010d}-0123abcd.log"
        for entry in task.staged.segments
    }


def test_segments_roll_at_segment_ms() -> None:
    days = [0, 1, 6, 7, 8, 9, 14, 30]
    rows = pa.table(
        {
            "value": [str(day) for day in days],
            "timestamp": pa.array([NOW_MS + day * 86_400_000 for day in days], pa.timestamp("ms")),
        }
    )
    task = stage_rows(topic_state(1, **ANY_TIME), rows, {"batch.size": "0"})
    values = [row.value for row in task.rows(0)]
    by_segment = [
        values[entry["base_offset"] : entry["next_offset"]] for entry in task.staged.segments
    ]
    assert by_segment == [[b"0", b"1", b"6", b"7"], [b"8", b"9", b"14"], [b"30"]]


@settings(max_examples=40, deadline=None)
@given(
    times=st.lists(st.integers(-1, 400_000_000), min_size=1, max_size=60),
    config=st.sampled_from(
        [
            {},
            {"segment_ms": "100000000"},
            {"index_interval_bytes": "0", "segment_index_bytes": "36"},
        ]
    ),
)
def test_segments_roll_where_a_broker_rolls(times: list[int], config: dict[str, str]) -> None:
    rows = pa.table({"value": ["v" * 40] * len(times), "timestamp": pa.array(times, MS)})
    options = {"batch.size": "170", "segment.bytes": "2000", "compression.type": "none"}
    task = stage_rows(topic_state(1, **config), rows, options)
    data = task.log_bytes(0)
    limits = task.plan.settings.limits
    roll_plan = plan_rolls(
        batches_as_appends(scan_batches(data, 0, len(data))), OpenSegment(0, 0, NOW_MS), limits
    )
    assert roll_plan.base_offsets.tolist() == [e["base_offset"] for e in task.staged.segments]


def test_batch_that_compression_makes_too_large_is_split() -> None:
    """Noise does not compress: 18 records are 2023 bytes uncompressed, and 2031 as lz4."""
    noise = np.random.default_rng(1).bytes(20_000)
    rows = pa.table({"value": [noise[i : i + 100] for i in range(0, 20_000, 100)]})
    for codec, limit, max_count in (("none", 2024, 18), ("lz4", 2024, 8), ("lz4", 2036, 18)):
        options = {"max.message.bytes": str(limit), "compression.type": codec}
        task = stage_rows(topic_state(), rows, options)
        data = task.log_bytes(0)
        batches = scan_batches(data, 0, len(data))
        assert int((batches.ends - batches.starts).max()) <= limit
        assert int(batches.headers["count"].max()) == max_count
        assert batches.headers["base_sequence"].tolist() == batches.base_offsets.tolist()
        assert [row.value for row in task.rows(0)] == rows["value"].to_pylist()


def test_record_larger_than_a_batch_is_written_if_it_compresses() -> None:
    rows = pa.table({"value": ["a", "b" * 100_000, "c"]})
    task = stage_rows(topic_state(), rows, {"max.message.bytes": "1000"})
    assert [e["batch_count"] for e in task.staged.segments] == [3]
    assert [row.value for row in task.rows(0)] == [b"a", b"b" * 100_000, b"c"]


def test_too_large_record_is_named() -> None:
    noise = np.random.default_rng(1).bytes(5000)
    rows = pa.table({"value": [b"a"] * 7 + [noise], "partition": [0, 1] * 4})
    with pytest.raises(KlogError, match=r"orders: row 7: .* max.message.bytes allows 4000"):
        stage_rows(topic_state(2), rows, {"max.message.bytes": "4000"})
    with pytest.raises(KlogError, match=r"row 7: .* segment.bytes allows 4000"):
        stage_rows(topic_state(2), rows.to_batches(max_chunksize=3), {"segment.bytes": "4000"})


def test_log_append_time_is_the_time_of_staging() -> None:
    state = topic_state(message_timestamp_type="LogAppendTime")
    task = stage_rows(state, numbered(3))
    assert {(row.timestamp, row.timestamp_type) for row in task.rows(0)} == {(NOW_MS, 1)}
    (entry,) = task.staged.segments
    assert (entry["min_timestamp_ms"], entry["max_timestamp_ms"]) == (NOW_MS, NOW_MS)


def test_offsets_and_epochs_continue_from_the_state() -> None:
    state = topic_state(2)
    first = stage_rows(state, pa.table({"value": ["a"] * 5, "partition": [1] * 5}))
    entries = [{**entry, "leader_epoch": 7, "version": 41} for entry in first.staged.segments]
    segments = live_segments.LiveSegments.of(
        pa.Table.from_pylist(entries, live_segments.ROW_SCHEMA)
    )
    state = replace(state, version=41, log_end=(0, 5), live=segments)
    task = stage_rows(state, pa.table({"value": ["b"] * 2, "partition": [0, 1]}))
    first_segment, next_segment = task.staged.segments
    assert (
        first_segment["base_offset"],
        next_segment["base_offset"],
        next_segment["next_offset"],
    ) == (0, 5, 6)
    assert first_segment["leader_epoch"] == 0
    assert next_segment["leader_epoch"] == 7, "epochs never fall along a log"
    assert next_segment["file"] == f"{TOPIC}-1/{5:020d}-{41:010d}-0123abcd.log"
    assert (task.staged.topic_id, task.staged.base_version, task.staged.partitions) == (
        "an id",
        41,
        2,
    )
    data = task.bytes_of(next_segment)
    header = scan_batches(data, 0, len(data)).headers[0]
    producer = producer_identity("a writer", 0, 40_000)
    assert (header["producer_id"], header["producer_epoch"]) == (
        producer.producer_id,
        producer.epoch,
    )
    assert (header["base_sequence"], header["base_offset"]) == (0, 5)
    assert not header["attributes"] & v2.TRANSACTIONAL


@pytest.mark.parametrize("chunk_rows", [1000, MAX_CHUNK_ROWS])
def test_memory_is_bounded_and_each_partition_is_one_file(chunk_rows: int) -> None:
    """Batches that `buffer.memory` has no room for wait on disk."""
    spool_file = _MeasuredFile()
    rows = 40_000
    options = {"buffer.memory": "400000", "batch.size": "10000", "compression.type": "none"}
    wide = pa.table(
        {
            "key": pa.array([str(i) for i in range(rows)]),
            "value": numbered(rows, 50)["value"],
        }
    )
    task = stage_rows(
        topic_state(8), wide.to_batches(chunk_rows), options, open_file=lambda: spool_file
    )
    assert task.store.requests["put"] == 3 * 8
    assert spool_file.closed
    assert spool_file.max_bytes > 2_000_000
    assert sum(len(task.rows(partition)) for partition in range(8)) == rows


def test_batches_within_buffer_memory_stay_in_memory() -> None:
    def fail_to_open() -> Any:
        raise AssertionError("a file was opened")

    stage_rows(topic_state(8), numbered(20_000), open_file=fail_to_open)


def test_full_disk_names_buffer_memory() -> None:
    def open_on_full_disk() -> Any:
        raise OSError(28, "No space left on device")

    with pytest.raises(KlogError, match=r"No space left on device.*buffer\.memory"):
        stage_rows(
            topic_state(), numbered(20_000), {"buffer.memory": "1000"}, open_file=open_on_full_disk
        )


class _MeasuredFile(BytesIO):
    """A file that records its largest size."""

    max_bytes = 0

    def write(self, data: Any) -> int:
        count = super().write(data)
        self.max_bytes = max(self.max_bytes, self.tell())
        return count


def test_rows_may_be_a_table_a_batch_a_reader_or_an_iterator() -> None:
    rows = numbered(10)
    reader = pa.RecordBatchReader.from_batches(rows.schema, rows.to_batches())

    def batches() -> Iterator[pa.RecordBatch]:
        yield from rows.to_batches(max_chunksize=4)

    expected = stage_rows(topic_state(), rows).log_bytes(0)
    for input_rows in (rows.to_batches()[0], reader, batches()):
        assert stage_rows(topic_state(), input_rows).log_bytes(0) == expected


def test_no_rows_make_no_files() -> None:
    task = stage_rows(topic_state(), numbered(0))
    assert (task.staged.segments, task.store.files) == ([], {})
