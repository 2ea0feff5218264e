"""The benchmarks run at a tiny size and measure what they say; no test judges a figure.

The tests check what makes a figure valid: the records are those of every earlier figure, all
readers see the same records in the same logs, and the peers run their fast code.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from runpy import run_path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import klog
from benchmarks import (
    ceiling,
    commit_histories,
    commits,
    decode,
    encode,
    legacy,
    lookups,
    machine,
    memory,
    peers,
    reading_less,
    report,
    size_check,
    spark_read,
    upkeep,
)
from benchmarks.__main__ import main
from benchmarks.logs import (
    FIRST_TIMESTAMP_MS,
    LARGE_BATCHES,
    SMALL_BATCHES,
    TOPIC,
    Shape,
    partition_logs,
    shape_records,
    write_log_directory,
)
from benchmarks.records import CHUNK_RECORDS, KEY_BYTES, records
from benchmarks.timing import interleaved
from klog.connector.commit_log import parquet_tables, segment_entries
from klog.connector.kafka_dir.raw_root import RawRoot
from klog.connector.segment_chunks import read_chunks
from klog.errors import UnsupportedFormatError
from klog.logformat.batches.batch_attributes import BatchAttributes
from klog.logformat.batches.batch_checksum import check_batch_crcs
from klog.logformat.batches.decode_records import decode_records as decode_columns
from klog.logformat.batches.encode_batches import encode_batches as write_batches
from klog.logformat.codecs.codec_names import CODEC_NAMES
from klog.logformat.topic_partition import TopicPartition
from tests.support.decompression import decompress
from tests.support.project import PROJECT

ORIGINAL = PROJECT.parent / "shared" / "bench" / "records.py"
"""The generator of the figures in the issues, if it is available."""

CASES = {
    (1000, 100, 1, None): "3eb6ae05bc614afcc8f8d92ddd1a436bf4356496ee3715352e4d126a73d9dedb",
    (300, 1024, 1, None): "ec06c8b3e6c659ad9d5e39d969293d02e3fac9dc74ebf7a1e960f9b939e2305f",
    (1000, 100, 7, 50): "53b5823a0f451c73b02296992c9581f779856cd9cf61cb5af3d701d27c70f6a3",
}

Record = tuple[int, int, bytes, bytes]


def written(count: int, value_bytes: int, seed: int, unique_keys: int | None) -> bytes:
    return b"".join(chunk.tobytes() for chunk in records(count, value_bytes, seed, unique_keys))


@pytest.mark.parametrize(("case", "digest"), CASES.items())
def test_records_are_those_of_earlier_figures(
    case: tuple[int, int, int, int | None], digest: str
) -> None:
    assert sha256(written(*case)).hexdigest() == digest


@pytest.mark.skipif(not ORIGINAL.exists(), reason="the original generator is missing")
@pytest.mark.parametrize("case", [*CASES, (CHUNK_RECORDS + 7, 10, 1, None)])
def test_records_are_the_original_generators(
    case: tuple[int, int, int, int | None], tmp_path: Path
) -> None:
    flat = tmp_path / "records"
    run_path(str(ORIGINAL))["gen"](flat, *case)
    assert written(*case) == flat.read_bytes()


@pytest.mark.parametrize(
    ("codec", "value_bytes", "small", "large"),
    [("none", 100, 126, 4161), ("lz4", 100, 189, 4161), ("zstd", 100, 217, 4161),
     ("none", 1024, 15, 499), ("lz4", 1024, 22, 499), ("zstd", 1024, 26, 499)],
)  # fmt: skip
def test_batches_are_as_full_as_a_producers(
    codec: str, value_bytes: int, small: int, large: int
) -> None:
    assert Shape(codec, SMALL_BATCHES, value_bytes, 1).batch_records == small
    assert Shape(codec, LARGE_BATCHES, value_bytes, 1).batch_records == large


@pytest.mark.parametrize("batch", [SMALL_BATCHES, LARGE_BATCHES])
@pytest.mark.parametrize("codec", CODEC_NAMES)
def test_every_reader_sees_the_same_records(codec: str, batch: str) -> None:
    shape = Shape(codec, batch, 100, 2000)
    rows = shape_records(shape)
    logs = list(partition_logs(shape, rows))
    for log, part in zip(logs, np.array_split(rows, len(logs)), strict=True):
        expected = [
            (i, FIRST_TIMESTAMP_MS + i, row[:KEY_BYTES].tobytes(), row[KEY_BYTES:].tobytes())
            for i, row in enumerate(part)
        ]
        assert list(seen_by_klog(log)) == expected
        assert list(seen_by(peers.aiokafka_records(log))) == expected
        if peers.kafka_python_reads(codec):  # snappy needs a library that is not in the lock
            assert list(seen_by(peers.kafka_python_records(log))) == expected


def seen_by_klog(log: bytes) -> Iterator[Record]:
    for chunk in read_chunks(decode.BytesFile(log), 0, len(log)):
        check_batch_crcs(chunk.data, chunk.batches)
        columns = decode_columns(chunk.data, chunk.batches, decode.COLUMNS)
        assert columns.timestamp_ms is not None
        assert columns.key is not None
        assert columns.value is not None
        fields = (columns.offset.tolist(), columns.timestamp_ms.tolist())
        yield from zip(*fields, columns.key.to_pylist(), columns.value.to_pylist(), strict=True)


def seen_by(peer_records: Iterator[Any]) -> Iterator[Record]:
    for record in peer_records:
        yield record.offset, record.timestamp, bytes(record.key), bytes(record.value)


@pytest.mark.parametrize("read", [decode.read_klog, peers.read_kafka_python, peers.read_aiokafka])
def test_every_reader_checks_the_crc(read: Any) -> None:
    shape = Shape("none", SMALL_BATCHES, 100, 400)
    logs = list(partition_logs(shape, shape_records(shape)))
    assert read(logs) == 400
    logs[0] = logs[0][:-20] + bytes([logs[0][-20] ^ 1]) + logs[0][-19:]
    with pytest.raises(Exception, match="CRC"):
        read(logs)


def test_the_peers_run_their_fast_code() -> None:
    implementations = peers.implementations()
    assert set(implementations) == {peers.KAFKA_PYTHON, peers.AIOKAFKA, "klog"}
    assert all(text.endswith(" GB/s") for text in implementations.values())


def test_the_offset_index_fits_its_log(tmp_path: Path) -> None:
    shape = Shape("lz4", SMALL_BATCHES, 100, 4000)
    write_log_directory(tmp_path, shape, shape_records(shape))
    name = TopicPartition("records", 3)
    log = RawRoot([str(tmp_path)]).open([name])[name]
    assert (log.log_start, log.log_end) == (0, 1000)
    reader = log.open(log.segments[0])
    kept, rebuilt = reader.index(), reader.rebuild_index()
    reader.close()
    assert len(kept.offsets) == 5
    assert set(kept.positions.tolist()) <= set(rebuilt.positions.tolist())
    at = dict(zip(rebuilt.positions.tolist(), rebuilt.offsets.tolist(), strict=True))
    assert [at[position] for position in kept.positions.tolist()] == kept.offsets.tolist()


def test_turns_are_taken_and_compared_within_a_round() -> None:
    ran: list[str] = []
    ticks = iter([0, 1, 10, 12, 20, 20.5, 100, 103, 110, 112, 120, 120.5])

    def work(name: str, count: int) -> int:
        ran.append(name)
        return count

    times = interleaved(
        {"a": lambda: work("a", 8), "b": lambda: work("b", 8), "fixed": lambda: work("fixed", 0)},
        2,
        lambda: next(ticks),
    )
    assert ran == ["a", "b", "fixed"] * 3
    assert times.seconds == {"a": [1, 3], "b": [2, 2], "fixed": [0.5, 0.5]}
    assert times.rate("b") == 4
    assert str(times.ratio("a", "b")) == "1.33 (0.67 to 2.00)"
    assert str(times.ratio("a", "b", "fixed")) == "1.80 (0.60 to 3.00)"


@pytest.mark.full  # `make bench-tiny` runs them all
def test_decode_at_a_tiny_size(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    figures = tmp_path / "figures.json"
    main(["--tiny", "--only", "decode", "--records", "400", "--json", str(figures)])
    printed = capsys.readouterr().out
    assert "`python -m benchmarks --tiny --only decode --records 400`" in printed
    assert str(tmp_path) not in printed
    assert printed.count("| 16 KiB (126) | 100 B | none |") == 1
    assert len(json.loads(figures.read_text())["decode"]) == 12


@pytest.mark.parametrize("codec", legacy.CODECS)
@pytest.mark.parametrize("magic", legacy.MAGICS)
def test_both_readers_see_the_same_older_records(magic: int, codec: str) -> None:
    shape = Shape(codec, SMALL_BATCHES, 100, 2000)
    rows = shape_records(shape)
    logs = list(legacy.partition_logs(magic, shape, rows))
    for log, part in zip(logs, np.array_split(rows, len(logs)), strict=True):
        expected = [
            (i, FIRST_TIMESTAMP_MS + i if magic else -1, row[:KEY_BYTES].tobytes(),
             row[KEY_BYTES:].tobytes())
            for i, row in enumerate(part)
        ]  # fmt: skip
        assert list(seen_by_klog(log)) == expected
        theirs = [
            (record.offset, record.timestamp or -1, bytes(record.key), bytes(record.value))
            for record in peers.kafka_python_records(log)
        ]
        assert theirs == expected


@pytest.mark.parametrize("read", [decode.read_klog, peers.read_kafka_python_legacy])
@pytest.mark.parametrize("codec", legacy.CODECS)
def test_both_readers_check_the_crcs_of_older_records(read: Any, codec: str) -> None:
    shape = Shape(codec, SMALL_BATCHES, 100, 400)
    logs = list(legacy.partition_logs(1, shape, shape_records(shape)))
    assert read(logs) == 400
    logs[0] = logs[0][:-20] + bytes([logs[0][-20] ^ 1]) + logs[0][-19:]
    with pytest.raises(Exception, match="CRC"):
        read(logs)


@pytest.mark.full  # `make bench-tiny` runs them all
def test_older_formats_at_a_tiny_size(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--tiny", "--only", "legacy", "--records", "400"])
    printed = capsys.readouterr().out
    assert printed.count("| v0 | plain | 100 B |") == 1
    assert printed.count("| v1 | lz4 (189) | 100 B |") == 1


@pytest.mark.parametrize("codec", ["none", "gzip", "lz4", "zstd"])
def test_both_writers_write_the_same_batches(codec: str) -> None:
    rows = shape_records(Shape("none", SMALL_BATCHES, 100, 500))
    columns, pairs = encode.arrow_columns(rows), encode.python_pairs(rows)
    form = BatchAttributes(
        batch_bytes=encode.small_batch_bytes(columns), codec=CODEC_NAMES.index(codec)
    )
    assert encode.records_in_a_batch(columns, form) == encode.SMALL_RECORDS
    ours = list(write_batches(columns, form))
    theirs = [
        bytes(batch) for batch in encode.kafka_python(pairs, form.codec, encode.SMALL_RECORDS)
    ]
    assert len(ours) == len(theirs) == 4
    for number, (our, their) in enumerate(zip(ours, theirs, strict=True)):
        assert our[21:61] == their[21:61]  # Producers count from 0, and leaders stamp offsets.
        assert int.from_bytes(our[:8], "big") == encode.SMALL_RECORDS * number
        assert decompress(form.codec, our[61:]) == decompress(form.codec, their[61:])


@pytest.mark.full  # `make bench-tiny` runs them all
def test_encode_at_a_tiny_size(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    figures = tmp_path / "figures.json"
    main(["--tiny", "--only", "encode", "--records", "400", "--json", str(figures)])
    printed = capsys.readouterr().out
    assert printed.count("| 150 records (150) | 100 B | zstd 1 | - |") == 1
    assert len(json.loads(figures.read_text())["encode"]) == 16


def test_a_codec_without_a_peer_has_no_ratio_to_it() -> None:
    (small, _) = decode.run([(100, 400)], ["snappy"], 1)
    assert "| snappy | - | - |" in report.decode_table([small])


@pytest.mark.full  # `make bench-tiny` runs them all
def test_commits_at_a_tiny_size() -> None:
    results = list(commits.run(replace(commits.TINY, commits=110)))
    figures = {(result.label, result.size): result.figure for result in results}
    assert all(figure > 0 for figure in figures.values())
    assert ("load and plan", "3,000 segments") in figures
    assert ("p99 / median of a commit", "5 turns of 110 commits, 5 checkpoints") in figures
    assert "| at least 200 |" in report.commits_table(results)


def test_a_state_of_the_benchmark_is_one_that_commits_follow() -> None:
    state = commit_histories.state_of(3_000, 30)
    rows = segment_entries.rows_of_partition(state.segments, 7)
    assert rows["base_offset"].to_pylist() == list(range(0, 30_000, 1000))
    assert state.live.rows()["version"].to_pylist()[:30] == list(range(1, 31))
    assert segment_entries.are_segment_paths(state.segments["file"])


def test_memory_of_a_small_segment() -> None:
    small, large = memory.run(1 << 20)
    for result in (small, large):
        assert (1 << 19) < result.segment_bytes <= 1 << 20
        assert result.records > 5000
        assert 0 < result.imported_mib <= result.peak_mib
    assert report.memory_table([small, large]).count("300 MiB") == 2


def test_the_machine_is_described_without_its_name() -> None:
    description = machine.describe() | {"load": machine.load()}
    assert all(description.values())
    assert not [text for text in description.values() if str(Path.home()) in text]


def test_ready_batches_have_klogs_columns() -> None:
    batch = ceiling.ready_batch(10, 100)
    assert batch.num_rows == 10
    assert [len(value) for value in batch["value"].to_pylist()] == [100] * 10


@pytest.mark.full  # `make bench-tiny` runs them all
def test_the_size_check_at_a_tiny_size(capsys: pytest.CaptureFixture[str]) -> None:
    """Without the check, a file loads that the check refuses."""
    main(["--tiny", "--only", "size-check"])
    output = capsys.readouterr().out
    for kind in ("checkpoint", "sidecar"):
        assert f"| load with the check / without: CPU time | {kind} of 3,000 segments, " in output
    file = size_check.sidecar_file(200)
    with pytest.MonkeyPatch.context() as small:
        small.setattr(parquet_tables, "MAX_ROWS", 199)
        assert size_check.unchecked(file.load)
        assert size_check.read_unchecked(file.data).num_rows == 200
        with pytest.raises(UnsupportedFormatError, match="it has 200 rows"):
            file.load()


@pytest.mark.full  # `make bench-tiny` runs them all
def test_reading_less_at_a_tiny_size(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    main(["--tiny", "--only", "less", "--records", "400"])
    output = capsys.readouterr().out
    assert "| count, GB of log a second | 400 records of 100 B, zstd, batches of 16 KiB" in output
    assert "| columns partition, offset / all columns | 400 records" in output
    assert "| plan, s: CPU time | 100 partitions" in output
    shape = Shape("zstd", SMALL_BATCHES, 100, 400)
    write_log_directory(tmp_path, shape, shape_records(shape))
    assert reading_less.count(tmp_path) == reading_less.scan(tmp_path, "offset") == 400


@pytest.mark.full  # `make bench-tiny-all` runs it too
def test_imports_at_a_tiny_size(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--tiny", "--only", "imports"])
    output = capsys.readouterr().out
    assert "| klog topics list, a broker's directory / import pyarrow | wall time |" in output
    for step in ("load", "plan", "task"):
        assert f"| {step}: ms of klog | CPU time, a klog root |" in output


def test_many_segments_for_lookups(tmp_path: Path) -> None:
    """A topic of as many segments as the figure says, in the order of time."""
    count = lookups.write_many_segments(tmp_path, 20)
    assert len(list(tmp_path.rglob("*.log"))) in range(18, 24)
    table = klog.open(tmp_path).scan(TOPIC).read_all()
    assert table.num_rows == count == 20 * lookups.RECORDS_A_SEGMENT
    times_ms = table["timestamp"].cast(pa.int64()).to_numpy() // 1000
    assert set(np.diff(times_ms)) == {lookups.INTERVAL_MS}


@pytest.mark.spark
@pytest.mark.full  # `make bench-tiny` runs them all
def test_spark_at_a_tiny_size(spark: SparkSession) -> None:
    (result,) = spark_read.run(spark, [(100, 400)], ["lz4"], 1)
    assert result.times.records == {"klog": 400, "Parquet": 400, "ceiling": 400, "fixed": 4}
    assert "| 16 KiB (189) | 100 B | lz4 |" in report.spark_table([result])


@pytest.mark.spark
@pytest.mark.kafka
@pytest.mark.full
def test_engines_at_a_tiny_size() -> None:
    """Its session has other jars than that of the tests, so it is a process of its own."""
    command = [sys.executable, "-m", "benchmarks", "--tiny", "--only", "engines"]
    command += ["--only", "engine-writes", "--codecs", "lz4"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=PROJECT)
    assert "| Kafka connector / klog | scan to noop, 4,000 records of 100 B, lz4 |" in done.stdout
    assert "| Parquet files / klog: triggerExecution |" in done.stdout
    assert "| Kafka sink / klog, no shuffle | 4,000 rows of 100 B, lz4 |" in done.stdout
    assert "| klog - Kafka sink: the first batch | micro-batches of 1 rows" in done.stdout


def test_a_merge_that_merges_nothing_is_no_measurement(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The exit code is 0: a single segment has nothing to merge with."""
    monkeypatch.setattr(upkeep, "APPENDS", 1)
    with pytest.raises(RuntimeError, match="nothing was merged"):
        list(upkeep.measure_merge(tmp_path, 100, 1))
