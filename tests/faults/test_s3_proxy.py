"""Commits to a real S3 server whose answers are lost, late or wrong: one copy of each record."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

import pytest

from klog.connector.commit_log import (
    append_commit,
    checkpoint_writer,
    commit_expiration,
)
from klog.connector.commit_log.commit_log import CommitLog
from klog.connector.commit_log.topic_state import TopicState
from klog.connector.options.storage_options import parse_storage_options
from klog.connector.store import s3_requests
from klog.connector.store.s3_client import RetryPolicy
from klog.connector.store.s3_store import S3Store
from klog.connector.store.temporary_names import random_id
from klog.errors import CommitStateUnknownError, KlogError
from tests.faults import signed_topic
from tests.faults.proxy import RESET, Proxy, Wrong, proxy_to
from tests.faults.signed_topic import new, writer
from tests.support.store_servers import BUCKET, SECRET_ACCESS_KEY, S3Server

pytestmark = [pytest.mark.stores, pytest.mark.slow]
MOST_REQUESTS = 40
PUT = 1
"""Which of a commit's requests puts it."""
MOST_SECONDS = 20
BEFORE, AFTER = [["a0"], []], [["a0", "x0", "x1"], ["y0"]]

ONCE = [
    Wrong(status, code, applied, hangs)
    for applied in (False, True)
    for status, code, hangs in (
        (RESET, "", False),
        (RESET, "", True),
        (500, "InternalError", False),
        (503, "SlowDown", False),
        (409, "ConditionalRequestConflict", False),
        (412, "PreconditionFailed", False),
    )
]

FEW = [one for one in ONCE if one.status in (RESET, 412) and not one.hangs]


@dataclass(frozen=True, slots=True)
class Both:
    """One topic, as clients find it through the proxy and as it is."""

    proxy: Proxy
    through: CommitLog
    direct: CommitLog


