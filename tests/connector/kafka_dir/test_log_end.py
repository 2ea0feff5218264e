"""Where a log of several segments ends: as a broker's recovery would leave it, or where it says."""

from __future__ import annotations

from pathlib import Path

import pytest

from klog.errors import CorruptFileError
from tests.connector.kafka_dir.lock_holder import holding
from tests.connector.log_dirs import many, offsets, open_log, read, set_checkpoint, write_log
from tests.connector.source.test_stream_reader import latest, rows, stream
from tests.support.batch_bytes import ABORT, COMMIT, marker, plain, transactional
from tests.support.legacy_bytes import plain as legacy_plain

RECOVERY_POINT = "recovery-point-offset-checkpoint"
LEVELS = ("read_uncommitted", "read_committed")
TEN = b"".join(many(10))
TORN, FLIPPED = TEN[:-1], TEN[:-1] + b"!"
ZEROS, NO_BATCHES = bytes(5000), b"\x5a" * 300
Segments = dict[int, bytes]

# Segments by base offset, the log end, and the records that are left.
UNCLEAN: list[tuple[str, Segments, int, int]] = [
    ("torn, empty", {0: TORN, 10: b""}, 9, 9),
    ("torn, empty and empty", {0: TORN, 10: b"", 20: b""}, 9, 9),
    ("less than a header, empty", {0: TEN + b"\0" * 7, 10: b""}, 10, 10),
    ("flipped, empty", {0: FLIPPED, 10: b""}, 9, 9),
    ("zeros at the end, empty", {0: TEN + ZEROS, 10: b""}, 10, 10),
    ("torn, preallocated", {0: TORN, 10: ZEROS}, 9, 9),
    ("torn, torn", {0: TORN, 10: plain(10)[:-1]}, 9, 9),
    ("torn, garbage, empty", {0: TORN, 10: NO_BATCHES, 20: b""}, 9, 9),
    ("whole, torn, empty", {0: TEN, 10: plain(10)[:-1], 11: b""}, 10, 10),
    ("whole, empty, torn, empty", {0: TEN, 10: b"", 20: NO_BATCHES, 30: b""}, 20, 10),
    ("whole, empty", {0: TEN, 10: b""}, 10, 10),
    ("whole, empty further on", {0: TEN, 15: b""}, 15, 10),
    ("all torn", {5: NO_BATCHES, 10: NO_BATCHES}, 5, 0),
    ("messages of format v0", {0: legacy_plain([], 0) + NO_BATCHES, 10: b""}, 0, 0),
]


def written(root: Path, segments: Segments, *, clean: bool = False) -> Path:
    write_log(root, {base: [data] for base, data in segments.items()}, clean=clean)
    return root


@pytest.mark.parametrize(
    ("segments", "end", "count"), [row[1:] for row in UNCLEAN], ids=[row[0] for row in UNCLEAN]
)
def test_log_ends_where_recovery_leaves_it(
    tmp_path: Path, segments: Segments, end: int, count: int
) -> None:
    root = written(tmp_path, segments)
    log = open_log(root)
    assert (log.log_end, log.readable_end, log.last_stable_offset()) == (end, end, end)
    assert log.size_bytes == (len(many(1)[0]) * count)
    for level in LEVELS:
        assert offsets(read(root, isolationLevel=level)) == list(range(count))
        reader = stream(root, isolationLevel=level)
        start = reader.initialOffset()
        assert latest(reader, start)["t"] == {"0": end}
        assert offsets(rows(reader, start, {"t": {"0": end}})) == list(range(count))


