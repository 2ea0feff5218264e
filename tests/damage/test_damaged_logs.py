"""What klog answers to a damaged log directory: the rows that are right, or an error that helps.

The rule: each damage is done to a copy of what a real broker left, mostly a row of the tables in
`damage_tables.py`; the answer is compared with what the consumer read before the damage.
"""

from __future__ import annotations

import shutil
import struct
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import google_crc32c
import pytest

from klog.connector.kafka_dir.raw_root import RawRoot
from klog.errors import CorruptFileError, KlogError, OptionError
from tests.corpus import damage, hostile, scene
from tests.corpus.damage import Spot, batches, segments
from tests.damage.damage_cases import (
    LEVELS,
    LOG_START,
    MARKER,
    RECOVERY_POINT,
    Case,
    Hurt,
    Refused,
    by_partition,
    check_refused,
    copied,
    nothing,
    read,
    read_both,
    truth,
)
from tests.damage.damage_kinds import fill_with_zeros, flip, remove, shorten, take_from
from tests.damage.damage_tables import ANSWERED, DAMAGED_BATCHES, LENGTH, REFUSED
from tests.support.project import PROJECT
from tests.support.sampled_cases import sampled
from tests.support.waiting import TIMEOUT_SECONDS


def of(cases: list[Case], often: int = 1) -> pytest.MarkDecorator:
    """Run a test for cases; of as many as `often` says, all but one run with `make full` only."""
    marked = sampled(cases, often, pytest.mark.full)
    return pytest.mark.parametrize("case", marked, ids=lambda case: case.name.replace(" ", "-"))


@of(REFUSED)
def test_damage_is_an_error_that_names_its_place(case: Case, tmp_path: Path) -> None:
    directory, spot = case.damaged(tmp_path)
    assert isinstance(case.expected, Refused)
    for level in LEVELS:
        with pytest.raises(CorruptFileError) as caught:
            read(directory, level)
        check_refused(caught.value, directory, spot, case.expected.words)


@of(REFUSED)
def test_other_partitions_stay_readable(case: Case, tmp_path: Path) -> None:
    other = copied("records", "codecs.mixed", tmp_path)
    directory, _ = case.damaged(tmp_path)
    assert directory.parent == other.parent
    assert read_both(other) == truth("records", "codecs.mixed")


@of(ANSWERED)
def test_the_rows_are_the_right_ones(case: Case, tmp_path: Path) -> None:
    directory, spot = case.damaged(tmp_path)
    assert not isinstance(case.expected, Refused)
    expected = case.expected(truth(case.scene, case.topic, case.partition), spot)
    assert read_both(directory) == expected


