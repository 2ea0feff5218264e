"""Staging: what is given is in the files once, in order, and the entries say what the files do."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from io import BytesIO
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from klog.connector.log import live
from klog.connector.sink import topic_stage
from klog.connector.sink.identity import identity_of
from klog.connector.sink.rows import PIECE_ROWS
from klog.errors import KlogError
from klog.logformat import batch as v2
from klog.logformat.codecs import NAMES
from klog.logformat.compiled.compiling import Rented, writing_loops
from klog.logformat.encode import encode
from klog.logformat.form import Form
from klog.logformat.headers import HEADERS_TYPE
from klog.logformat.indexing import appends_of, index_batches
from klog.logformat.offset_index import encode_offset_index
from klog.logformat.records import Records
from klog.logformat.rolling import OpenSegment, plan_rolls
from klog.logformat.time_index import encode_time_index
from tests.commits.logs import ROOT, TOPIC
from tests.sink.staging import NOW_MS, staged, topic

MS = pa.timestamp("ms")
BYTES = st.none() | st.binary(max_size=30)
HEADERS = st.lists(st.tuples(st.text(max_size=5), BYTES), max_size=3)
ROWS = st.lists(st.tuples(BYTES, BYTES, HEADERS, st.integers(-1, 1 << 42), st.integers(0, 3)))
ANY_TIME = {"message_timestamp_after_max_ms": str((1 << 63) - 1)}
SMALL = {"batch.size": "150", "segment.bytes": "400"}


def table(rows: list[Any]) -> pa.Table:
    """Make a table of (key, value, headers, timestamp, partition)."""
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
    """Make rows of one partition, a millisecond apart, that compress to little."""
    return pa.table(
        {
            "value": pa.array([str(i).zfill(value_bytes).encode() for i in range(count)]),
            "timestamp": pa.array(np.arange(count) + NOW_MS, pa.int64()).cast(pa.timestamp("ms")),
        }
    )


def test_many_rows_go_on_by_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once a process has written so many; a log is the same, wherever in it that is."""
    batches = numbered(3000, value_bytes=500).to_batches(max_chunksize=100)
    expected = staged(topic(), batches).log_bytes(0)
    loaded: list[ModuleType | None] = []

    def load() -> ModuleType | None:
        loaded.append(writing_loops())
        return loaded[-1]

    for worth, times in ((-1, 2), (2500, 1), (1 << 40, 0)):
        loaded.clear()
        by_loops = partial(encode, loops=Rented(load, worth))
        monkeypatch.setattr(topic_stage, "encode", by_loops)
        assert staged(topic(), batches).log_bytes(0) == expected
        assert (len(loaded), None in loaded) == (times, False)


@settings(max_examples=60, deadline=None)
@given(
    rows=ROWS,
    cuts=st.integers(1, 7),
    codec=st.sampled_from(NAMES),
    options=st.sampled_from([{}, SMALL, {"batch.size": "0"}, SMALL | {"buffer.memory": "0"}]),
)
def test_what_is_given_is_read_back(
    rows: list[Any], cuts: int, codec: str, options: dict[str, str]
) -> None:
    batches = table(rows).to_batches(max_chunksize=cuts)
    done = staged(topic(4, **ANY_TIME), batches, options | {"compression.type": codec})
    for partition in range(4):
        own = [row for row in rows if row[4] == partition]
        found = done.rows(partition)
        assert [(r.key, r.value, list(r.headers), r.timestamp) for r in found] == [
            row[:4] for row in own
        ]
        assert [r.offset for r in found] == list(range(len(own)))
    places = [(entry["partition"], entry["base_offset"]) for entry in done.staged.segments]
    assert places == sorted(places)


