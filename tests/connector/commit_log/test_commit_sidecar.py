"""Sidecars: a large commit is read as it was written, and never without its sidecar."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import google_crc32c
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from klog.connector.commit_log import (
    append_commit,
    checkpoint_writer,
    commit_builders,
    commit_expiration,
    commit_json,
    commit_sidecar,
    parquet_tables,
)
from klog.connector.commit_log.commit import Actions, Commit
from klog.connector.commit_log.commit_log import CommitLog
from klog.connector.commit_log.commit_log_paths import SidecarName, parse_sidecar_name
from klog.connector.commit_log.parquet_pages import file_sizes
from klog.connector.commit_log.topic_state import TopicState
from klog.connector.store.writable_store import PutResult
from klog.errors import KlogError, UnsupportedFormatError
from tests.connector.commit_log.memory_logs import (
    Clock,
    CountingStore,
    append,
    attempt,
    checkpoint_and_expire,
    created,
    plain,
    staged,
    topic_log,
)
from tests.support.segment_entry import entry_of

MANY = [(number % 2, 3) for number in range(4000)]
FILE = "orders-1/00000000000000000005-0000000002-0badcafe.log"
OTHER = FILE.replace("orders-1", "orders-0")


def sidecars(store: CountingStore) -> list[str]:
    return sorted(path for path in store.files if "/sidecars/" in path)


def test_a_large_commit_has_a_sidecar() -> None:
    store = CountingStore()
    log = topic_log(store)
    small = append(log, created(log), *MANY[:100])
    assert sidecars(store) == []
    store.requests.clear()
    state = append(log, small, *MANY)
    assert store.requests == {"read": 1, "put": 1, "create": 1, "list": 1}
    (path,) = sidecars(store)
    commit = store.files[log.paths.commit(state.version)]
    assert json.loads(commit)["sidecar"] == path.rsplit("/", 1)[1]
    assert len(commit) < 1000 < commit_sidecar.MAX_JSON_BYTES
    assert state.tail_bytes >= small.tail_bytes + len(store.files[path])
    store.requests.clear()
    assert plain(log.load(small)) == plain(state)
    assert store.requests == {"read": 3, "list": 1}
    assert plain(log.load()) == plain(state)


def test_a_large_sidecar_is_read_in_one_go() -> None:
    """It has no dictionary of file names, which `decode_table` would take for a hostile file."""
    add = tuple(
        {**_entry(), "file": FILE.replace("0badcafe", f"{number:08x}")} for number in range(20_000)
    )
    data = commit_sidecar.encode_sidecar(Commit(7, "w", 1, "append", "test", Actions(add))).data
    assert file_sizes(data).repeated_bytes < parquet_tables.MAX_BYTES


def test_what_a_commit_takes_out_stands_there_too() -> None:
    store = CountingStore()
    log = topic_log(store)
    state = append(log, append(log, created(log), *MANY), *MANY)
    files = state.segments["file"].to_pylist()
    build = commit_builders.delete_records(state.topic_id, {0: 10**9, 1: 10**9})
    # 8,000 names are more than a mebibyte only with the longest topics' names; here it is less.
    state = log.commit(state, build, attempt("delete-records"))
    assert len(state.segments) == 0
    assert state.removed["file"].to_pylist() == files
    commit = Commit(
        7,
        "w",
        1,
        "compact",
        "test",
        Actions((_entry(),), (FILE,), purge=(OTHER,), vacuum_version=3),
    )
    sidecar = commit_sidecar.encode_sidecar(commit)
    data = commit_json.encode_commit(_with(commit, sidecar.name))
    slim = commit_json.decode_commit(data, "orders", 7)
    assert slim.actions == Actions(vacuum_version=3)
    decoded = commit_sidecar.decode_sidecar(slim, sidecar.name, sidecar.data, "orders")
    assert decoded.actions == commit.actions


def _entry() -> Any:
    return {**entry_of(FILE, 1, 5, 9), "producer_ids": [1 << 62]}


def _with(commit: Commit, name: SidecarName) -> Commit:
    return replace(commit, sidecar=name)


def test_a_lost_race_leaves_a_sidecar_and_the_log_is_right() -> None:
    store = CountingStore()
    log = topic_log(store)
    before = created(log)
    append(log, before, (0, 1))
    state = append(log, before, *MANY)
    assert len(sidecars(store)) == 2
    assert (state.version, state.log_end) == (2, (6001, 6000))
    assert plain(log.load()) == plain(state)


def test_a_lost_answer_is_found_by_its_write_id() -> None:
    class Loses(CountingStore):
        loses = 0

        def put_if_absent(self, path: str, data: bytes) -> PutResult:
            put = super().put_if_absent(path, data)
            self.loses -= 1
            return PutResult.UNKNOWN if self.loses >= 0 else put

    store = Loses()
    log = topic_log(store)
    state = created(log)
    store.loses = 1
    assert append(log, state, *MANY).log_end == (6000, 6000)
    assert log.load().log_end == (6000, 6000)


@pytest.fixture
def large() -> tuple[CountingStore, CommitLog, TopicState, str]:
    store = CountingStore()
    log = topic_log(store)
    state = append(log, created(log), *MANY)
    (path,) = sidecars(store)
    return store, log, state, path


Large = tuple[CountingStore, CommitLog, TopicState, str]


def test_a_sidecar_that_is_gone_is_named(large: Large) -> None:
    store, log, _, path = large
    del store.files[path]
    with pytest.raises(KlogError, match=rf"{path}: this sidecar is missing, and commit 1 needs it"):
        log.load()


@pytest.mark.parametrize("damage", ["torn", "changed", "empty"])
def test_a_sidecar_that_is_damaged_is_named(large: Large, damage: str) -> None:
    store, log, _, path = large
    whole = store.files[path]
    damaged = {"torn": whole[:-5], "changed": whole[:-5] + bytes(5), "empty": b""}
    store.files[path] = damaged[damage]
    with pytest.raises(UnsupportedFormatError, match=rf"sidecar {path}: .*CRC-32C is not"):
        log.load()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"format": 9, "since": "9.9.0"}, "install klog 9.9.0"),
        ({"format": None}, "its format is None"),
        ({"file": "../../etc/passwd"}, "is not a segment of orders"),
        ({"file": FILE.replace("orders", "other")}, "is not a segment of orders"),
        ({"size_bytes": -1}, "sizeBytes of a segment is -1"),
        ({"next_offset": 0}, "from offset"),
        ({"codec": None}, "codec of a segment is None"),
    ],
)
def test_a_sidecar_that_says_what_may_not_be_is_refused(change: Any, words: str) -> None:
    commit = Commit(7, "w", 1, "append", "test", Actions((_entry(),)))
    data = commit_sidecar.encode_sidecar(commit).data
    rows = pq.read_table(pa.BufferReader(data))
    metadata = json.loads(rows.schema.metadata[b"klog"])
    for key, value in change.items():
        if key in metadata or key == "since":
            metadata[key] = value
        else:
            at = rows.schema.get_field_index(key)
            rows = rows.set_column(at, rows.field(at), pa.array([value], rows.field(at).type))
    sink = pa.BufferOutputStream()
    pq.write_table(rows.replace_schema_metadata({b"klog": json.dumps(metadata).encode()}), sink)
    with pytest.raises(UnsupportedFormatError, match=words):
        _decode(commit, sink.getvalue().to_pybytes())


@pytest.mark.parametrize("data", [b"", b"PAR1", b"{}"])
def test_any_other_file_is_no_sidecar(data: bytes) -> None:
    commit = Commit(7, "w", 1, "append", "test", Actions())
    with pytest.raises(UnsupportedFormatError, match="it is not a Parquet file"):
        _decode(commit, data)


def _decode(commit: Commit, data: bytes) -> Commit:
    name = SidecarName(7, "0" * 16, len(data), google_crc32c.value(data))
    return commit_sidecar.decode_sidecar(commit, name, data, "orders")


@pytest.mark.parametrize(
    "name",
    [
        "../x.parquet",
        5,
        f"{8:020d}-{'0' * 16}-{9:012d}-{1:08x}.parquet",
        f"{7:020d}-{'0' * 16}-{9:012d}-{1:08x}.parquet/..",
    ],
)
def test_a_commit_names_no_other_file(name: Any) -> None:
    fields = json.loads(commit_json.encode_commit(Commit(7, "w", 1, "append", "test", Actions())))
    with pytest.raises(UnsupportedFormatError, match="sidecar"):
        commit_json.decode_commit(json.dumps({**fields, "sidecar": name}).encode(), "orders", 7)


def test_names_are_read_as_they_are_written() -> None:
    name = SidecarName(7, "0123456789abcdef", 12, 0xCAFE)
    assert parse_sidecar_name(str(name)) == name
    assert parse_sidecar_name(f"{10**10:020d}-{'0' * 16}-{9:012d}-{1:08x}.parquet") is None


def test_sidecars_are_cleaned_with_the_log() -> None:
    store, clock = CountingStore(), Clock()
    log = topic_log(store, clock)
    before = created(log)
    append(log, before, (0, 1))
    state = append(log, before, *MANY)  # The first try has left a sidecar that no commit names.
    stale = state
    state = append(log, append(log, state, *MANY), (0, 1))
    assert len(sidecars(store)) == 3
    clock.now_ms += 1_000_000
    assert checkpoint_and_expire(log) == state.version - 1
    assert sidecars(store) == []
    assert plain(log.load()) == plain(state)
    assert plain(log.load(stale)) == plain(state)


def test_a_sidecar_that_is_cleaned_under_a_load_is_no_error() -> None:
    class CleansMeanwhile(CountingStore):
        clean: Any = None

        def read(self, path: str, max_bytes: int | None = None) -> bytes:
            if "/sidecars/" in path and self.clean is not None:
                clean, self.clean = self.clean, None
                clean()
            return super().read(path, max_bytes)

    store, clock = CleansMeanwhile(), Clock()
    log = topic_log(store, clock)
    first = created(log)
    state = append(log, append(log, first, *MANY), (0, 1))
    clock.now_ms += 1_000_000
    checkpoint_writer.write_checkpoint(log, state)
    store.clean = lambda: commit_expiration.expire_log(log, retention_ms=0)
    assert plain(log.load(first)) == plain(state)


def test_what_is_staged_may_be_much(large: Large) -> None:
    _, log, state, _ = large
    build = append_commit.append(staged(state, *MANY))
    again = log.commit(state, build, attempt("append"))
    assert len(again.segments) == 2 * len(MANY)