@of([case for case in ANSWERED if case.expected is not nothing], often=4)
def test_parts_of_the_rows_in_many_slices(case: Case, tmp_path: Path) -> None:
    directory, spot = case.damaged(tmp_path)
    assert not isinstance(case.expected, Refused)
    expected = case.expected(truth(case.scene, case.topic, case.partition), spot)
    differ = expected["read_committed"] != expected["read_uncommitted"]
    stable = expected["read_committed"] or expected["read_uncommitted"][:1]
    for level in LEVELS if differ else LEVELS[1:]:
        rows = expected[level]
        assert read(directory, level, minPartitions="8") == rows
        for at in (stable[len(stable) // 3], stable[-1]):
            place = by_partition(directory, at)
            after = read(directory, level, minPartitions="8", startingOffsets=place)
            assert after == [offset for offset in rows if offset >= at], f"from {at}"
            before = read(directory, level, minPartitions="8", endingOffsets=place)
            assert before == [offset for offset in rows if offset < at], f"up to {at}"


@of(DAMAGED_BATCHES[:6])
def test_the_position_is_the_files_in_many_slices_too(case: Case, tmp_path: Path) -> None:
    directory, spot = case.damaged(tmp_path)
    for level in LEVELS:
        with pytest.raises(CorruptFileError) as caught:
            read(directory, level, minPartitions="40")
        check_refused(caught.value, directory, spot, "CRC-32C")


def test_a_last_batch_torn_at_every_byte(tmp_path: Path) -> None:
    directory = copied("records", "segments", tmp_path, 1)
    damage.unclean(directory)
    log = segments(directory)[0]
    content, last = log.read_bytes(), batches(log)[-1]
    expected = [o for o in truth("records", "segments", 1)[LEVELS[0]] if o < last.base_offset]
    for kept in range(last.size):
        log.write_bytes(content[: last.position + kept])
        assert read(directory, LEVELS[1]) == expected, f"{kept} bytes of the last batch are left"


def test_a_first_batch_torn_at_every_byte(tmp_path: Path) -> None:
    directory = copied("records", "segments", tmp_path, 1)
    damage.unclean(directory)
    log = segments(directory)[0]
    content = log.read_bytes()
    for kept in range(batches(log)[0].size):
        log.write_bytes(content[:kept])
        assert read(directory, LEVELS[1]) == [], f"{kept} bytes of the first batch are left"


@pytest.mark.parametrize("segment", sampled([-1, 0], 2, pytest.mark.full))
@pytest.mark.parametrize("batch", sampled([-1, 0, 3], 2, pytest.mark.full))
def test_a_bit_flipped_at_every_byte(segment: int, batch: int, tmp_path: Path) -> None:
    """Each is an error that names the file, or changes nothing: the leader epoch.

    A base offset that has risen in the last batch of the log cannot be told from a gap.
    """
    directory = copied("records", "segments", tmp_path)
    log = segments(directory)[segment]
    content, at = log.read_bytes(), batches(log)[batch]
    expected = truth("records", "segments")[LEVELS[1]]
    wrong = []
    for byte in range(at.size):
        if 12 <= byte < 16 or (byte < 8 and (segment, batch) == (-1, -1)):
            continue
        data = bytearray(content)
        data[at.position + byte] ^= 1 << byte % 8
        log.write_bytes(data)
        actual = _answer(directory, expected)
        if actual not in ((str(log), at.position), (str(log), at.position + at.size)):
            wrong.append((byte, actual))
    assert wrong == []


@pytest.mark.parametrize("segment", [0, 2, -1])
def test_the_rest_is_read_around_a_bad_batch(segment: int, tmp_path: Path) -> None:
    """The error says to do so, as a consumer does that seeks past the batch."""
    directory = copied("records", "segments", tmp_path)
    spot = flip(segment, 4)(directory)
    assert isinstance(spot, Spot)
    rows = truth("records", "segments")
    for level in LEVELS:
        after = read(directory, level, startingOffsets=by_partition(directory, spot.offset + 5))
        assert after == [offset for offset in rows[level] if offset >= spot.offset + 5]
        before = read(directory, level, endingOffsets=by_partition(directory, spot.offset))
        assert before == [offset for offset in rows[level] if offset < spot.offset]


def test_a_marker_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    """Offset 18 was committed by the marker at 66, two segments on, whose bytes are bad."""
    directory = copied("killed", "killed.txn", tmp_path)
    spot = flip(2, 4)(directory)
    assert isinstance(spot, Spot)
    assert spot.offset == 66
    with pytest.raises(CorruptFileError) as caught:
        read(directory, "read_committed", endingOffsets=by_partition(directory, 24))
    check_refused(caught.value, directory, spot, "marker")
    there = read(directory, "read_uncommitted", endingOffsets=by_partition(directory, 23))
    assert there == [*range(13), *range(14, 23)]


TIMES = [
    ("whole", lambda directory: None),
    ("missing", remove("*.timeindex")),
    ("empty", lambda directory: fill_with_zeros(directory, "*.timeindex", 0)),
    ("only zeros", lambda directory: fill_with_zeros(directory, "*.timeindex", 504)),
    ("torn", shorten(".timeindex", 2, 5)),
    ("torn, active", shorten(".timeindex", -1, 5)),
    ("the last entry lost", shorten(".timeindex", 2, 12)),
    ("falling", lambda directory: _reverse(segments(directory)[2].with_suffix(".timeindex"))),
    ("of a later segment", take_from(2, 4, ".timeindex")),
    ("of an earlier segment", take_from(2, 0, ".timeindex")),
    ("index missing too", remove("*.timeindex", "*.index")),
]


@pytest.mark.parametrize(("name", "hurt"), TIMES, ids=[name for name, _ in TIMES])
def test_times_are_found_without_a_good_time_index(name: str, hurt: Hurt, tmp_path: Path) -> None:
    records = [r for r in scene("records").records() if (r.topic, r.partition) == ("segments", 0)]
    directory = copied("records", "segments", tmp_path)
    hurt(directory)
    for at in (0, 1, 79, 80, 81, 99, 119, 120, 199):
        for late in (0, -1):
            time = records[at].timestamp + late
            first = next(r.offset for r in records if r.timestamp >= time)
            rows = read(directory, LEVELS[1], startingTimestamp=str(time))
            assert rows == list(range(first, 200)), f"from the time of offset {at}, {late} ms"


HOSTILE: list[tuple[str, Callable[[Path], Spot], str]] = [
    *((f"bomb of codec {codec}", partial(hostile.append_bomb, codec=codec), "more than")
      for codec in (hostile.GZIP, hostile.LZ4, hostile.ZSTD)),
    *((f"claim of codec {codec}", partial(hostile.append_claim, codec=codec), "")
      for codec in (hostile.SNAPPY, hostile.LZ4, hostile.ZSTD)),
    ("count of records", hostile.append_record_count, "records"),
    ("count of records within offsets", lambda directory: _append_count(directory), "records"),
    ("length of a batch", lambda directory: _lengthen(directory), ""),
]  # fmt: skip
MEASURED = """
import sys
from pathlib import Path
from benchmarks.memory import peak_mib
from klog.errors import CorruptFileError
from tests.damage.damage_cases import read
for directory in sys.argv[1:]:
    try:
        said = len(read(Path(directory), "read_committed")), 0, "", ""
    except CorruptFileError as error:
        said = -1, error.position, error.path, error.reason
    print(*said, int(peak_mib()), sep="|")
"""
MAX_MIB = 600


def _measured(directories: list[Path]) -> list[list[str]]:
    """Read in a process of its own: rows, position, path, reason, MiB at most so far."""
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, *map(str, directories)],
        capture_output=True, text=True, timeout=TIMEOUT_SECONDS, check=False, cwd=PROJECT,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return [line.split("|") for line in done.stdout.splitlines()]


def test_hostile_batches_are_refused_in_bounds(tmp_path: Path) -> None:
    directories = [copied("records", "segments", tmp_path / str(i)) for i in range(len(HOSTILE))]
    spots = [hurt(d) for (_, hurt, _), d in zip(HOSTILE, directories, strict=True)]
    wrong = []
    for (name, _, words), spot, row in zip(HOSTILE, spots, _measured(directories), strict=True):
        _, position, path, reason, mib = row
        if (int(position), path) != (spot.position, str(spot.file)) or words not in reason:
            wrong.append((name, f"{reason} at position {position}, not {spot.position}"))
        if int(mib) > MAX_MIB:
            wrong.append((name, f"{mib} MiB"))
    assert wrong == []


def test_many_batches_of_few_bytes_and_much_in_them_stay_in_bounds(tmp_path: Path) -> None:
    """Each is within the limit; together they are 900 MiB out of 30 KiB, met in one read."""
    directory = copied("records", "segments", tmp_path)
    for _ in range(30):
        hostile.append_bomb(directory, hostile.ZSTD, 30 << 20)
    [[rows, _, _, reason, mib]] = _measured([directory])
    assert int(mib) < MAX_MIB
    assert int(rows) == 230, reason


def test_two_log_dirs_that_hold_a_partition_are_refused(tmp_path: Path) -> None:
    here = copied("jbod", "spread", tmp_path / "a", 0)
    there = copied("jbod", "spread", tmp_path / "b", 0)
    with pytest.raises(KlogError) as caught:
        read(here, LEVELS[1], [here.parent, there.parent])
    assert all(word in str(caught.value) for word in ("spread-0", str(here), str(there)))


def test_two_log_dirs_are_one_broker(tmp_path: Path) -> None:
    directories = [copied("jbod", "spread", tmp_path, partition) for partition in range(6)]
    roots = sorted({directory.parent for directory in directories})
    assert len(roots) == 2
    for partition, directory in enumerate(directories):
        assert read(directory, LEVELS[1], roots) == truth("jbod", "spread", partition)[LEVELS[1]]


@pytest.mark.parametrize("ending", ["delete", "future", "stray"])
def test_a_replica_on_its_way_is_no_partition(ending: str, tmp_path: Path) -> None:
    directory = copied("records", "segments", tmp_path)
    away = directory.with_name(f"{directory.name}.{'0123456789abcdef' * 2}-{ending}")
    shutil.copytree(directory, away)
    assert read_both(directory) == truth("records", "segments")
    assert [str(name) for name in RawRoot([str(directory.parent)]).partitions()] == ["segments-0"]
    shutil.rmtree(directory)
    with pytest.raises(OptionError, match="no topic segments"):
        read(directory, LEVELS[1])


def test_an_empty_directory_is_an_empty_partition(tmp_path: Path) -> None:
    directory = copied("records", "segments", tmp_path)
    for path in directory.iterdir():
        path.unlink()
    assert read_both(directory) == {level: [] for level in LEVELS}


def test_a_file_where_a_directory_is_expected(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    directory = copied("records", "segments", tmp_path)
    (directory.parent / "segments-7").write_bytes(b"a file")
    assert read_both(directory) == truth("records", "segments")
    assert read(directory.parent / "segments-7", LEVELS[1]) == []
    assert "there is no partition 7 of topic segments" in caplog.text
    with pytest.raises(OptionError, match="is a file"):
        read(directory, LEVELS[1], [directory.parent / "segments-7"])
    with pytest.raises(OptionError, match="there is no directory"):
        read(directory, LEVELS[1], [directory.parent / "nowhere"])


def test_directories_where_files_are_expected(tmp_path: Path) -> None:
    directory = copied("records", "segments", tmp_path)
    for name in (MARKER, LOG_START, RECOVERY_POINT, "replication-offset-checkpoint"):
        (directory.parent / name).unlink()
        (directory.parent / name).mkdir()
    (directory / f"{0:020}.txnindex").mkdir()
    (directory / f"{40:020}.index").unlink()
    (directory / f"{40:020}.index").mkdir()
    assert read_both(directory) == truth("records", "segments")


def test_a_link_to_nowhere_is_a_stranger(tmp_path: Path) -> None:
    directory = copied("records", "segments", tmp_path)
    (directory / "notes").symlink_to(tmp_path / "nowhere")
    (directory.parent / "other-0").symlink_to(tmp_path / "nowhere")
    assert read_both(directory) == truth("records", "segments")


def _answer(directory: Path, expected: list[int]) -> object:
    try:
        rows = read(directory, LEVELS[1])
    except CorruptFileError as error:
        return error.path, error.position
    except KlogError as error:
        return str(error)
    return "the same rows" if rows == expected else f"{len(rows)} rows"


def _reverse(path: Path) -> None:
    content = path.read_bytes()
    entries = [content[at : at + 12] for at in range(0, len(content), 12)]
    path.write_bytes(b"".join(reversed(entries)))


def _append_count(directory: Path) -> Spot:
    """A batch whose offsets have room for the billion records that it claims."""
    spot = hostile.append_record_count(directory, 1 << 30)
    data = bytearray(spot.file.read_bytes())
    struct.pack_into(">i", data, spot.position + 23, 1 << 30)
    body = bytes(data[spot.position + 21 :])
    struct.pack_into(">I", data, spot.position + 17, google_crc32c.value(body))
    spot.file.write_bytes(data)
    return spot


def _lengthen(directory: Path) -> Spot:
    """A batch in the first segment claims a gigabyte more than it has."""
    spot = flip(0, 4, LENGTH, 6)(directory)
    assert isinstance(spot, Spot)
    return spot
