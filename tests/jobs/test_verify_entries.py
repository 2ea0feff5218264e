"""Commits that say what their files do not; segments and sequences that do not follow."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import klog
from klog.connector.commit_log import append_commit
from klog.connector.commit_log.commit import Actions
from klog.connector.commit_log.segment_entries import SegmentEntry
from klog.connector.commit_log.topic_state import TopicState
from klog.jobs.verifying.check_sequences import SequenceRuns, find_wrong_sequences, join_runs
from klog.logformat.array_types import Longs
from klog.logformat.batches.scan_batches import scan_batches
from klog.logformat.producers.producer_state import EXPIRATION_MS
from tests.jobs.verified_roots import (
    BATCHES,
    SMALL,
    START_MS,
    commit,
    commit_staged,
    kinds,
    live,
    replaced,
    rewritten,
    root_of,
    rows,
    staged,
    state_of,
    verified,
    write_root,
)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    path = tmp_path / "root"
    klog.open(str(path)).create_topic("t", 1, {**SMALL, "segment.bytes": "100000"})
    return path


def bytes_of(path: Path, entry: SegmentEntry) -> bytes:
    return (path / str(entry["file"])).read_bytes()


CHANGES: list[tuple[str, Callable[[Any], Any], dict[str, int]]] = [
    ("record_count", lambda value: value + 1, {"entry": 1}),
    ("batch_count", lambda value: value - 1, {"entry": 1}),
    ("min_timestamp_ms", lambda value: value + 1, {"entry": 1}),
    ("min_timestamp_ms", lambda value: value - 1, {"entry": 1}),
    ("max_timestamp_ms", lambda value: value + 1, {"entry": 1}),
    ("codec", lambda value: "zstd", {"entry": 1}),
    ("producer_ids", lambda value: [*value, 7], {"entry": 1}),
    ("producer_ids", lambda value: [], {"entry": 1}),
    ("next_offset", lambda value: value + 1, {"entry": 1}),
    ("crc32c", lambda value: value ^ 1, {"checksum": 1}),
    ("size_bytes", lambda value: value + 1, {"size": 1}),
    ("size_bytes", lambda value: value - 1, {"size": 1}),
    ("leader_epoch", lambda value: value + 1, {"epoch": 6}),
    ("index_bytes", lambda value: 8, {"missing": 1}),
    ("time_index_bytes", lambda value: 12, {"missing": 1}),
    ("offset_shift", lambda value: value - 1, {"offset": 1}),
    ("offset_shift", lambda value: value + 1, {"offset": 1}),
    ("offset_shift", lambda value: -(1 << 63) + 10, {"entry": 1}),
]


@pytest.mark.parametrize(("column", "change", "expect"), CHANGES)
def test_an_entry_that_says_another_thing(
    root: Path, column: str, change: Callable[[Any], Any], expect: dict[str, int]
) -> None:
    done = staged(root, rows(30), BATCHES)
    assert done.segments[0]["batch_count"] == 6
    commit_staged(root, done, lambda entry: {**entry, column: change(entry[column])})
    assert kinds(root) == expect


def test_the_fast_form_takes_header_fields_alone(root: Path) -> None:
    """The least time is in no header, and the file's CRC is none that headers have."""
    done = staged(root, rows(30), BATCHES)
    commit_staged(root, done, lambda entry: {**entry, "crc32c": 1, "min_timestamp_ms": 1})
    assert kinds(root, fast=True) == {}
    assert kinds(root) == {"entry": 1, "checksum": 1}
    more = staged(root, rows(30), BATCHES)
    commit_staged(root, more, lambda entry: {**entry, "min_timestamp_ms": (1 << 62) + 1})
    assert kinds(root, fast=True) == {"entry": 1}


def taken_out(path: Path, number: int) -> None:
    """Commit that a segment is no more, which nobody but a mistaken job would."""
    file = live(path)[number]["file"]

    def build(state: TopicState) -> Actions:
        return Actions(remove=(file,))

    commit(path, build, "merge")


@pytest.mark.parametrize("number", [0, 1, -1])
def test_a_gap_between_segments(tmp_path: Path, number: int) -> None:
    path = write_root(tmp_path / "root")
    entry = live(path)[number]
    taken_out(path, number)
    findings_ = [finding for finding in verified(path).findings if finding.kind == "gap"]
    assert [finding.offset for finding in findings_] == [entry["base_offset"]]
    message = f"the offsets {entry['base_offset']} to {entry['next_offset'] - 1}"
    assert message in findings_[0].reason
    # What is missing before a segment's batches is reported once: their sequences may go on.
    assert kinds(path) == {"gap": 1} | ({"sequence": 1} if number == 1 else {})