@settings(max_examples=40, deadline=None)
@given(rows=ROWS, cuts=st.integers(1, 9), batch_size=st.sampled_from([0, 90, 200, 1000]))
def test_batches_are_those_of_one_encoder(rows: list[Any], cuts: int, batch_size: int) -> None:
    """However the rows come, while memory lasts."""
    rows = [(*row[:4], 0) for row in rows]
    given_rows = table(rows)
    batches = given_rows.to_batches(max_chunksize=cuts)
    done = staged(topic(1, **ANY_TIME), batches, {"batch.size": str(batch_size)})
    identity = identity_of("a writer", 0, 40_000)
    form = Form(
        batch_bytes=batch_size,
        codec=NAMES.index("zstd"),
        leader_epoch=0,
        producer_id=identity.producer_id,
        producer_epoch=identity.epoch,
        base_sequence=0,
    )
    timestamps = given_rows["timestamp"].cast(pa.int64())
    records = Records(timestamps, given_rows["key"], given_rows["value"], given_rows["headers"])
    assert done.log_bytes(0) == b"".join(encode(records, form))


def test_many_rows_fill_batches_however_they_come() -> None:
    rows = numbered(30_000, 100)
    options = {"batch.size": "20000", "compression.type": "none"}
    whole = staged(topic(), rows, options).log_bytes(0)
    batches = v2.scan(whole, 0, len(whole))
    # A record has 8 to 11 bytes beside its value.
    assert set(batches.headers["count"][:-1].tolist()) <= set(range(179, 185))
    assert len(batches) > 100
    assert staged(topic(), rows.to_batches(max_chunksize=777), options).log_bytes(0) == whole
    sequences = batches.headers["base_sequence"].tolist()
    assert sequences == batches.base_offsets.tolist(), "sequences count from 0 as offsets do here"


@pytest.mark.parametrize("codec", NAMES)
def test_every_codec_is_said_by_file_and_entry(codec: str) -> None:
    done = staged(topic(), numbered(5000), {"compression.type": codec})
    assert [entry["codec"] for entry in done.staged.segments] == [codec]
    assert [row.value for row in done.rows(0)] == numbered(5000)["value"].to_pylist()


def test_small_partitions_cost_one_put_each() -> None:
    rows = pa.table({"value": ["a"] * 12, "partition": list(range(6)) * 2})
    done = staged(topic(6), rows)
    assert done.store.requests == {"put": 6}
    assert sorted(done.store.files) == [
        f"{ROOT}/{TOPIC}-{partition}/{0:020d}-{0:010d}-0123abcd.log" for partition in range(6)
    ]
    assert {(e["index_bytes"], e["time_index_bytes"]) for e in done.staged.segments} == {(0, 0)}


def test_large_segments_have_the_indexes_that_a_broker_makes() -> None:
    done = staged(topic(), numbered(20_000), {"batch.size": "2000", "compression.type": "none"})
    (entry,) = done.staged.segments
    assert done.store.requests == {"put": 3}
    data = done.bytes_of(entry)
    index, time_index = index_batches(v2.scan(data, 0, len(data)), 0)
    assert len(index) > 50
    assert done.bytes_of(entry, ".index") == encode_offset_index(index)
    assert done.bytes_of(entry, ".timeindex") == encode_time_index(time_index)
    assert entry["index_bytes"] == 8 * len(index)
    assert entry["time_index_bytes"] == 12 * len(time_index)


def test_the_log_is_put_before_its_indexes() -> None:
    """Vacuum finds what a killed writer left by its log."""
    done = staged(topic(), numbered(20_000), {"batch.size": "2000", "compression.type": "none"})
    assert [path.rpartition(".")[2] for path in done.store.files] == ["log", "index", "timeindex"]


@pytest.mark.parametrize(("size", "files"), [(65535, 1), (65536, 3)])
def test_indexes_begin_at_sixteen_intervals(size: int, files: int) -> None:
    value = bytes(size - 61 - 11)  # a batch's header, and a record's seven other fields
    done = staged(topic(), pa.table({"value": [value]}), {"compression.type": "none"})
    assert done.staged.segments[0]["size_bytes"] == size
    assert done.store.requests["put"] == files


