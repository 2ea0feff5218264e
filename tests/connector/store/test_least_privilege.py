"""The policies of docs/stores.md on MinIO: each role does its work and no more."""

from __future__ import annotations

import json
import re
import secrets
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from klog.connector.commit_log import (
    append_commit,
    checkpoint_writer,
    commit_builders,
    commit_expiration,
    snapshot_leases,
    topic_vacuum,
)
from klog.connector.commit_log.commit import Topic
from klog.connector.commit_log.commit_log import CommitLog
from klog.connector.commit_log.commit_log_paths import TopicPaths
from klog.connector.commit_log.root_discovery import find_or_create_root, find_root
from klog.connector.commit_log.segment_path import SegmentPath
from klog.connector.commit_log.topic_state import TopicState
from klog.connector.options.storage_options import parse_storage_options
from klog.connector.store.writable_store import PutResult
from klog.errors import StoreRefusedError
from tests.connector.commit_log.listed_segments import list_segments
from tests.connector.commit_log.memory_logs import (
    DAY_MS,
    Clock,
    attempt,
)
from tests.connector.store.store_roots import StoreRoot, store_root_at
from tests.support.minio_server import Minio
from tests.support.project import PROJECT
from tests.support.segment_entry import entry_of
from tests.support.store_servers import BUCKET

pytestmark = [pytest.mark.stores, pytest.mark.minio, pytest.mark.full]

STORES_PAGE = PROJECT / "docs" / "stores.md"
TOPIC = "orders"


def policies(prefix: str) -> dict[str, Any]:
    """Return the policies of the page by role, for a root with another prefix."""
    blocks = re.findall(r"^```json (\w+)\n(.*?)^```", STORES_PAGE.read_text(), re.M | re.S)
    return {
        role: json.loads(text.replace("my-bucket", BUCKET).replace("/kafka/", f"/{prefix}/root/"))
        for role, text in blocks
    }


@dataclass(frozen=True, slots=True)
class Root:
    """A root of its own with a user for each role."""

    server: Minio
    prefix: str
    clock: Clock

    def user(self, role: str) -> str:
        return f"{role}-{self.prefix}"

    def store_root(self, role: str) -> StoreRoot:
        storage = parse_storage_options(self.server.options_of(self.user(role)))
        return store_root_at(f"s3://{BUCKET}/{self.prefix}/root", storage)

    def log(self, role: str) -> CommitLog:
        store_root = self.store_root(role)
        return CommitLog(
            store_root.store, TopicPaths(store_root.path, TOPIC), self.clock, lambda tries: None
        )


@pytest.fixture
def root(minio_server: Minio) -> Root:
    root = Root(minio_server, f"r{secrets.token_hex(6)}", Clock())
    roles = policies(root.prefix)
    assert set(roles) == {"reader", "writer", "maintainer", "pins"}
    reader = roles["reader"]
    roles["pinner"] = {
        **reader, "Statement": reader["Statement"] + roles.pop("pins")["Statement"],
    }  # fmt: skip
    # A reader that may not list.
    roles["blind"] = {**reader, "Statement": reader["Statement"][1:]}
    minio_server.make_users({root.user(role): policy for role, policy in roles.items()})
    return root


def make_topic(root: Root) -> TopicState:
    """Make root and topic as a writer."""
    store_root = root.store_root("writer")
    klog_root = find_or_create_root(store_root.url, "a cluster", store_root.storage)
    assert klog_root.cluster_id == "a cluster"
    log = root.log("writer")
    build = commit_builders.create_topic(Topic("an id", 1), {})
    return log.commit(log.load(), build, attempt("create-topic"))


def write(root: Root, state: TopicState, role: str = "writer", size: int = 100) -> TopicState:
    """Stage a segment of `size` bytes and commit it."""
    log = root.log(role)
    path = SegmentPath(TOPIC, 0, state.log_end[0], state.version, secrets.token_hex(4))
    log.store.put(log.paths.data(str(path)), [b"s" * size])
    segment = entry_of(str(path), 0, state.log_end[0], state.log_end[0] + 3)
    staged = append_commit.StagedSegments(state.topic_id, state.version, [segment])
    return log.commit(state, append_commit.append(staged), attempt("append"))


def test_each_role_does_its_work(root: Root) -> None:
    state = write(root, make_topic(root))
    state = write(root, state, size=9 << 20)  # in parts
    checkpoint_writer.write_checkpoint(root.log("writer"), state)

    store_root = root.store_root("reader")
    klog_root = find_root(store_root.url, store_root.storage)
    assert klog_root is not None
    assert klog_root.topic_names() == [TOPIC]
    seen = root.log("reader").load()
    assert (seen.version, seen.log_end) == (2, (6,))
    for row in seen.segments.to_pylist():
        file = store_root.store.open(store_root.at(row["file"]))
        assert file.read(10, 20) == b"s" * 10

    log = root.log("maintainer")
    build = commit_builders.delete_records(state.topic_id, {0: 3})
    state = log.commit(state, build, attempt("delete-records"))
    checkpoint_writer.write_checkpoint(log, state)
    root.clock.now_ms += 90 * DAY_MS
    taken = topic_vacuum.vacuum(log, attempt("vacuum"))
    assert len(taken.removed) == 1
    assert commit_expiration.expire_log(log) > 0
    assert root.log("reader").load().log_start == (3,)


def test_reader_with_leases(root: Root) -> None:
    make_topic(root)
    log = root.log("pinner")
    snapshot_leases.take_lease(log, "0123456789abcdef", 0, DAY_MS)
    assert snapshot_leases.min_leased_version(log, snapshot_leases.read_leases(log)) == 0
    snapshot_leases.release_lease(log, "0123456789abcdef")
    assert snapshot_leases.min_leased_version(log, snapshot_leases.read_leases(log)) is None
    with pytest.raises(StoreRefusedError, match=r"s3:PutObject"):
        log.store.put(log.paths.commit(1), [b"x"])


