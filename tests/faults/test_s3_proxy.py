"""Commits to a real S3 server whose answers are lost, late or wrong: each record is there once."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

import pytest

from klog.connector.commit_log import (
    append_commit,
)
from klog.connector.commit_log.commit_log import CommitLog
from klog.connector.commit_log.topic_state import TopicState
from klog.connector.options.storage_options import parse_storage_options
from klog.connector.store import s3_requests
from klog.connector.store.s3_client import RetryPolicy
from klog.connector.store.s3_store import S3Store
from klog.connector.store.temporary_names import random_id
from klog.errors import CommitStateUnknownError, KlogError
from tests.connector.commit_log.memory_logs import checkpoint_and_expire
from tests.faults import signed_topic
from tests.faults.proxy import RESET, Proxy, Wrong, proxy_to
from tests.faults.signed_topic import new, writer
from tests.support.store_servers import BUCKET, SECRET_ACCESS_KEY, S3Server

pytestmark = [pytest.mark.stores, pytest.mark.slow]
MAX_REQUESTS = 40
PUT = 1
"""The number of a commit's request that puts it."""
MAX_SECONDS = 20
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

FEW = [wrong for wrong in ONCE if wrong.status in (RESET, 412) and not wrong.hangs]


@dataclass(frozen=True, slots=True)
class TopicClients:
    """Clients of one topic, one through the proxy and one without."""

    proxy: Proxy
    proxied: CommitLog
    direct: CommitLog