def test_segments_roll_at_segment_bytes() -> None:
    options = {"segment.bytes": "10000", "batch.size": "1000", "compression.type": "none"}
    done = staged(topic(), numbered(2000), options)
    sizes = [entry["size_bytes"] for entry in done.staged.segments]
    assert max(sizes) <= 10000
    assert min(sizes[:-1]) > 9000
    assert len(done.rows(0)) == 2000
    for before, behind in zip(done.staged.segments, done.staged.segments[1:], strict=False):
        assert before["next_offset"] == behind["base_offset"]
    names = {entry["file"] for entry in done.staged.segments}
    assert names == {
        f"{TOPIC}-0/{entry['base_offset']:020d}-{0:010d}-0123abcd.log"
        for entry in done.staged.segments
    }


def test_segments_roll_at_segment_ms() -> None:
    days = [0, 1, 6, 7, 8, 9, 14, 30]
    rows = pa.table(
        {
            "value": [str(day) for day in days],
            "timestamp": pa.array([NOW_MS + day * 86_400_000 for day in days], pa.timestamp("ms")),
        }
    )
    done = staged(topic(1, **ANY_TIME), rows, {"batch.size": "0"})
    found = [[row.value for row in done.rows(0)][e["base_offset"] : e["next_offset"]]
             for e in done.staged.segments]  # fmt: skip
    assert found == [[b"0", b"1", b"6", b"7"], [b"8", b"9", b"14"], [b"30"]]


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
def test_segments_roll_where_a_brokers_would(times: list[int], config: dict[str, str]) -> None:
    rows = pa.table({"value": ["v" * 40] * len(times), "timestamp": pa.array(times, MS)})
    options = {"batch.size": "170", "segment.bytes": "2000", "compression.type": "none"}
    done = staged(topic(1, **config), rows, options)
    data = done.log_bytes(0)
    limits = done.plan.settings.limits
    planned = plan_rolls(appends_of(v2.scan(data, 0, len(data))), OpenSegment(0, 0, NOW_MS), limits)
    assert planned.base_offsets.tolist() == [e["base_offset"] for e in done.staged.segments]


def test_a_batch_that_compression_makes_too_large_is_made_smaller() -> None:
    """Noise does not compress: 18 records are 2023 bytes as they are, and 2031 as lz4."""
    noise = np.random.default_rng(1).bytes(20_000)
    rows = pa.table({"value": [noise[i : i + 100] for i in range(0, 20_000, 100)]})
    for codec, limit, most in (("none", 2024, 18), ("lz4", 2024, 8), ("lz4", 2036, 18)):
        options = {"max.message.bytes": str(limit), "compression.type": codec}
        done = staged(topic(), rows, options)
        data = done.log_bytes(0)
        batches = v2.scan(data, 0, len(data))
        assert int((batches.ends - batches.starts).max()) <= limit
        assert int(batches.headers["count"].max()) == most
        assert batches.headers["base_sequence"].tolist() == batches.base_offsets.tolist()
        assert [row.value for row in done.rows(0)] == rows["value"].to_pylist()


def test_a_record_may_be_larger_than_a_batch_if_it_is_encoded_smaller() -> None:
    rows = pa.table({"value": ["a", "b" * 100_000, "c"]})
    done = staged(topic(), rows, {"max.message.bytes": "1000"})
    assert [e["batch_count"] for e in done.staged.segments] == [3]
    assert [row.value for row in done.rows(0)] == [b"a", b"b" * 100_000, b"c"]


def test_a_record_that_is_too_large_is_named() -> None:
    noise = np.random.default_rng(1).bytes(5000)
    rows = pa.table({"value": [b"a"] * 7 + [noise], "partition": [0, 1] * 4})
    with pytest.raises(KlogError, match=r"orders: row 7: .* max.message.bytes allows 4000"):
        staged(topic(2), rows, {"max.message.bytes": "4000"})
    with pytest.raises(KlogError, match=r"row 7: .* segment.bytes allows 4000"):
        staged(topic(2), rows.to_batches(max_chunksize=3), {"segment.bytes": "4000"})


