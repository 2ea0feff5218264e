"""Keys that expire while a process runs, and objects that a user may not see."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from klog.connector.commit_log.commit_log import CommitLog
from klog.connector.commit_log.commit_log_paths import TopicPaths
from klog.connector.store.s3_store import S3Store
from klog.connector.store.writable_store import PutResult
from klog.errors import KlogError, StoreRefusedError
from tests.connector.commit_log.memory_logs import TOPIC, Clock, append, created
from tests.connector.store.fake_s3 import FakeS3, fake_s3

URL = "s3://bucket/root"
EXPIRED = r"(400 Bad Request|403 Forbidden).* (expired: renew|and their expiry)"


@pytest.fixture
def fake() -> Iterator[FakeS3]:
    with fake_s3() as running:
        yield running


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("AWS_PROFILE", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    return tmp_path


def write_profile(files: Path, key: str) -> None:
    """Write the profile, as `aws sso login` does."""
    (files / "credentials").write_text(
        f"[team]\naws_access_key_id = {key}\naws_secret_access_key = canary-{key}\n"
        f"aws_session_token = canary-token-{key}\n"
    )


def log_on(store: S3Store) -> CommitLog:
    return CommitLog(store, TopicPaths(URL, TOPIC), Clock(), lambda tries: None)


CALLS: list[Callable[[S3Store], object]] = [
    lambda store: store.put_if_absent(f"{URL}/y", b"1"),
    lambda store: store.put(f"{URL}/y", [b"1"]),
    lambda store: store.read(f"{URL}/x"),
    lambda store: store.open(f"{URL}/x"),  # HEAD: the answer has no code
    lambda store: store.open(f"{URL}/x").read(0, 1),
    lambda store: store.entries(URL),
    lambda store: store.delete(f"{URL}/x"),
]


@pytest.mark.parametrize("call", CALLS)
def test_renewed_profile_is_used(
    fake: FakeS3, files: Path, call: Callable[[S3Store], object]
) -> None:
    write_profile(files, "OLD")
    store = S3Store("bucket", fake.storage(profile="team"))
    for name in "xz":
        store.put(f"{URL}/{name}", [b"1"])
    fake.expired.add("OLD")
    with pytest.raises(StoreRefusedError, match=EXPIRED) as caught:
        call(store)
    assert "canary" not in "".join(traceback.format_exception(caught.value))
    write_profile(files, "NEW")
    call(store)
    assert "Credential=NEW/" in fake.headers[-1]["authorization"]
    assert fake.headers[-1]["x-amz-security-token"] == "canary-token-NEW"
    sent = len(fake.requests)
    store.read(f"{URL}/z")
    assert len(fake.requests) == sent + 1, "the old keys are not tried again"


def test_renewed_environment_is_used(fake: FakeS3, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "OLD")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "canary")
    store = S3Store("bucket", fake.storage(profile=""))
    store.put(f"{URL}/x", [b"1"])
    fake.expired.add("OLD")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "NEW")
    assert store.put_if_absent(f"{URL}/y", b"1") is PutResult.CREATED
    assert "Credential=NEW/" in fake.headers[-1]["authorization"]


def test_keys_expire_during_a_put_in_parts(fake: FakeS3, files: Path) -> None:
    """The chunks came once, so this write fails; the next one has the new keys."""
    write_profile(files, "OLD")
    store = S3Store("bucket", fake.storage(profile="team"))
    fake.expired.add("OLD")
    write_profile(files, "NEW")
    with pytest.raises(StoreRefusedError, match=EXPIRED):
        store.put(f"{URL}/segment", iter([bytes(9 << 20)]))
    store.put(f"{URL}/segment", [b"1"])
    assert "Credential=NEW/" in fake.headers[-1]["authorization"]


def test_expired_option_keys_are_an_error(fake: FakeS3) -> None:
    """Keys of options cannot be renewed: an error, nothing written; new keys go on."""
    log = log_on(S3Store("bucket", fake.storage()))
    state = append(log, created(log), (0, 3))
    fake.expired.add("AKID")
    with pytest.raises(StoreRefusedError, match=EXPIRED):
        log.load(state)
    with pytest.raises(StoreRefusedError, match=rf"{3:020d}.json: not read: .* expired: renew"):
        append(log, state, (0, 3))
    renewed = fake.storage(access_key_id="NEW", session_token="canary-token")
    again = log_on(S3Store("bucket", renewed))
    assert again.load().version == 1
    assert append(again, state, (0, 3)).version == 2


def test_forbidden_is_not_missing(fake: FakeS3) -> None:
    """S3 answers 403 for a missing object to a user who may not list: no log ends there."""
    writer = log_on(S3Store("bucket", fake.storage()))
    state = created(writer)
    fake.hides_absent = True
    log = log_on(S3Store("bucket", fake.storage()))
    with pytest.raises(
        KlogError,
        match=rf"{1:020d}.json: not read: .*s3:GetObject.*without s3:ListBucket on the bucket buck",
    ):
        log.load(state)
    with pytest.raises(StoreRefusedError, match="without s3:ListBucket"):
        S3Store("bucket", fake.storage()).open(f"{URL}/none")
    fake.hides_absent = False
    assert log.load(state) is state