def test_all_segments_gone_is_a_gap(root: Path) -> None:
    klog.open(str(root)).append("t", rows(3))
    taken_out(root, 0)
    assert kinds(root) == {"gap": 1}


def test_two_segments_of_the_same_offsets(tmp_path: Path) -> None:
    path = write_root(tmp_path / "root")
    first, second, *_ = live(path)
    both = bytes_of(path, first) + bytes_of(path, second)
    together = {
        "next_offset": second["next_offset"],
        "record_count": first["record_count"] + second["record_count"],
        "batch_count": first["batch_count"] + second["batch_count"],
        "min_timestamp_ms": min(first["min_timestamp_ms"], second["min_timestamp_ms"]),
        "max_timestamp_ms": max(first["max_timestamp_ms"], second["max_timestamp_ms"]),
        "origin": "merge",
    }
    output = rewritten(path, first, both, "0" * 16, **together)
    inputs = (first["file"], second["file"])
    commit(path, lambda state: Actions(add=(output,), remove=inputs[:1]), "merge")
    findings_ = verified(path).findings
    assert [finding.kind for finding in findings_] == ["overlap", "sequence"]
    assert findings_[0].offset == second["base_offset"]
    commit(path, lambda state: Actions(remove=inputs[1:]), "merge")
    assert kinds(path) == {}


def starts_of(data: bytes) -> list[int]:
    return [*scan_batches(data, 0, len(data)).starts.tolist(), len(data)]


@pytest.mark.parametrize(("origin", "expect"), [("compact", {}), ("merge", {"offset": 1})])
def test_compaction_leaves_gaps_and_merge_none(
    tmp_path: Path, origin: str, expect: dict[str, int]
) -> None:
    path = write_root(tmp_path / "root")
    first, *_ = live(path)
    data = bytes_of(path, first)
    starts = starts_of(data)
    left = data[: starts[1]] + data[starts[2] :]
    batches = scan_batches(left, 0, len(left))
    counts = int(batches.headers["count"].sum())
    change = {"batch_count": len(batches), "origin": origin}
    if origin == "compact":
        change["record_count"] = counts
        times = bytes_times(path, first)
        gone = slice(int(batches.headers["count"][0]), first["record_count"] - counts)
        kept = np.delete(times, np.arange(gone.start, gone.start + gone.stop))
        change |= {"min_timestamp_ms": int(kept.min()), "max_timestamp_ms": int(kept.max())}
    replaced(path, [first], [rewritten(path, first, left, "0" * 16, **change)])
    counts_by_kind = kinds(path)
    assert {kind: count for kind, count in counts_by_kind.items() if kind != "entry"} == expect
    assert bool(counts_by_kind["entry"]) is (origin == "merge")


def bytes_times(path: Path, entry: SegmentEntry) -> Longs:
    """Return the times of a segment's records, which begin at offset 0."""
    times = rows(entry["record_count"])["timestamp"].to_numpy()
    times_ms: Longs = times.astype("datetime64[ms]").astype(np.int64)
    return times_ms


def test_a_writer_whose_files_are_committed_twice(root: Path) -> None:
    done = staged(root, rows(30), BATCHES, "etl", 3)
    commit_staged(root, done)
    (entry,) = live(root)
    again = rewritten(root, entry, bytes_of(root, entry), "0" * 16)
    state = state_of(root)
    commit(
        root,
        append_commit.append(append_commit.StagedSegments(state.topic_id, state.version, [again])),
    )
    (finding,) = verified(root, fast=True).findings
    assert (finding.kind, finding.file, finding.position) == ("sequence", again["file"], 0)
    assert finding.offset == 30
    assert "epoch 3: sequence 0 where 30 is due" in finding.reason


@pytest.mark.parametrize(
    ("left", "expect"),
    [
        (slice(1, None), "sequence 5 where 0 is due"),
        (slice(None, 1), None),
    ],
)
def test_a_writer_whose_first_batch_is_missing(root: Path, left: slice, expect: str | None) -> None:
    klog.open(str(root)).append("t", rows(5))
    (entry,) = staged(root, rows(30), BATCHES).segments
    data = bytes_of(root, entry)
    starts = starts_of(data)[left]
    kept = data[starts[0] : starts[-1]] if expect else data[: starts_of(data)[1]]
    batches = scan_batches(kept, 0, len(kept))
    count = int(batches.headers["count"].sum())
    base = int(batches.base_offsets[0])
    change = {
        "first": base,
        "base_offset": base,
        "next_offset": base + count,
        "record_count": count,
        "batch_count": len(batches),
    }
    shorter = rewritten(root, entry, kept, "0" * 16, **change)
    state = state_of(root)
    commit(
        root,
        append_commit.append(
            append_commit.StagedSegments(state.topic_id, state.version, [shorter])
        ),
    )
    reasons = [finding.reason for finding in verified(root).findings if finding.kind == "sequence"]
    assert [expect in reason for reason in reasons if expect] == ([True] if expect else [])
    assert bool(reasons) is bool(expect)


