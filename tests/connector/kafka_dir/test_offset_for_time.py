"""Offsets by time: Kafka's rule for ListOffsets (docs/format.md, 8.2), against a plain search."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from klog.connector.kafka_dir.offset_for_time import max_timestamp_ms, offset_for_time
from klog.errors import CorruptFileError
from tests.connector.log_dirs import (
    entries_of,
    many,
    offset_index,
    open_log,
    set_checkpoint,
    time_index,
    write_log,
)
from tests.support.batch_bytes import LOG_APPEND_TIME, Record, batch, marker, plain, transactional

ENDLESS = 1 << 62
SEGMENTS = {0: [(0, 1000), (1, 3000), (2, 2000)], 3: [(3, 500), (4, 2500)], 5: [(5, 4000)]}


def first_offset(root: Path, timestamp: int, end_offset: int = ENDLESS) -> int | None:
    return offset_for_time(open_log(root), timestamp, end_offset)


def write(root: Path, segments: dict[int, list[tuple[int, int]]]) -> Path:
    return write_log(
        root, {b: [batch([Record(o, t)]) for o, t in rows] for b, rows in segments.items()}
    )


@pytest.mark.parametrize(
    ("timestamp", "offset"),
    [
        (-(1 << 40), 0),
        (0, 0),
        (999, 0),
        (1000, 0),
        (1001, 1),
        (2000, 1),
        (2500, 1),
        (3000, 1),
        (3001, 5),
        (4000, 5),
        (4001, None),
        (1 << 60, None),
    ],
)
def test_first_record_at_or_after_a_time(
    tmp_path: Path, timestamp: int, offset: int | None
) -> None:
    directory = write(tmp_path, SEGMENTS)
    assert first_offset(tmp_path, timestamp) == offset
    largest = {0: (3000, 1), 3: (2500, 4), 5: (4000, 5)}
    for base, entry in largest.items():
        (directory / f"{base:020d}.timeindex").write_bytes(time_index([entry], base))
    assert first_offset(tmp_path, timestamp) == offset


def test_a_record_inside_a_batch(tmp_path: Path) -> None:
    times = [1000, 5000, 2000, 7000]
    write_log(tmp_path, {0: [batch([Record(10 * i, t) for i, t in enumerate(times)])]})
    assert [first_offset(tmp_path, t) for t in (1, 1001, 5001, 7001)] == [0, 10, 30, None]


def test_log_append_time_is_every_records(tmp_path: Path) -> None:
    appended = batch([Record(0, 10), Record(1, 20)], attributes=LOG_APPEND_TIME, max_timestamp=900)
    write_log(tmp_path, {0: [appended]})
    assert [first_offset(tmp_path, t) for t in (15, 900, 901)] == [0, 0, None]


def test_markers_and_aborted_records_count(tmp_path: Path) -> None:
    # So they do for Spark's connector (docs/migrating.md).
    late = batch([Record(1, 9000, b"\0\0\0\0", bytes(6))], attributes=0x30, producer_id=5)
    write_log(tmp_path, {0: [transactional(0, 5), late]})
    assert first_offset(tmp_path, 1000) == 0
    assert first_offset(tmp_path, 1001) == 1


def test_batches_without_records_are_passed_over(tmp_path: Path) -> None:
    emptied = batch(base_offset=0, last_offset_delta=4, max_timestamp=9000)
    emptied_marker = batch(base_offset=5, attributes=0x30, producer_id=5, max_timestamp=9000)
    write_log(tmp_path, {0: [emptied, emptied_marker, plain(6, timestamp=8000)]})
    assert first_offset(tmp_path, 7000) == 6
    assert first_offset(tmp_path, 8500) is None


def test_records_below_the_log_start_do_not_count(tmp_path: Path) -> None:
    write_log(tmp_path, {0: [plain(0, [b"a", b"b", b"c"], 1000)], 3: many(3, 3)})
    set_checkpoint(tmp_path, "log-start-offset-checkpoint", {("t", 0): 2})
    assert first_offset(tmp_path, 0) == 2
    set_checkpoint(tmp_path, "log-start-offset-checkpoint", {("t", 0): 4})
    assert first_offset(tmp_path, 0) == 4


@pytest.mark.parametrize(("bound", "offset"), [(0, None), (3, None), (5, None), (6, 5), (9, 5)])
def test_an_answer_at_the_bound_is_none(tmp_path: Path, bound: int, offset: int | None) -> None:
    write(tmp_path, SEGMENTS)
    assert first_offset(tmp_path, 3500, bound) == offset


def test_an_empty_partition_has_no_answer(tmp_path: Path) -> None:
    write_log(tmp_path, {0: []})
    assert first_offset(tmp_path, 0) is None
    assert max_timestamp_ms(open_log(tmp_path)) is None


def test_largest_time_of_all_segments(tmp_path: Path) -> None:
    directory = write(tmp_path, {0: [(0, 1000), (1, 5000)], 2: [(2, 4000)], 3: [(3, 4500)]})
    assert max_timestamp_ms(open_log(tmp_path)) == 5000
    set_checkpoint(tmp_path, "log-start-offset-checkpoint", {("t", 0): 2})
    assert max_timestamp_ms(open_log(tmp_path)) == 4500
    for entry in ([(4000, 3)], [(9000, 3)], []):  # An index may lag or lie.
        (directory / "00000000000000000003.timeindex").write_bytes(time_index(entry))
        assert max_timestamp_ms(open_log(tmp_path)) == 4500


def test_a_rolled_segments_time_index_may_lack_its_last_entries(tmp_path: Path) -> None:
    directory = write(tmp_path, {0: [(0, 1000), (1, 3000)], 2: [(2, 4000)]})
    (directory / "00000000000000000000.timeindex").write_bytes(time_index([(1000, 0)]))
    assert first_offset(tmp_path, 2000) == 1


@pytest.mark.parametrize("entry", [(100, 2), (900, 2), (2400, 2), (999, 1), (1000, 2)])
def test_a_time_index_entry_that_lies_hides_nothing(tmp_path: Path, entry: tuple[int, int]) -> None:
    # The entry says that nothing up to its offset is later than its timestamp.
    directory = write(tmp_path, SEGMENTS)
    (directory / "00000000000000000000.timeindex").write_bytes(time_index([entry]))
    assert first_offset(tmp_path, 2500) == 1


@pytest.mark.parametrize("data", [b"x", b"garbage....!", time_index([(5000, 1), (4000, 2)])])
def test_a_malformed_time_index_is_no_hint(tmp_path: Path, data: bytes) -> None:
    directory = write(tmp_path, SEGMENTS)
    for base in SEGMENTS:
        (directory / f"{base:020d}.timeindex").write_bytes(data)
    assert first_offset(tmp_path, 2001) == 1
    assert first_offset(tmp_path, 3001) == 5


def test_the_active_segments_time_index_may_lag(tmp_path: Path) -> None:
    directory = write(tmp_path, {0: [(0, 1000), (1, 3000)]})
    (directory / "00000000000000000000.timeindex").write_bytes(time_index([(1000, 0)]))
    assert first_offset(tmp_path, 2000) == 1


@pytest.mark.parametrize("seed", range(8))
def test_any_log_with_true_indexes(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    times = [rng.randrange(1000) for _ in range(300)]
    directory = tmp_path
    bases = [0, 120, 121, 250]
    for base, end in zip(bases, [*bases[1:], 300], strict=True):
        batches = [batch([Record(i, times[i], b"k" * rng.randrange(90))]) for i in range(base, end)]
        directory = write_log(tmp_path, {base: batches})
        entries, largest = [], -1
        for number, i in enumerate(range(base, end)):
            if times[i] > largest and (number % 7 == 0 or times[i] == max(times[base:end])):
                largest = max(times[base : i + 1])
                entries.append((largest, base + times[base : i + 1].index(largest)))
        (directory / f"{base:020d}.timeindex").write_bytes(time_index(entries, base))
        (directory / f"{base:020d}.index").write_bytes(offset_index(entries_of(batches, 5), base))
    for timestamp in range(0, 1010, 13):
        plain_search = next((i for i, t in enumerate(times) if t >= timestamp), None)
        assert first_offset(tmp_path, timestamp) == plain_search, (seed, timestamp)
    assert max_timestamp_ms(open_log(tmp_path)) == max(times)


def test_damage_is_named(tmp_path: Path) -> None:
    batches = many(5)
    batches[2] = batches[2][:-1] + b"!"
    write_log(tmp_path, {0: batches, 5: many(1, 5)})
    assert first_offset(tmp_path, 1001) == 1
    with pytest.raises(CorruptFileError, match=r"t-0: corrupt log .* CRC-32C") as caught:
        first_offset(tmp_path, 1002)
    assert caught.value.position == 2 * len(batches[0])


def test_damage_after_the_first_chunk_has_its_position_in_the_file(tmp_path: Path) -> None:
    batches = many(40)
    batches[30] = batches[30][:-1] + b"!"
    directory = write_log(tmp_path, {0: batches, 40: many(1, 40)})
    (directory / "00000000000000000000.index").write_bytes(offset_index(entries_of(many(40), 5)))
    (directory / "00000000000000000000.timeindex").write_bytes(
        time_index([(1000 + i, i) for i in range(0, 40, 5)] + [(1039, 39)])
    )
    with pytest.raises(CorruptFileError, match="CRC-32C") as caught:
        first_offset(tmp_path, 1030)
    assert caught.value.position == 30 * len(batches[0])


def test_a_marker_of_the_brokers_clock(tmp_path: Path) -> None:
    write_log(tmp_path, {0: [transactional(0, 5), marker(1, 5, 0), plain(2, timestamp=7)]})
    assert first_offset(tmp_path, 5) == 0


def test_the_largest_time_is_that_of_a_record_after_the_log_start(tmp_path: Path) -> None:
    """The batch's largest time is of a record below the log start."""
    rows = [Record(0, 100), Record(1, 50), Record(2, 60)]
    write_log(tmp_path, {0: [batch(rows)]})
    assert max_timestamp_ms(open_log(tmp_path)) == 100
    set_checkpoint(tmp_path, "log-start-offset-checkpoint", {("t", 0): 1})
    assert max_timestamp_ms(open_log(tmp_path)) == 60
    assert first_offset(tmp_path, 60) == 2
    write_log(tmp_path, {0: [batch(rows), plain(3, timestamp=70)]})
    assert max_timestamp_ms(open_log(tmp_path)) == 70
