"""S3's answers to a put-if-absent, one by one: what each means, and how often it is asked."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from typing import Any

import pytest

from klog.connector.store.contract import Put
from klog.connector.store.s3 import CONFLICT_TRIES, S3
from klog.errors import KlogError, OptionError
from tests.broker import free_ports
from tests.stores.fake_s3 import HANG, RESET, Answer, FakeS3, error, fake_s3, tag_of

PATH = "s3://bucket/t/00000000000000000001.json"


@pytest.fixture
def fake() -> Iterator[FakeS3]:
    with fake_s3() as running:
        yield running


def store_of(fake: FakeS3, **more: str) -> tuple[S3, list[float]]:
    slept: list[float] = []
    return S3("bucket", fake.storage(**more), slept.append, once_seconds=1), slept


CONFLICT = error(409, "ConditionalRequestConflict")

MEANINGS: list[tuple[str, list[Answer], Put, int]] = [
    ("it was created", [], Put.CREATED, 1),
    ("it is there", [error(412, "PreconditionFailed")], Put.EXISTS, 1),
    ("it is there, in a status of its own", [Answer(412)], Put.EXISTS, 1),
    ("a conflict, then created", [CONFLICT], Put.CREATED, 2),
    ("conflicts, then there", [CONFLICT, CONFLICT, Answer(412)], Put.EXISTS, 3),
    ("conflicts without end", [CONFLICT] * 99, Put.UNKNOWN, CONFLICT_TRIES),
    ("failed before", [error(500, "InternalError")], Put.UNKNOWN, 1),
    ("failed after", [error(500, "InternalError", applied=True)], Put.UNKNOWN, 1),
    ("too busy", [error(503, "SlowDown")], Put.UNKNOWN, 1),
    ("a gateway's time-out", [Answer(504, "<html>", applied=True)], Put.UNKNOWN, 1),
    ("a time-out of the body", [error(408, "RequestTimeout")], Put.UNKNOWN, 1),
    ("reset before", [Answer(RESET)], Put.UNKNOWN, 1),
    ("reset after", [Answer(RESET, applied=True)], Put.UNKNOWN, 1),
    ("no answer", [Answer(HANG, applied=True)], Put.UNKNOWN, 1),
    ("a conflict, then reset", [CONFLICT, Answer(RESET)], Put.UNKNOWN, 2),
]


@pytest.mark.parametrize(
    ("answers", "found", "requests"),
    [row[1:] for row in MEANINGS],
    ids=[row[0] for row in MEANINGS],
)
def test_what_an_answer_means(
    fake: FakeS3, answers: list[Answer], found: Put, requests: int
) -> None:
    fake.answers.extend(answers)
    store, slept = store_of(fake)
    assert store.put_if_absent(PATH, b"bytes") is found
    assert fake.requests == [f"PUT /bucket/{PATH.removeprefix('s3://bucket/')}"] * requests
    assert all(sent["if-none-match"] == "*" for sent in fake.headers)
    assert len(slept) == requests - 1
    assert sum(slept) < 2


REFUSALS = [
    (
        error(403, "AccessDenied"),
        r"403 Forbidden \(AccessDenied\). Let these .* s3:PutObject there",
    ),
    (
        error(400, "ExpiredToken"),
        r"400 .* \(ExpiredToken\). The credentials have expired: renew",
    ),
    (error(401, "Unauthorized"), r"401 Unauthorized \(Unauthorized\). Check the credentials"),
    (error(404, "NoSuchBucket"), r"404 Not Found \(NoSuchBucket\). Check that there is a bucket"),
    (error(301, "PermanentRedirect"), "bucket bucket is in another region: set storage.region"),
    (error(501, "NotImplemented"), "501 Not Implemented .* This server lacks what klog asks of S3"),
    (error(413, "EntityTooLarge"), "413 Payload Too Large"),
]


@pytest.mark.parametrize(("answer", "words"), REFUSALS, ids=lambda x: str(x)[:30])
def test_a_refusal_says_what_to_do(fake: FakeS3, answer: Answer, words: str) -> None:
    fake.answers.append(answer)
    store, _ = store_of(fake)
    with pytest.raises(KlogError, match=f"{PATH}: not written: .*{words}"):
        store.put_if_absent(PATH, b"bytes")
    assert len(fake.requests) == 1
    assert not fake.objects


def test_no_connection_is_no_effect() -> None:
    (port,) = free_ports(1)
    slept: list[float] = []
    store = S3("bucket", FakeS3(f"http://127.0.0.1:{port}").storage(), slept.append)
    with pytest.raises(KlogError, match=r"no connection to the server. Check storage.endpoint"):
        store.put_if_absent(PATH, b"bytes")
    assert len(slept) == CONFLICT_TRIES - 1


@pytest.mark.parametrize("call", ["read", "open", "entries", "put", "delete", "put_if_absent"])
def test_forbidden_is_not_missing(fake: FakeS3, call: str) -> None:
    fake.answers.extend([error(403, "AccessDenied")] * 9)
    store, _ = store_of(fake)
    more: dict[str, list[Any]] = {"put": [[b"x"]], "put_if_absent": [b"x"]}
    with pytest.raises(KlogError, match=r"not \w+: the server says 403 Forbidden"):
        getattr(store, call)(PATH, *more.get(call, []))


@pytest.mark.parametrize("call", ["read", "entries"])
def test_no_bucket_is_not_missing(fake: FakeS3, call: str) -> None:
    fake.answers.extend([error(404, "NoSuchBucket")] * 9)
    store, _ = store_of(fake)
    with pytest.raises(KlogError, match="Check that there is a bucket bucket at that endpoint"):
        getattr(store, call)(PATH)


def test_no_secret_in_an_error(fake: FakeS3) -> None:
    """S3 answers a wrong signature with what was signed, and that has the session's token."""
    fake.answers.append(
        error(403, "SignatureDoesNotMatch", more="<StringToSign>canary-of-a-token</StringToSign>")
    )
    store, _ = store_of(fake, session_token="canary-of-a-token")
    with pytest.raises(KlogError, match="SignatureDoesNotMatch") as at:
        store.put_if_absent(PATH, b"bytes")
    assert "canary" not in "".join(traceback.format_exception(at.value))
    assert "canary" not in repr(store)
    assert fake.headers[0]["x-amz-security-token"] == "canary-of-a-token"


