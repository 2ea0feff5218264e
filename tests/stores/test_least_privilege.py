"""The policies of docs/stores.md on MinIO: each role does its work, and is refused the rest."""

from __future__ import annotations

import json
import re
import secrets
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from klog.connector.log import cleaning, garbage, operations, pins
from klog.connector.log.commit import Topic
from klog.connector.log.paths import SegmentPath, TopicPaths
from klog.connector.log.root import find_root, make_root
from klog.connector.log.state import State
from klog.connector.log.topic_log import TopicLog
from klog.connector.store.contract import Put
from klog.connector.store.storage import storage_of
from klog.errors import KlogError
from tests.commits.logs import DAY_MS, Clock, attempt, entry
from tests.minio import Minio
from tests.servers import BUCKET
from tests.stores.places import Place, place_at

pytestmark = [pytest.mark.stores, pytest.mark.minio]

STORES_PAGE = Path(__file__).parents[2] / "docs" / "stores.md"
TOPIC = "orders"


def policies(prefix: str) -> dict[str, Any]:
    """The policies of the page, for a root elsewhere."""
    found = re.findall(r"^```json (\w+)\n(.*?)^```", STORES_PAGE.read_text(), re.M | re.S)
    return {
        role: json.loads(text.replace("my-bucket", BUCKET).replace("/kafka/", f"/{prefix}/root/"))
        for role, text in found
    }


@dataclass(frozen=True, slots=True)
class Root:
    """A root of its own with a user for each role."""

    server: Minio
    prefix: str
    clock: Clock

    def user(self, role: str) -> str:
        return f"{role}-{self.prefix}"

    def place(self, role: str) -> Place:
        storage = storage_of(self.server.options_of(self.user(role)))
        return place_at(f"s3://{BUCKET}/{self.prefix}/root", storage)

    def log(self, role: str) -> TopicLog:
        place = self.place(role)
        return TopicLog(place.store, TopicPaths(place.path, TOPIC), self.clock, lambda tries: None)


@pytest.fixture
def root(minio_server: Minio) -> Root:
    found = Root(minio_server, f"r{secrets.token_hex(6)}", Clock())
    said = policies(found.prefix)
    assert set(said) == {"reader", "writer", "maintainer", "pins"}
    said["pinner"] = {
        **said["reader"],
        "Statement": said["reader"]["Statement"] + said.pop("pins")["Statement"],
    }
    # A reader of another kind, as S3 would have it: without listing.
    said["blind"] = {**said["reader"], "Statement": said["reader"]["Statement"][1:]}
    minio_server.make_users({found.user(role): policy for role, policy in said.items()})
    return found


def make_topic(root: Root) -> State:
    """Make root and topic as a writer."""
    place = root.place("writer")
    made = make_root(place.url, "a cluster", place.storage)
    assert made.cluster_id == "a cluster"
    log = root.log("writer")
    build = operations.create_topic(Topic("an id", 1), {})
    return log.commit(log.load(), build, attempt("create-topic"))


def write(root: Root, state: State, role: str = "writer", size: int = 100) -> State:
    """Stage a segment of `size` bytes and commit it."""
    log = root.log(role)
    path = SegmentPath(TOPIC, 0, state.log_end[0], state.version, secrets.token_hex(4))
    log.store.put(log.paths.data(str(path)), [b"s" * size])
    segment = entry(str(path), 0, state.log_end[0], state.log_end[0] + 3)
    staged = operations.Staged(state.topic_id, state.version, [segment])
    return log.commit(state, operations.append(staged), attempt("append"))


def test_each_does_its_work(root: Root) -> None:
    state = write(root, make_topic(root))
    state = write(root, state, size=9 << 20)  # in parts
    cleaning.write_checkpoint(root.log("writer"), state)

    place = root.place("reader")
    found = find_root(place.url, place.storage)
    assert found is not None
    assert found.topic_names() == [TOPIC]
    seen = root.log("reader").load()
    assert (seen.version, seen.log_end) == (2, (6,))
    for row in seen.segments.to_pylist():
        file = place.store.open(place.at(row["file"]))
        assert file.read(10, 20) == b"s" * 10

    log = root.log("maintainer")
    build = operations.delete_records(state.topic_id, {0: 3})
    state = log.commit(state, build, attempt("delete-records"))
    cleaning.write_checkpoint(log, state)
    root.clock.now_ms += 90 * DAY_MS
    taken = garbage.vacuum(log, attempt("vacuum"))
    assert len(taken.removed) == 1
    assert cleaning.clean_log(log) > 0
    assert root.log("reader").load().log_start == (3,)


def test_a_reader_that_may_pin(root: Root) -> None:
    make_topic(root)
    log = root.log("pinner")
    pins.pin(log, "0123456789abcdef", 0, DAY_MS)
    assert pins.pinned_version(log, pins.read_pins(log)) == 0
    pins.unpin(log, "0123456789abcdef")
    assert pins.pinned_version(log, pins.read_pins(log)) is None
    with pytest.raises(KlogError, match=r"s3:PutObject"):
        log.store.put(log.paths.commit(1), [b"x"])


