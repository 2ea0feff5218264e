"""Checkpoints: loading one gives what replaying all commits gives, in parts or in one file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

import google_crc32c
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from klog.connector.commit_log import (
    append_commit,
    checkpoint_parts,
    checkpoint_writer,
    commit_builders,
    commit_expiration,
    commit_log_paths,
    rewrite_commit,
    state_checkpoint,
)
from klog.connector.commit_log.checkpoint_parts import Part, PartPlan
from klog.connector.commit_log.commit_log import CommitLog
from klog.connector.commit_log.commit_log_paths import CheckpointName, parse_checkpoint_name
from klog.connector.commit_log.commit_tail import read_by_number
from klog.connector.commit_log.format_versions import FIRST_VERSION, MAX_FORMAT
from klog.connector.commit_log.live_segments import ROW_SCHEMA
from klog.connector.commit_log.state_replay import replay
from klog.connector.commit_log.topic_state import TopicState
from klog.connector.store.writable_store import PutResult
from klog.errors import KlogError, UnsupportedFormatError
from tests.connector.commit_log.memory_logs import (
    Clock,
    CountingStore,
    append,
    appended,
    attempt,
    created,
    plain,
    topic_log,
)
from tests.support.segment_entry import entry_of

PARTS = "/_klog/topics/orders/parts/"


@pytest.fixture
def small_parts() -> Iterator[None]:
    """Make parts of four segments, and two of them of a state of nine."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checkpoint_parts, "PART_ROWS", 4)
        yield


def replayed(log: CommitLog) -> TopicState:
    return replay(TopicState(), read_by_number(log.read, 0))


def parts(store: CountingStore) -> list[str]:
    return sorted(path for path in store.files if PARTS in path)


def trimmed(log: CommitLog, state: TopicState, offset: int) -> TopicState:
    build = commit_builders.delete_records(state.topic_id, {0: offset})
    return log.commit(state, build, attempt("delete-records"))


steps = st.lists(
    st.sampled_from(["append", "append", "append two", "trim", "merge", "vacuum", "checkpoint"])
    | st.sampled_from(["named", "config", "recreate"]),
    max_size=40,
)