def test_log_append_time_is_the_time_of_staging() -> None:
    state = topic(message_timestamp_type="LogAppendTime")
    done = staged(state, numbered(3))
    assert {(row.timestamp, row.timestamp_type) for row in done.rows(0)} == {(NOW_MS, 1)}
    (entry,) = done.staged.segments
    assert (entry["min_timestamp_ms"], entry["max_timestamp_ms"]) == (NOW_MS, NOW_MS)


def test_offsets_and_epochs_go_on_from_the_state() -> None:
    state = topic(2)
    first = staged(state, pa.table({"value": ["a"] * 5, "partition": [1] * 5}))
    rows = [{**entry, "leader_epoch": 7, "version": 41} for entry in first.staged.segments]
    segments = live.Live.of(pa.Table.from_pylist(rows, live.ROWS))
    state = replace(state, version=41, log_end=(0, 5), live=segments)
    done = staged(state, pa.table({"value": ["b"] * 2, "partition": [0, 1]}))
    new, old = done.staged.segments
    assert (new["base_offset"], old["base_offset"], old["next_offset"]) == (0, 5, 6)
    assert (new["leader_epoch"], old["leader_epoch"]) == (0, 7), "epochs never fall along a log"
    assert old["file"] == f"{TOPIC}-1/{5:020d}-{41:010d}-0123abcd.log"
    assert (done.staged.topic_id, done.staged.birth, done.staged.partitions) == ("an id", 41, 2)
    data = done.bytes_of(old)
    header = v2.scan(data, 0, len(data)).headers[0]
    identity = identity_of("a writer", 0, 40_000)
    assert (header["producer_id"], header["producer_epoch"]) == (
        identity.producer_id,
        identity.epoch,
    )
    assert (header["base_sequence"], header["base_offset"]) == (0, 5)
    assert not header["attributes"] & v2.TRANSACTIONAL


@pytest.mark.parametrize("chunk_rows", [1000, PIECE_ROWS])
def test_memory_is_bounded_and_files_are_few(chunk_rows: int) -> None:
    """Beyond `buffer.memory` batches wait on disk, and each partition is still one file."""
    spooled = _Watched()
    rows = 40_000
    options = {"buffer.memory": "400000", "batch.size": "10000", "compression.type": "none"}
    wide = pa.table(
        {
            "key": pa.array([str(i) for i in range(rows)]),
            "value": numbered(rows, 50)["value"],
        }
    )
    done = staged(topic(8), wide.to_batches(chunk_rows), options, open_file=lambda: spooled)
    assert done.store.requests["put"] == 3 * 8
    assert spooled.closed
    assert spooled.most_bytes > 2_000_000
    assert sum(len(done.rows(partition)) for partition in range(8)) == rows


def test_without_need_nothing_goes_to_disk() -> None:
    def refuse() -> Any:
        raise AssertionError("a file was opened")

    staged(topic(8), numbered(20_000), open_file=refuse)


def test_a_full_disk_is_told_in_words() -> None:
    def full() -> Any:
        raise OSError(28, "No space left on device")

    with pytest.raises(KlogError, match=r"No space left on device.*buffer\.memory"):
        staged(topic(), numbered(20_000), {"buffer.memory": "1000"}, open_file=full)


class _Watched(BytesIO):
    """A file that knows how large it has been."""

    most_bytes = 0

    def write(self, data: Any) -> int:
        count = super().write(data)
        self.most_bytes = max(self.most_bytes, self.tell())
        return count


def test_rows_come_as_table_batch_reader_or_any_batches() -> None:
    rows = numbered(10)
    reader = pa.RecordBatchReader.from_batches(rows.schema, rows.to_batches())

    def batches() -> Iterator[pa.RecordBatch]:
        yield from rows.to_batches(max_chunksize=4)

    expected = staged(topic(), rows).log_bytes(0)
    for given_rows in (rows.to_batches()[0], reader, batches()):
        assert staged(topic(), given_rows).log_bytes(0) == expected


def test_no_rows_are_no_files() -> None:
    done = staged(topic(), numbered(0))
    assert (done.staged.segments, done.store.files) == ([], {})