Call = Callable[[Place], object]
REFUSED: list[tuple[str, str, Call]] = [
    ("reader", "s3:PutObject", lambda place: place.store.put_if_absent(place.at("x"), b"1")),
    ("reader", "s3:PutObject", lambda place: place.store.put(place.at("x"), [b"1"])),
    ("reader", "s3:PutObject", lambda place: place.store.put(place.at("x"), [bytes(9 << 20)])),
    ("reader", "s3:DeleteObject", lambda place: place.store.delete(place.at("x"))),
    ("writer", "s3:DeleteObject", lambda place: place.store.delete(place.at("x"))),
    ("blind", "s3:ListBucket", lambda place: place.store.entries(place.at("x"))),
]


@pytest.mark.parametrize(("role", "permission", "call"), REFUSED)
def test_the_rest_is_refused(root: Root, role: str, permission: str, call: Call) -> None:
    place = root.place(role)
    with pytest.raises(KlogError) as at:
        call(place)
    said = str(at.value)
    assert said.startswith(f"{place.at('x')}: not ")
    assert f"403 Forbidden (AccessDenied). Let these credentials do {permission} there" in said
    shown = "".join(traceback.format_exception(at.value))
    assert Minio.secret_of(root.user(role)) not in shown


@pytest.mark.parametrize("call", ["read", "open", "put_if_absent", "put", "delete"])
def test_nobody_leaves_their_prefix(root: Root, call: str) -> None:
    place = root.place("maintainer")
    more: dict[str, list[Any]] = {"put": [[b"x"]], "put_if_absent": [b"x"]}
    path = f"s3://{BUCKET}/{root.prefix}x/secret"
    place_at(path, storage_of(root.server.options())).store.put(path, [b"another's"])
    with pytest.raises(KlogError, match=rf"{path}: not \w+: the server says 403 Forbidden"):
        getattr(place.store, call)(path, *more.get(call, []))


def test_a_directory_that_is_not_there(root: Root) -> None:
    """The root's own name is no key that a role may ask for; its listing says enough."""
    place = root.place("reader")
    for path in (place.path, place.at("none")):
        with pytest.raises(FileNotFoundError, match=f"there is no {path}"):
            place.store.entries(path)


def test_a_readers_commit_and_a_writers_vacuum(root: Root) -> None:
    """Each stops at its first call that is refused, and the log is as it was."""
    state = write(root, make_topic(root))
    segment = entry(f"{TOPIC}-0/{3:020d}-{1:010d}-00000000.log", 0, 3, 6)
    build = operations.append(operations.Staged(state.topic_id, state.version, [segment]))
    with pytest.raises(KlogError, match=rf"{2:020d}.json: not written: .* s3:PutObject"):
        root.log("reader").commit(state, build, attempt("append"))

    state = root.log("writer").commit(
        state, operations.delete_records(state.topic_id, {0: 3}), attempt("delete-records")
    )
    root.clock.now_ms += 2 * DAY_MS
    with pytest.raises(KlogError, match=rf"/{TOPIC}-0/.*: not deleted: .* s3:DeleteObject"):
        garbage.vacuum(root.log("writer"), attempt("vacuum"))
    log = root.log("maintainer")
    assert log.load().log_end == (3,)
    assert len(garbage.files_of(log)) == 1


def test_a_session_may_do_less_than_its_user(root: Root) -> None:
    """Temporary keys, with a token and a policy of their own."""
    make_topic(root)
    narrowed = policies(root.prefix)["reader"]
    given = root.server.session(root.user("maintainer"), narrowed)
    place = place_at(f"s3://{BUCKET}/{root.prefix}/root", storage_of(given))
    assert place.store.read(place.at("_klog/format.json"))
    with pytest.raises(KlogError, match="s3:PutObject") as at:
        place.store.put_if_absent(place.at("x"), b"1")
    shown = "".join(traceback.format_exception(at.value)) + repr(place)
    for word in ("storage.secret_access_key", "storage.session_token"):
        assert given[word] not in shown


def test_keys_that_are_taken_away_and_given_back(root: Root) -> None:
    state = make_topic(root)
    server, user = root.server, root.user("writer")
    given = server.session(user)
    place = place_at(f"s3://{BUCKET}/{root.prefix}/root", storage_of(given))
    log = TopicLog(place.store, TopicPaths(place.path, TOPIC), root.clock, lambda tries: None)
    assert log.load().version == 0
    server.enable(user, on=False)
    try:
        calls: list[Callable[[], State]] = [log.load, lambda: write(root, state)]
        for call in calls:
            with pytest.raises(KlogError, match=r"403 Forbidden .*(check|renew|use others)") as at:
                call()
            assert "canary" not in "".join(traceback.format_exception(at.value))
        with pytest.raises(KlogError, match=r"not written: the server says 403"):
            place.store.put_if_absent(place.at("x"), b"1")
    finally:
        server.enable(user, on=True)
    assert write(root, state).version == 1
    assert place.store.put_if_absent(place.at("x"), b"1") is Put.CREATED