def test_warning_names_what_is_left_out(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    open_log(written(tmp_path, {0: TORN, 10: b"", 20: b""}))
    assert sum("are a torn append" in message for message in caplog.messages) == 1
    assert sum("recovery would delete it" in message for message in caplog.messages) == 2


@pytest.mark.parametrize(
    ("recovery_point", "end"),
    [(None, 9), (0, 9), (9, 9), (10, 10), (11, 10)],
)
def test_recovery_begins_at_the_recovery_point(
    tmp_path: Path, recovery_point: int | None, end: int
) -> None:
    """Segments below it are not checked; damage in them is an error when they are read."""
    root = written(tmp_path, {0: TORN, 10: b""})
    if recovery_point is not None:
        set_checkpoint(root, RECOVERY_POINT, {("t", 0): recovery_point})
    log = open_log(root)
    assert log.log_end == end
    for level in LEVELS:
        if end == 9:
            assert offsets(read(root, isolationLevel=level)) == list(range(9))
        else:
            with pytest.raises(CorruptFileError, match=f"{0:020}.log"):
                read(root, isolationLevel=level)


@pytest.mark.parametrize("recovery_point", [5, 8, 9])
def test_of_many_segments_those_from_the_recovery_point_on(
    tmp_path: Path, recovery_point: int
) -> None:
    """Cut below the recovery point is damage, though a recovery would cut there."""
    segments = {0: b"".join(many(5)), 5: b"".join(many(5, 5))[:-1], 10: b""}
    root = written(tmp_path, segments)
    set_checkpoint(root, RECOVERY_POINT, {("t", 0): recovery_point})
    assert open_log(root).log_end == 9
    assert offsets(read(root)) == list(range(9))
    set_checkpoint(root, RECOVERY_POINT, {("t", 0): 10})
    assert open_log(root).log_end == 10
    with pytest.raises(CorruptFileError, match=f"{5:020}.log"):
        read(root)
    (root / "t-0" / f"{5:020}.log").write_bytes(b"".join(many(3, 5))[:-1])
    set_checkpoint(root, RECOVERY_POINT, {("t", 0): 8})
    with pytest.raises(CorruptFileError, match=f"{5:020}.log"):
        read(root)


def test_after_a_clean_stop_nothing_is_cut(tmp_path: Path) -> None:
    root = written(tmp_path, {0: TORN, 10: b""}, clean=True)
    assert open_log(root).log_end == 10
    for level in LEVELS:
        with pytest.raises(CorruptFileError, match=f"{0:020}.log"):
            read(root, isolationLevel=level)


def test_while_a_broker_holds_it_the_high_watermark_says(tmp_path: Path) -> None:
    with holding(tmp_path) as root:
        written(root, {0: TORN, 10: b""})
        set_checkpoint(root, "replication-offset-checkpoint", {("t", 0): 7})
        assert open_log(root).log_end == 7
        assert offsets(read(root)) == list(range(7))


@pytest.mark.parametrize("rest", [{10: plain(10)}, {10: b"", 20: plain(20)}])
@pytest.mark.parametrize("tail", [TORN, FLIPPED])
def test_an_intact_batch_in_a_later_segment_makes_it_damage(
    tmp_path: Path, tail: bytes, rest: Segments
) -> None:
    """A broker would delete that batch: klog drops nothing in silence."""
    root = written(tmp_path, {0: tail, **rest})
    assert open_log(root).log_end == max(rest) + 1
    for level in LEVELS:
        with pytest.raises(CorruptFileError, match=f"{0:020}.log"):
            read(root, isolationLevel=level)


@pytest.mark.parametrize("tail", [ZEROS, NO_BATCHES])
def test_no_record_is_lost_to_bytes_between_segments(tmp_path: Path, tail: bytes) -> None:
    """A broker would delete the later segment for them."""
    root = written(tmp_path, {0: TEN + tail, 10: plain(10)})
    for level in LEVELS:
        assert offsets(read(root, isolationLevel=level)) == list(range(11))


@pytest.mark.parametrize("kind", [ABORT, COMMIT])
def test_transactions_end_before_the_tail(tmp_path: Path, kind: int) -> None:
    """A marker that is torn off leaves its transaction open, as a recovery leaves it."""
    ended = transactional(0, 7) + marker(1, 7, kind)
    opened = transactional(2, 8) + marker(3, 8, COMMIT)
    root = written(tmp_path, {0: ended + opened[:-1], 4: b""})
    log = open_log(root)
    assert (log.log_end, log.last_stable_offset()) == (3, 2)
    assert offsets(read(root, isolationLevel="read_committed")) == ([0] if kind == COMMIT else [])
    assert offsets(read(root, isolationLevel="read_uncommitted")) == [0, 2]


def test_each_partition_for_itself(tmp_path: Path) -> None:
    write_log(tmp_path, {0: [TORN], 10: [b""]}, "t-0", clean=False)
    write_log(tmp_path, {0: [TEN], 10: [b""]}, "t-1", clean=False)
    write_log(tmp_path, {0: [TORN], 10: [plain(10)]}, "t-2", clean=False)
    assert [open_log(tmp_path, "t", number).log_end for number in range(3)] == [9, 10, 11]


def test_a_stream_goes_on_when_a_broker_has_recovered(tmp_path: Path) -> None:
    directory = write_log(tmp_path, {0: [TORN], 10: [b""]}, clean=False)
    reader = stream(tmp_path)
    end = latest(reader, reader.initialOffset())
    assert latest(reader, end) == end
    assert end["t"] == {"0": 9}
    (directory / f"{10:020}.log").unlink()
    (directory / f"{0:020}.log").write_bytes(TEN)
    now = latest(reader, end)
    assert now == {"t": {"0": 10}}
    assert offsets(rows(reader, end, now)) == [9]