def test_an_object_replaced_while_it_is_read(fake: FakeS3) -> None:
    fake.objects["/bucket/x"] = b"0123456789"
    store, _ = store_of(fake)
    fake.answers.append(Answer(200, "0123456789"))
    file = store.open("s3://bucket/x")
    fake.answers.append(error(412, "PreconditionFailed"))
    with pytest.raises(FileNotFoundError, match="s3://bucket/x was replaced while it was read"):
        file.read(0, 5)
    assert fake.headers[-1]["if-match"] == tag_of(b"0123456789")


def test_what_storage_options_make(fake: FakeS3, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SESSION_TOKEN", "of-other-keys")
    store, _ = store_of(fake, region="eu-north-1")
    store.put_if_absent(PATH, b"1")
    assert "/eu-north-1/s3/" in fake.headers[0]["authorization"]
    assert "AKID/" in fake.headers[0]["authorization"]
    assert "x-amz-security-token" not in fake.headers[0]


def test_anonymous(fake: FakeS3) -> None:
    store, _ = store_of(fake, anonymous="true")
    store.put_if_absent(PATH, b"1")
    assert "authorization" not in fake.headers[0]


def test_http_is_allowed_only_when_said(fake: FakeS3) -> None:
    with pytest.raises(OptionError, match=r"sends data in the clear.*set storage.allow_http"):
        store_of(fake, allow_http="false")


@pytest.mark.parametrize("call", ["read", "entries", "open", "delete"])
def test_412_without_a_condition_is_not_missing(fake: FakeS3, call: str) -> None:
    """Taken for a missing object, it would be the end of a log or a log without a boundary."""
    fake.answers.append(error(412, "PreconditionFailed"))
    store, _ = store_of(fake)
    with pytest.raises(KlogError, match=r"not \w+: the server says 412 Precondition Failed"):
        getattr(store, call)(PATH)
