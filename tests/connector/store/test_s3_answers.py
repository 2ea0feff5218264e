"""S3's answers to a put-if-absent: the meaning of each, and how often it is sent."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from typing import Any

import pytest

from klog.connector.store.s3_store import MAX_PUT_TRIES, S3Store
from klog.connector.store.writable_store import PutResult
from klog.errors import OptionError, StoreError, StoreRefusedError
from tests.connector.store.fake_s3 import HANG, RESET, Answer, FakeS3, error, fake_s3, tag_of
from tests.support.kafka_broker import free_ports

PATH = "s3://bucket/t/00000000000000000001.json"


@pytest.fixture
def fake() -> Iterator[FakeS3]:
    with fake_s3() as running:
        yield running


def store_of(fake: FakeS3, **texts: str) -> tuple[S3Store, list[float]]:
    slept: list[float] = []
    return S3Store("bucket", fake.storage(**texts), slept.append, put_timeout_seconds=1), slept


CONFLICT = error(409, "ConditionalRequestConflict")

MEANINGS: list[tuple[str, list[Answer], PutResult, int]] = [
    ("it was created", [], PutResult.CREATED, 1),
    ("it exists", [error(412, "PreconditionFailed")], PutResult.EXISTS, 1),
    ("it exists, by its status", [Answer(412)], PutResult.EXISTS, 1),
    ("a conflict, then created", [CONFLICT], PutResult.CREATED, 2),
    ("conflicts, then it exists", [CONFLICT, CONFLICT, Answer(412)], PutResult.EXISTS, 3),
    ("conflicts without end", [CONFLICT] * 99, PutResult.UNKNOWN, MAX_PUT_TRIES),
    ("failed before", [error(500, "InternalError")], PutResult.UNKNOWN, 1),
    ("failed after", [error(500, "InternalError", applied=True)], PutResult.UNKNOWN, 1),
    ("too busy", [error(503, "SlowDown")], PutResult.UNKNOWN, 1),
    ("a gateway's time-out", [Answer(504, "<html>", applied=True)], PutResult.UNKNOWN, 1),
    ("a time-out of the body", [error(408, "RequestTimeout")], PutResult.UNKNOWN, 1),
    ("reset before", [Answer(RESET)], PutResult.UNKNOWN, 1),
    ("reset after", [Answer(RESET, applied=True)], PutResult.UNKNOWN, 1),
    ("no answer", [Answer(HANG, applied=True)], PutResult.UNKNOWN, 1),
    ("a conflict, then reset", [CONFLICT, Answer(RESET)], PutResult.UNKNOWN, 2),
]


@pytest.mark.parametrize(
    ("answers", "expected", "requests"),
    [row[1:] for row in MEANINGS],
    ids=[row[0] for row in MEANINGS],
)
def test_result_of_an_answer(
    fake: FakeS3, answers: list[Answer], expected: PutResult, requests: int
) -> None:
    fake.answers.extend(answers)
    store, slept = store_of(fake)
    assert store.put_if_absent(PATH, b"bytes") is expected
    assert fake.requests == [f"PUT /bucket/{PATH.removeprefix('s3://bucket/')}"] * requests
    assert all(sent["if-none-match"] == "*" for sent in fake.headers)
    assert len(slept) == requests - 1
    assert sum(slept) < 2


REFUSALS = [
    (
        error(403, "AccessDenied"),
        r"403 Forbidden \(AccessDenied\). Give these .* s3:PutObject there",
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


@pytest.mark.parametrize(("answer", "message"), REFUSALS, ids=lambda x: str(x)[:30])
def test_refusal_names_the_next_step(fake: FakeS3, answer: Answer, message: str) -> None:
    fake.answers.append(answer)
    store, _ = store_of(fake)
    with pytest.raises(StoreRefusedError, match=f"{PATH}: not written: .*{message}"):
        store.put_if_absent(PATH, b"bytes")
    assert len(fake.requests) == 1
    assert not fake.objects


def test_no_connection_is_no_effect() -> None:
    (port,) = free_ports(1)
    slept: list[float] = []
    store = S3Store("bucket", FakeS3(f"http://127.0.0.1:{port}").storage(), slept.append)
    unanswered = r"no connection to the server. Check storage.endpoint"
    with pytest.raises(StoreError, match=unanswered) as caught:
        store.put_if_absent(PATH, b"bytes")
    assert type(caught.value) is StoreError
    assert len(slept) == MAX_PUT_TRIES - 1


@pytest.mark.parametrize("call", ["read", "open", "entries", "put", "delete", "put_if_absent"])
def test_forbidden_is_not_missing(fake: FakeS3, call: str) -> None:
    fake.answers.extend([error(403, "AccessDenied")] * 9)
    store, _ = store_of(fake)
    arguments: dict[str, list[Any]] = {"put": [[b"x"]], "put_if_absent": [b"x"]}
    with pytest.raises(StoreRefusedError, match=r"not \w+: the server says 403 Forbidden"):
        getattr(store, call)(PATH, *arguments.get(call, []))


@pytest.mark.parametrize("call", ["read", "entries"])
def test_no_bucket_is_not_missing(fake: FakeS3, call: str) -> None:
    fake.answers.extend([error(404, "NoSuchBucket")] * 9)
    store, _ = store_of(fake)
    with pytest.raises(
        StoreRefusedError, match="Check that there is a bucket bucket at that endpoint"
    ):
        getattr(store, call)(PATH)


def test_error_has_no_secret(fake: FakeS3) -> None:
    """S3 answers a wrong signature with what was signed, and that has the session's token."""
    fake.answers.append(
        error(403, "SignatureDoesNotMatch", more="<StringToSign>canary-of-a-token</StringToSign>")
    )
    store, _ = store_of(fake, session_token="canary-of-a-token")
    with pytest.raises(StoreRefusedError, match="SignatureDoesNotMatch") as caught:
        store.put_if_absent(PATH, b"bytes")
    assert "canary" not in "".join(traceback.format_exception(caught.value))
    assert "canary" not in repr(store)
    assert fake.headers[0]["x-amz-security-token"] == "canary-of-a-token"