@pytest.fixture
def both(s3_server: S3Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[Both]:
    monkeypatch.setattr(s3_requests, "RETRY_POLICY", RetryPolicy(max_retries=3, timeout_seconds=5))
    url = urlsplit(s3_server.endpoint)
    root = f"s3://{BUCKET}/{random_id()}"
    with proxy_to(str(url.hostname), url.port or 80) as proxy:
        options = s3_server.options() | {"storage.endpoint": proxy.endpoint}
        through = S3Store(BUCKET, parse_storage_options(options), put_timeout_seconds=5)
        direct = S3Store(BUCKET, parse_storage_options(s3_server.options()))
        yield Both(proxy, signed_topic.log_on(through, root), signed_topic.log_on(direct, root))


def anew(both: Both) -> tuple[Both, TopicState]:
    """Give another topic of one record, and its state."""
    root = f"s3://{BUCKET}/{random_id()}"
    paths = replace(both.direct.paths, root=root)
    made = Both(both.proxy, replace(both.through, paths=paths), replace(both.direct, paths=paths))
    return made, signed_topic.append(made.direct, signed_topic.create(made.direct), {0: ["a0"]})


@pytest.mark.parametrize("wrong", ONCE, ids=str)
def test_f03_f04_each_request_of_a_commit_going_wrong(both: Both, wrong: Wrong) -> None:
    """A commit is a GET, a PUT and a listing: whatever comes for one, each record is there once.

    A 409 or 412 to the GET or the listing, which have no condition, is an error like any other: the
    commit has not begun, or nobody can say whether it counts.
    """
    for at in range(MOST_REQUESTS):
        at_hand, state = anew(both)
        build = append_commit.append(
            signed_topic.stage(at_hand.through, state, {0: ["x0", "x1"], 1: ["y0"]})
        )
        both.proxy.fail(wrong, at)
        began = time.monotonic()
        error = None
        try:
            at_hand.through.commit(state, build, new("append"))
        except KlogError as exc:
            error = exc
        was_reached = at < len(both.proxy.requests)
        both.proxy.fail(None)
        assert time.monotonic() - began < MOST_SECONDS
        found = signed_topic.records_of(at_hand.direct)
        if error is None:
            assert found == AFTER
        else:
            assert wrong.status in (409, 412)  # Others are asked again.
            assert at != PUT
            assert isinstance(error, CommitStateUnknownError) == (at > PUT)
            assert found == (AFTER if at > PUT else BEFORE)
        if not was_reached:
            return
    raise AssertionError("it never ended")


@pytest.mark.parametrize("wrong", FEW, ids=str)
def test_f03_a_named_batch_written_again_after_any_answer(both: Both, wrong: Wrong) -> None:
    """Load, stage, commit with one request wrong; then the same batch again: one copy."""
    for at in range(MOST_REQUESTS):
        at_hand, _ = anew(both)
        batch = {0: ["x0", "x1"], 1: ["y0"]}
        both.proxy.fail(wrong, at)
        try:
            signed_topic.append(at_hand.through, at_hand.through.load(), batch, writer(1))
        except KlogError:
            assert signed_topic.records_of(at_hand.direct) in (BEFORE, AFTER)
        was_reached = at < len(both.proxy.requests)
        both.proxy.fail(None)
        signed_topic.append(at_hand.through, at_hand.through.load(), batch, writer(1))
        assert signed_topic.records_of(at_hand.direct) == AFTER
        if not was_reached:
            return
    raise AssertionError("it never ended")


@pytest.mark.parametrize("applied", [False, True])
@pytest.mark.parametrize("status", [RESET, 503])
def test_f03_a_server_that_goes_away(both: Both, status: int, applied: bool) -> None:
    """From one of a commit's requests on nothing is answered: the error comes soon, and is true."""
    for at in range(3):
        at_hand, state = anew(both)
        staged = signed_topic.stage(at_hand.through, state, {0: ["x0", "x1"], 1: ["y0"]})
        both.proxy.fail(Wrong(status, "SlowDown", applied, to_the_end=True), at)
        began = time.monotonic()
        with pytest.raises(KlogError) as raised:
            at_hand.through.commit(state, append_commit.append(staged), new("append"))
        assert time.monotonic() - began < MOST_SECONDS
        both.proxy.fail(None)
        is_unknown = isinstance(raised.value, CommitStateUnknownError)
        assert is_unknown == (at >= PUT)
        assert ("klog history" in str(raised.value)) == is_unknown
        has_landed = at > PUT or (at == PUT and applied)
        assert signed_topic.records_of(at_hand.direct) == (AFTER if has_landed else BEFORE)


def test_f04_an_absent_key_that_is_forbidden(both: Both) -> None:
    """Without the right to list, S3 says 403 for what is absent: no load may take it for absent."""
    at_hand, state = anew(both)
    both.proxy.fail(Wrong(403, "AccessDenied", only="GET", to_the_end=True))
    with pytest.raises(KlogError, match=r"403 Forbidden \(AccessDenied\).*s3:GetObject"):
        at_hand.through.load(state)


@pytest.mark.parametrize(
    ("code", "step"), [("ExpiredToken", "expired"), ("InvalidAccessKeyId", "access key")]
)
def test_f28_credentials_that_expire_midway(both: Both, code: str, step: str) -> None:
    """At each request from which they may have expired: no acknowledgement, and later it works."""
    for at in range(MOST_REQUESTS):
        at_hand, _ = anew(both)
        batch = {0: ["x0", "x1"], 1: ["y0"]}
        both.proxy.fail(Wrong(403, code, to_the_end=True), at)
        error = None
        try:
            signed_topic.append(at_hand.through, at_hand.through.load(), batch, writer(1))
        except KlogError as exc:
            error = exc
        was_reached = at < len(both.proxy.requests)
        both.proxy.fail(None)
        assert (error is None) == (not was_reached)
        if error is not None:
            said = f"{error} {error.__cause__}"
            assert "403 Forbidden" in said
            assert step in str(error)
            assert SECRET_ACCESS_KEY not in said
        signed_topic.append(at_hand.through, at_hand.through.load(), batch, writer(1))
        assert signed_topic.records_of(at_hand.direct) == AFTER
        if not was_reached:
            return
    raise AssertionError("it never ended")


def test_f03_cleaning_with_each_request_going_wrong(both: Both) -> None:
    """Checkpoint and log cleaning: nothing that lives is lost, and the next run goes on."""
    for at in range(MOST_REQUESTS):
        at_hand, state = anew(both)
        signed_topic.append(at_hand.direct, state, {0: ["x0", "x1"], 1: ["y0"]})
        both.proxy.fail(Wrong(RESET, applied=True), at)
        with suppress(KlogError):
            clean(at_hand.through)
        was_reached = at < len(both.proxy.requests)
        both.proxy.fail(None)
        assert signed_topic.records_of(at_hand.direct) == AFTER
        if not was_reached:
            clean(at_hand.direct)
            assert signed_topic.records_of(at_hand.direct) == AFTER
            return
    raise AssertionError("it never ended")


def clean(log: CommitLog) -> None:
    checkpoint_writer.write_checkpoint(log, log.load())
    commit_expiration.expire_log(log, 0)