Call = Callable[[StoreRoot], object]
REFUSED: list[tuple[str, str, Call]] = [
    (
        "reader",
        "s3:PutObject",
        lambda store_root: store_root.store.put_if_absent(store_root.at("x"), b"1"),
    ),
    ("reader", "s3:PutObject", lambda store_root: store_root.store.put(store_root.at("x"), [b"1"])),
    (
        "reader",
        "s3:PutObject",
        lambda store_root: store_root.store.put(store_root.at("x"), [bytes(9 << 20)]),
    ),
    ("reader", "s3:DeleteObject", lambda store_root: store_root.store.delete(store_root.at("x"))),
    ("writer", "s3:DeleteObject", lambda store_root: store_root.store.delete(store_root.at("x"))),
    ("blind", "s3:ListBucket", lambda store_root: store_root.store.entries(store_root.at("x"))),
]


@pytest.mark.parametrize(("role", "permission", "call"), REFUSED)
def test_other_operations_are_refused(root: Root, role: str, permission: str, call: Call) -> None:
    store_root = root.store_root(role)
    with pytest.raises(StoreRefusedError) as caught:
        call(store_root)
    message = str(caught.value)
    assert message.startswith(f"{store_root.at('x')}: not ")
    assert f"403 Forbidden (AccessDenied). Give these credentials {permission} there" in message
    shown = "".join(traceback.format_exception(caught.value))
    assert Minio.secret_of(root.user(role)) not in shown


@pytest.mark.parametrize("call", ["read", "open", "put_if_absent", "put", "delete"])
def test_no_role_leaves_its_prefix(root: Root, call: str) -> None:
    store_root = root.store_root("maintainer")
    arguments: dict[str, list[Any]] = {"put": [[b"x"]], "put_if_absent": [b"x"]}
    path = f"s3://{BUCKET}/{root.prefix}x/secret"
    store_root_at(path, parse_storage_options(root.server.options())).store.put(
        path, [b"another's"]
    )
    with pytest.raises(StoreRefusedError, match=rf"{path}: not \w+: the server says 403 Forbidden"):
        getattr(store_root.store, call)(path, *arguments.get(call, []))


def test_missing_directory_is_not_forbidden(root: Root) -> None:
    """No role may ask for the root's own name as a key; its listing is enough."""
    store_root = root.store_root("reader")
    for path in (store_root.path, store_root.at("none")):
        with pytest.raises(FileNotFoundError, match=f"there is no {path}"):
            store_root.store.entries(path)


def test_refused_commit_and_vacuum_change_nothing(root: Root) -> None:
    """Each stops at its first refused call, and the log stays as before."""
    state = write(root, make_topic(root))
    segment = entry_of(f"{TOPIC}-0/{3:020d}-{1:010d}-00000000.log", 0, 3, 6)
    build = append_commit.append(
        append_commit.StagedSegments(state.topic_id, state.version, [segment])
    )
    with pytest.raises(StoreRefusedError, match=rf"{2:020d}.json: not written: .* s3:PutObject"):
        root.log("reader").commit(state, build, attempt("append"))

    state = root.log("writer").commit(
        state, commit_builders.delete_records(state.topic_id, {0: 3}), attempt("delete-records")
    )
    root.clock.now_ms += 2 * DAY_MS
    with pytest.raises(StoreRefusedError, match=rf"/{TOPIC}-0/.*: not deleted: .* s3:DeleteObject"):
        topic_vacuum.vacuum(root.log("writer"), attempt("vacuum"))
    log = root.log("maintainer")
    assert log.load().log_end == (3,)
    assert len(list_segments(log)) == 1


def test_session_may_do_less_than_its_user(root: Root) -> None:
    """Temporary keys, with a token and a policy of their own."""
    make_topic(root)
    narrowed = policies(root.prefix)["reader"]
    session = root.server.session(root.user("maintainer"), narrowed)
    store_root = store_root_at(f"s3://{BUCKET}/{root.prefix}/root", parse_storage_options(session))
    assert store_root.store.read(store_root.at("_klog/format.json"))
    with pytest.raises(StoreRefusedError, match="s3:PutObject") as caught:
        store_root.store.put_if_absent(store_root.at("x"), b"1")
    shown = "".join(traceback.format_exception(caught.value)) + repr(store_root)
    for name in ("storage.secret_access_key", "storage.session_token"):
        assert session[name] not in shown


def test_disabled_keys_are_an_error_until_enabled(root: Root) -> None:
    state = make_topic(root)
    server, user = root.server, root.user("writer")
    session = server.session(user)
    store_root = store_root_at(f"s3://{BUCKET}/{root.prefix}/root", parse_storage_options(session))
    log = CommitLog(
        store_root.store, TopicPaths(store_root.path, TOPIC), root.clock, lambda tries: None
    )
    assert log.load().version == 0
    server.enable(user, on=False)
    try:
        calls: list[Callable[[], TopicState]] = [log.load, lambda: write(root, state)]
        for call in calls:
            with pytest.raises(
                StoreRefusedError, match=r"403 .*(check|renew|use others)"
            ) as caught:
                call()
            assert "canary" not in "".join(traceback.format_exception(caught.value))
        with pytest.raises(StoreRefusedError, match=r"not written: the server says 403"):
            store_root.store.put_if_absent(store_root.at("x"), b"1")
    finally:
        server.enable(user, on=True)
    assert write(root, state).version == 1
    assert store_root.store.put_if_absent(store_root.at("x"), b"1") is PutResult.CREATED