def step(log: CommitLog, state: TopicState, name: str, number: int) -> TopicState:
    if name == "append":
        return append(log, state, (number % 2, 1 + number % 3))
    if name == "append two":
        return append(log, state, (0, 2), (1, 1), (0, 1))
    if name == "named":
        return append(log, state, (1, 1), writer=append_commit.Writer("w", number, "q", "run"))
    if name == "trim":
        return trimmed(log, state, (state.log_start[0] + state.log_end[0]) // 2)
    if name == "config":
        seen = {"retention.ms": state.config.get("retention.ms", "")}
        build = commit_builders.alter_config(
            state.topic_id, {k: v for k, v in seen.items() if v}, {"retention.ms": str(number)}
        )
        return log.commit(state, build, attempt("alter-config"))
    if name == "vacuum":
        forget = state.removed["file"].to_pylist()[:2]
        return log.commit(state, commit_builders.set_vacuum_version(1, forget), attempt("vacuum"))
    if name == "merge":
        return merged(log, state)
    if name == "recreate":
        state = log.commit(
            state, commit_builders.delete_topic(state.topic_id), attempt("delete-topic")
        )
        return created(log)
    checkpoint_writer.write_checkpoint(log, state)
    return state


def merged(log: CommitLog, state: TopicState) -> TopicState:
    rows = state.segments.to_pylist()[:2]
    if len(rows) < 2 or rows[0]["next_offset"] != rows[1]["base_offset"]:
        return state
    file = f"{rows[0]['file'][:-12]}{state.version:08x}.log"
    entry = entry_of(
        file, rows[0]["partition"], rows[0]["base_offset"], rows[1]["next_offset"], "merge"
    )
    build = rewrite_commit.replace_segments(
        state.topic_id, state.version, [row["file"] for row in rows], [entry], {0: 1}
    )
    return log.commit(state, build, attempt("merge"))


@pytest.mark.parametrize("part_rows", [1, 4, 50_000])
@settings(deadline=None, max_examples=40)
@given(steps)
def test_a_load_from_a_checkpoint_is_a_full_replay(part_rows: int, names: list[str]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checkpoint_parts, "PART_ROWS", part_rows)
        log = topic_log(CountingStore())
        state = created(log)
        for number, name in enumerate([*names, "checkpoint"]):
            state = step(log, state, name, number)
        whole = replayed(log)
        assert plain(log.newest_checkpoint()) == plain(whole)
        assert plain(log.load()) == plain(state) == plain(whole)


@pytest.mark.usefixtures("small_parts")
def test_only_parts_that_changed_are_written_again() -> None:
    store = CountingStore()
    log = topic_log(store)
    state = appended(log, created(log), 30)
    checkpoint_writer.write_checkpoint(log, state)
    first = parts(store)
    assert len(first) == 7
    state = appended(log, state, 4)
    store.requests.clear()
    checkpoint_writer.write_checkpoint(log, state)
    assert store.requests["create"] == 2  # The four new segments' part, and the checkpoint.
    assert set(parts(store)) > set(first)
    state = trimmed(log, state, 4)  # The first segment of the partition, of the first part.
    store.requests.clear()
    checkpoint_writer.write_checkpoint(log, state)
    assert store.requests["create"] == 2
    assert plain(log.load()) == plain(replayed(log))


def test_a_small_state_is_one_file_and_one_request() -> None:
    store = CountingStore()
    log = topic_log(store)
    state = appended(log, created(log), 20)
    store.requests.clear()
    checkpoint_writer.write_checkpoint(log, state)
    assert store.requests == {"create": 1}
    assert parts(store) == []


@pytest.mark.parametrize("count", [0, 1, 2500, 2501, 7000])
def test_all_remembered_writes_are_there(count: int) -> None:
    """Their ids become Arrow's some at a time, and others may go between."""
    writes = {f"{number:016x}": number for number in range(count)}
    state = replace(created(topic_log(CountingStore())), writes=writes)
    pauses: list[int] = []
    _, data = state_checkpoint.encode_checkpoint(state, pause=lambda: pauses.append(1))
    assert list(state_checkpoint.decode_checkpoint(data).writes.items()) == list(writes.items())
    assert len(pauses) == 3 + -(-count // 2500)


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("damage", ["missing", "torn", "changed", "empty"])
def test_a_checkpoint_with_a_damaged_part_is_passed_over(damage: str) -> None:
    store, clock = CountingStore(), Clock()
    log = topic_log(store, clock)
    older = appended(log, created(log), 12)
    kept = checkpoint_writer.write_checkpoint(log, older)
    before = set(parts(store))
    state = appended(log, older, 8)
    checkpoint_writer.write_checkpoint(log, state)
    path = min(set(parts(store)) - before)
    data = store.files.pop(path)
    if damage != "missing":
        damaged = {"torn": data[:-5], "changed": data[:-5] + bytes(5), "empty": b""}
        store.files[path] = damaged[damage]
    loaded = log.load()
    assert (loaded.checkpoint, plain(loaded)) == (kept, plain(state))
    # It carries no expiration file either, and the next checkpoint does not count on the part.
    clock.now_ms += 1_000_000
    assert commit_expiration.expire_log(log, retention_ms=0) == kept.version
    later = append(log, loaded, (0, 1))
    name = checkpoint_writer.write_checkpoint(log, later)
    assert log.load().checkpoint == name
    assert plain(log.load()) == plain(later)


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("damage", ["of a newer klog", "nothing of klog's", "too few rows"])
def test_a_whole_part_that_cannot_be_read_is_named(
    damage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = topic_log(CountingStore())
    state = appended(log, created(log), 12)
    if damage == "of a newer klog":
        usual = state_checkpoint.encode_part

        def newer(rows: pa.Table, version: int) -> tuple[CheckpointName, bytes]:
            with monkeypatch.context() as patch:
                patch.setattr(state_checkpoint, "MIN_FORMAT", MAX_FORMAT + 1)
                patch.setitem(FIRST_VERSION, MAX_FORMAT + 1, "9.1.0")
                return usual(rows, version)

        monkeypatch.setattr(state_checkpoint, "encode_part", newer)
    elif damage == "too few rows":
        monkeypatch.setattr(Part, "to_json", lambda part: _said(part, rows=part.rows + 1))
    else:
        name = CheckpointName(state.version, 4, 0xA96ECBDD)
        monkeypatch.setattr(commit_log_paths, "is_intact", lambda name, data: True)
        monkeypatch.setattr(state_checkpoint, "encode_part", lambda rows, version: (name, b"PAR1"))
    checkpoint_writer.write_checkpoint(log, state)
    with pytest.raises(UnsupportedFormatError, match=r"checkpoint .*parquet: "):
        log.load()


def _said(part: Part, **fields: Any) -> dict[str, Any]:
    return {"file": str(part.name), "first": part.start_version, "end": part.end_version, **fields}


@pytest.mark.parametrize(
    "fields",
    [
        {"file": "../../x.parquet"},
        {"file": 5},
        {"first": 9, "end": 9},
        {"end": 10**12},
        {"rows": -1},
        {"rows": None},
    ],
)
def test_a_malformed_part_is_refused(fields: dict[str, Any]) -> None:
    name = CheckpointName(3, 4, 5)
    good = Part(name, 0, 4, 2)
    assert Part.from_json(good.to_json()) == good
    with pytest.raises((ValueError, TypeError)):
        Part.from_json({**good.to_json(), **fields})


def test_parts_of_the_same_versions_make_no_checkpoint() -> None:
    """One part that is named a thousand times would be read as often."""
    log = topic_log(CountingStore())
    part = Part(CheckpointName(3, 4, 5), 0, 4, 2)
    _, data = state_checkpoint.encode_checkpoint(append(log, created(log), (0, 3)), [part, part])
    with pytest.raises(UnsupportedFormatError, match="two of its parts have the same versions"):
        state_checkpoint.decode_parts(data)


def test_a_file_that_is_not_a_segment_is_refused() -> None:
    log = topic_log(CountingStore())
    state = append(log, created(log), (0, 3))
    rows = state.live.rows()
    for file in ("../x.log", "orders-0/../../x.log", "https://h/orders-0/" + "0" * 20 + ".log"):
        bad = rows.set_column(1, ROW_SCHEMA.field("file"), pa.array([file]))
        _, data = state_checkpoint.encode_checkpoint(replace(state, live=type(state.live).of(bad)))
        with pytest.raises(UnsupportedFormatError, match="not a segment"):
            state_checkpoint.decode_checkpoint(data)


def test_a_cut_keeps_what_holds_and_covers_the_rest() -> None:
    size = checkpoint_parts.PART_ROWS
    rows = pa.table({"version": pa.array(np.arange(5 * size + 10))})
    ends = [size * number for number in range(6)]
    whole = tuple(pairwise(ends))
    assert checkpoint_parts.plan_parts(rows, [], lambda part: True) == PartPlan((), whole)
    known = [Part(CheckpointName(1, 2, 3), begin, end, size) for begin, end in whole]
    assert checkpoint_parts.plan_parts(rows, known, lambda part: True) == PartPlan(tuple(known), ())
    assert checkpoint_parts.plan_parts(rows, known, lambda part: False) == PartPlan((), whole)
    fewer = checkpoint_parts.plan_parts(rows.slice(1), known, lambda part: True)
    assert fewer == PartPlan(tuple(known[1:]), (whole[0],))


@pytest.mark.usefixtures("small_parts")
def test_parts_go_when_no_checkpoint_names_them() -> None:
    store, clock = CountingStore(), Clock()
    log = topic_log(store, clock)
    state = created(log)
    seen: set[str] = set()
    for number in range(6):
        state = trimmed(log, appended(log, state, 12), 3 * (3 * number + 2))
        checkpoint_writer.write_checkpoint(log, state)
        seen.update(parts(store))
        clock.now_ms += 1_000_000
        state = append(log, state, (0, 1))
        commit_expiration.expire_log(log, retention_ms=0)
        assert plain(log.load()) == plain(state)
    names = [
        parse_checkpoint_name(path.rsplit("/", 1)[1]) for path in store.files if "/checkp" in path
    ]
    assert len(names) == 1
    named = {
        f"{log.paths.part(part.name)}"
        for name in names
        if name is not None
        for part in state_checkpoint.decode_parts(store.files[log.paths.checkpoint(name)])
    }
    assert set(parts(store)) == named < seen
    # A part of a writer that ended before the checkpoint: gone with the next expiration.
    orphan = log.paths.part(CheckpointName(log.last_expired_version(), 1, 1))
    store.files[orphan] = b"x"
    commit_expiration.expire_log(log, retention_ms=0)
    assert orphan not in store.files


@pytest.mark.usefixtures("small_parts")
def test_no_boundary_rests_on_a_checkpoint_whose_parts_may_go() -> None:
    """Its parts are there, but a cleaning that began before it was put may still delete them."""
    store, clock = CountingStore(), Clock()
    log = topic_log(store, clock)
    state = appended(log, created(log), 12)
    checkpoint_writer.write_checkpoint(log, state)
    old = dict(store.files)
    # Another cuts the same segments into parts of its own, and an expiration file rests on them.
    for path in parts(store):
        del store.files[path]
    state = append(log, state, (0, 1))
    resting = checkpoint_writer.write_checkpoint(log, state)
    state = append(log, state, (0, 1))
    clock.now_ms += 1_000_000
    assert commit_expiration.expire_log(log, retention_ms=0) == resting.version
    store.files.update({path: data for path, data in old.items() if PARTS in path})
    # Who still knows the first parts names them in a checkpoint of later.
    state = append(log, state, (0, 1))
    known = state_checkpoint.decode_parts(old[_only_checkpoint(old)])
    _, data = state_checkpoint.encode_checkpoint(state, known)
    name = CheckpointName(state.version, *_size_and_crc(data))
    store.files[log.paths.checkpoint(name)] = data
    assert plain(log.load()) == plain(state)
    state = append(log, state, (0, 1))
    clock.now_ms += 1_000_000
    assert commit_expiration.expire_log(log, retention_ms=0) == resting.version
    good = checkpoint_writer.write_checkpoint(log, state)
    assert not {part.name for part in known} & {
        part.name for part in state_checkpoint.decode_parts(store.files[log.paths.checkpoint(good)])
    }
    append(log, state, (0, 1))
    clock.now_ms += 1_000_000
    assert commit_expiration.expire_log(log, retention_ms=0) == good.version


def _only_checkpoint(files: dict[str, bytes]) -> str:
    (path,) = (path for path in files if "/checkpoints/" in path)
    return path


def _size_and_crc(data: bytes) -> tuple[int, int]:
    return len(data), google_crc32c.value(data)


@pytest.mark.usefixtures("small_parts")
def test_a_part_that_the_store_does_not_own_up_to_is_named_by_nothing() -> None:
    class Silent(CountingStore):
        silent = False

        def put_if_absent(self, path: str, data: bytes) -> PutResult:
            return PutResult.UNKNOWN if self.silent else super().put_if_absent(path, data)

    store = Silent()
    log = topic_log(store)
    state = appended(log, created(log), 12)
    store.silent = True
    with pytest.raises(KlogError, match=r"parts/.*checkpoint later"):
        checkpoint_writer.write_checkpoint(log, state)
    store.silent = False
    assert not [path for path in store.files if "/checkpoints/" in path]