def runs(*runs_: tuple[int, int, int, int, bool], idle_ms: int = 0) -> SequenceRuns:
    """Make runs of (producer, epoch, first, last, loose), at offsets 0, 1, ..., so long apart."""
    ids, epochs, firsts, lasts = (np.array([row[i] for row in runs_], np.int64) for i in range(4))
    at = np.arange(len(runs_))
    loose, times = np.array([row[4] for row in runs_]), START_MS + at * idle_ms
    return SequenceRuns(ids, epochs, firsts, lasts, at, at, at, loose, times, times)


LAST = (1 << 31) - 1
FOLLOWING: list[tuple[str, list[tuple[int, int, int, int, bool]], list[int]]] = [
    ("one", [(1, 0, 0, 9, False)], []),
    ("one after the other", [(1, 0, 0, 9, False), (1, 0, 10, 12, False)], []),
    ("others between", [(1, 0, 0, 9, False), (2, 0, 0, 3, False), (1, 0, 10, 12, False)], []),
    ("a new epoch", [(1, 0, 0, 9, False), (1, 1, 0, 3, False)], []),
    ("the wrap", [(1, 0, 0, LAST, False), (1, 0, 0, 4, False)], []),
    ("wrapped", [(1, 0, 0, 3, False), (1, 0, 4, 2, False), (1, 0, 3, 5, False)], []),
    ("a late start", [(1, 0, 5, 9, False)], [0]),
    ("a gap", [(1, 0, 0, 9, False), (1, 0, 11, 12, False)], [1]),
    ("a double", [(1, 0, 0, 9, False), (1, 0, 0, 9, False)], [1]),
    ("an overlap", [(1, 0, 0, 9, False), (1, 0, 9, 12, False)], [1]),
    ("a new epoch late", [(1, 0, 0, 9, False), (1, 1, 10, 12, False)], [1]),
    ("a late start, excused", [(1, 0, 5, 9, True)], []),
    ("a gap, excused", [(1, 0, 0, 9, False), (1, 0, 11, 12, True)], []),
    ("a double, never", [(1, 0, 0, 9, False), (1, 0, 0, 9, True)], [1]),
    ("two wrong", [(2, 0, 3, 9, False), (1, 0, 1, 9, False)], [0, 1]),
]


@pytest.mark.parametrize(
    ("runs_", "expect"), [row[1:] for row in FOLLOWING], ids=[row[0] for row in FOLLOWING]
)
def test_sequences_follow(runs_: list[tuple[int, int, int, int, bool]], expect: list[int]) -> None:
    for sequence_runs in (runs(*runs_), join_runs([runs(*runs_)])):
        wrong, _ = find_wrong_sequences(sequence_runs)
        assert wrong.offset.tolist() == expect


@pytest.mark.parametrize(
    ("idle_ms", "loose", "expect"),
    [(EXPIRATION_MS - 1, True, [1]), (EXPIRATION_MS, True, []), (EXPIRATION_MS, False, [1])],
)
def test_an_expired_producer_may_begin_anywhere(
    idle_ms: int, loose: bool, expect: list[int]
) -> None:
    again = runs((1, 0, 0, 9, False), (1, 0, 3, 4, loose), idle_ms=idle_ms)
    for sequence_runs in (again, join_runs([again])):
        wrong, _ = find_wrong_sequences(sequence_runs)
        assert wrong.offset.tolist() == expect


def test_merged_runs_know_when_they_end() -> None:
    day, half = EXPIRATION_MS, EXPIRATION_MS // 2
    following = [(1, 0, first, first + 9, True) for first in (0, 10, 20)]
    again = (1, 0, 0, 9, True)
    assert not len(find_wrong_sequences(join_runs([runs(*following, again, idle_ms=day)]))[0])
    assert find_wrong_sequences(join_runs([runs(*following, again, idle_ms=half)]))[
        0
    ].offset.tolist() == [3]


def test_no_finding_is_about_another_topic(root: Path) -> None:
    klog.open(str(root)).append("t", rows(3))
    klog.open(str(root)).create_topic("other", 3)
    assert root_of(root).topic_names() == ["other", "t"]
    assert verified(root).partitions == 4