def test_object_replaced_while_it_is_read_is_missing(fake: FakeS3) -> None:
    fake.objects["/bucket/x"] = b"0123456789"
    store, _ = store_of(fake)
    fake.answers.append(Answer(200, "0123456789"))
    file = store.open("s3://bucket/x")
    fake.answers.append(error(412, "PreconditionFailed"))
    with pytest.raises(FileNotFoundError, match="s3://bucket/x was replaced while it was read"):
        file.read(0, 5)
    assert fake.headers[-1]["if-match"] == tag_of(b"0123456789")


def test_options_reach_the_requests(fake: FakeS3, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SESSION_TOKEN", "of-other-keys")
    store, _ = store_of(fake, region="eu-north-1")
    store.put_if_absent(PATH, b"1")
    assert "/eu-north-1/s3/" in fake.headers[0]["authorization"]
    assert "AKID/" in fake.headers[0]["authorization"]
    assert "x-amz-security-token" not in fake.headers[0]


def test_anonymous_request_is_not_signed(fake: FakeS3) -> None:
    store, _ = store_of(fake, anonymous="true")
    store.put_if_absent(PATH, b"1")
    assert "authorization" not in fake.headers[0]


def test_http_needs_an_option(fake: FakeS3) -> None:
    with pytest.raises(OptionError, match=r"sends data in the clear.*set storage.allow_http"):
        store_of(fake, allow_http="false")


@pytest.mark.parametrize("call", ["read", "entries", "open", "delete"])
def test_412_without_a_condition_is_not_missing(fake: FakeS3, call: str) -> None:
    """As a missing object, it would end a log."""
    fake.answers.append(error(412, "PreconditionFailed"))
    store, _ = store_of(fake)
    with pytest.raises(StoreError, match=r"not \w+: the server says 412 Precondition Failed"):
        getattr(store, call)(PATH)