@pytest.fixture
def clients(s3_server: S3Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[TopicClients]:
    monkeypatch.setattr(s3_requests, "RETRY_POLICY", RetryPolicy(max_retries=3, timeout_seconds=5))
    url = urlsplit(s3_server.endpoint)
    root = f"s3://{BUCKET}/{random_id()}"
    with proxy_to(str(url.hostname), url.port or 80) as proxy:
        options = s3_server.options() | {"storage.endpoint": proxy.endpoint}
        proxied = S3Store(BUCKET, parse_storage_options(options), put_timeout_seconds=5)
        direct = S3Store(BUCKET, parse_storage_options(s3_server.options()))
        yield TopicClients(
            proxy, signed_topic.log_on(proxied, root), signed_topic.log_on(direct, root)
        )


def new_topic(clients: TopicClients) -> tuple[TopicClients, TopicState]:
    """Create another topic with one record; return its clients and its state."""
    root = f"s3://{BUCKET}/{random_id()}"
    paths = replace(clients.direct.paths, root=root)
    topic = TopicClients(
        clients.proxy, replace(clients.proxied, paths=paths), replace(clients.direct, paths=paths)
    )
    return topic, signed_topic.append(topic.direct, signed_topic.create(topic.direct), {0: ["a0"]})


@pytest.mark.parametrize("wrong", ONCE, ids=str)
def test_f03_f04_each_request_of_a_commit_going_wrong(clients: TopicClients, wrong: Wrong) -> None:
    """A commit is a GET, a PUT and a listing; each record is there once whatever the answers.

    A 409 or 412 for the GET or the listing, which have no condition, is an error like any other:
    the commit has not begun, or its state is unknown.
    """
    for at in range(MAX_REQUESTS):
        topic, state = new_topic(clients)
        build = append_commit.append(
            signed_topic.stage(topic.proxied, state, {0: ["x0", "x1"], 1: ["y0"]})
        )
        clients.proxy.fail(wrong, at)
        began = time.monotonic()
        error = None
        try:
            topic.proxied.commit(state, build, new("append"))
        except KlogError as exc:
            error = exc
        was_reached = at < len(clients.proxy.requests)
        clients.proxy.fail(None)
        assert time.monotonic() - began < MAX_SECONDS
        actual = signed_topic.records_of(topic.direct)
        if error is None:
            assert actual == AFTER
        else:
            assert wrong.status in (409, 412)  # Other requests are retried.
            assert at != PUT
            assert isinstance(error, CommitStateUnknownError) == (at > PUT)
            assert actual == (AFTER if at > PUT else BEFORE)
        if not was_reached:
            return
    raise AssertionError("it never ended")


@pytest.mark.parametrize("wrong", FEW, ids=str)
def test_f03_a_named_batch_written_again_after_any_answer(
    clients: TopicClients, wrong: Wrong
) -> None:
    """Load, stage and commit with one wrong answer, then write the same batch again."""
    for at in range(MAX_REQUESTS):
        topic, _ = new_topic(clients)
        batch = {0: ["x0", "x1"], 1: ["y0"]}
        clients.proxy.fail(wrong, at)
        try:
            signed_topic.append(topic.proxied, topic.proxied.load(), batch, writer(1))
        except KlogError:
            assert signed_topic.records_of(topic.direct) in (BEFORE, AFTER)
        was_reached = at < len(clients.proxy.requests)
        clients.proxy.fail(None)
        signed_topic.append(topic.proxied, topic.proxied.load(), batch, writer(1))
        assert signed_topic.records_of(topic.direct) == AFTER
        if not was_reached:
            return
    raise AssertionError("it never ended")


@pytest.mark.parametrize("applied", [False, True])
@pytest.mark.parametrize("status", [RESET, 503])
def test_f03_a_server_that_goes_away(clients: TopicClients, status: int, applied: bool) -> None:
    """The server is down from one of a commit's requests on: the error is quick and correct."""
    for at in range(3):
        topic, state = new_topic(clients)
        staged = signed_topic.stage(topic.proxied, state, {0: ["x0", "x1"], 1: ["y0"]})
        clients.proxy.fail(Wrong(status, "SlowDown", applied, to_the_end=True), at)
        began = time.monotonic()
        with pytest.raises(KlogError) as raised:
            topic.proxied.commit(state, append_commit.append(staged), new("append"))
        assert time.monotonic() - began < MAX_SECONDS
        clients.proxy.fail(None)
        is_unknown = isinstance(raised.value, CommitStateUnknownError)
        assert is_unknown == (at >= PUT)
        assert ("klog history" in str(raised.value)) == is_unknown
        has_landed = at > PUT or (at == PUT and applied)
        assert signed_topic.records_of(topic.direct) == (AFTER if has_landed else BEFORE)


def test_f04_403_for_an_absent_key(clients: TopicClients) -> None:
    """Without permission to list, S3 answers 403 for an absent key: a load fails."""
    topic, state = new_topic(clients)
    clients.proxy.fail(Wrong(403, "AccessDenied", only="GET", to_the_end=True))
    with pytest.raises(KlogError, match=r"403 Forbidden \(AccessDenied\).*s3:GetObject"):
        topic.proxied.load(state)


@pytest.mark.parametrize(
    ("code", "step"), [("ExpiredToken", "expired"), ("InvalidAccessKeyId", "access key")]
)
def test_f28_credentials_that_expire_midway(clients: TopicClients, code: str, step: str) -> None:
    """They expire at each request: nothing is acknowledged, and later writes succeed."""
    for at in range(MAX_REQUESTS):
        topic, _ = new_topic(clients)
        batch = {0: ["x0", "x1"], 1: ["y0"]}
        clients.proxy.fail(Wrong(403, code, to_the_end=True), at)
        error = None
        try:
            signed_topic.append(topic.proxied, topic.proxied.load(), batch, writer(1))
        except KlogError as exc:
            error = exc
        was_reached = at < len(clients.proxy.requests)
        clients.proxy.fail(None)
        assert (error is None) == (not was_reached)
        if error is not None:
            text = f"{error} {error.__cause__}"
            assert "403 Forbidden" in text
            assert step in str(error)
            assert SECRET_ACCESS_KEY not in text
        signed_topic.append(topic.proxied, topic.proxied.load(), batch, writer(1))
        assert signed_topic.records_of(topic.direct) == AFTER
        if not was_reached:
            return
    raise AssertionError("it never ended")


@pytest.mark.parametrize("step", [5, pytest.param(1, marks=pytest.mark.full)])
def test_f03_log_expiration_with_requests_failing(clients: TopicClients, step: int) -> None:
    """Checkpoint and log expiration: nothing live is lost, and the next run completes."""
    for at in range(0, MAX_REQUESTS + step, step):
        topic, state = new_topic(clients)
        signed_topic.append(topic.direct, state, {0: ["x0", "x1"], 1: ["y0"]})
        clients.proxy.fail(Wrong(RESET, applied=True), at)
        with suppress(KlogError):
            checkpoint_and_expire(topic.proxied)
        was_reached = at < len(clients.proxy.requests)
        clients.proxy.fail(None)
        assert signed_topic.records_of(topic.direct) == AFTER
        if not was_reached:
            checkpoint_and_expire(topic.direct)
            assert signed_topic.records_of(topic.direct) == AFTER
            return
    raise AssertionError("it never ended")
