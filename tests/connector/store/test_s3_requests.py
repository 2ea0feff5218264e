"""The requests of the commit log on S3, counted at the server, are those of docs/stores.md."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
import pytest

import klog
from klog.connector.commit_log import checkpoint_writer
from klog.connector.commit_log.append_commit import Writer
from klog.connector.commit_log.commit_log import CommitLog
from klog.connector.commit_log.commit_log_paths import TopicPaths
from klog.connector.commit_log.commit_log_reader import LISTING_INTERVAL_MS
from klog.connector.commit_log.root_discovery import find_or_create_root, find_root
from klog.connector.options.storage_options import StorageOptions
from klog.connector.options.write_options import parse_write_options
from klog.connector.sink import task_writer, write_commit, write_plan
from klog.connector.sink.topic_state_cache import TopicStateCache
from klog.connector.store.s3_store import S3Store
from klog.connector.store.store_probe import RACERS, RACES
from tests.connector.commit_log.memory_logs import (
    DAY_MS,
    TOPIC,
    Clock,
    CountingStore,
    append,
    appended,
    checkpoint_and_expire,
    created,
    topic_log,
)
from tests.connector.store.fake_s3 import FakeS3, fake_s3
from tests.support.project import PROJECT

STORES_PAGE = PROJECT / "docs" / "stores.md"
URL = "s3://bucket/root"


@dataclass(frozen=True, slots=True)
class Bill:
    """A topic on a server that counts."""

    fake: FakeS3
    clock: Clock

    @property
    def storage(self) -> StorageOptions:
        return self.fake.storage()

    def log(self) -> CommitLog:
        """Return the log as a process that has just started opens it."""
        store = S3Store("bucket", self.storage)
        return CommitLog(store, TopicPaths(URL, TOPIC), self.clock, lambda tries: None)

    def request_counts(self) -> dict[str, int]:
        return dict(self.fake.request_counts())


@pytest.fixture
def bill() -> Iterator[Bill]:
    with fake_s3() as fake:
        yield Bill(fake, Clock())


def counts_of_page() -> dict[str, dict[str, int]]:
    """Return the table of the page: the requests of each kind, by operation."""
    text = STORES_PAGE.read_text().split("## Requests", 1)[1].split("\n## ", 1)[0]
    operations = {}
    for operation, *counts in re.findall(r"^\| (.*?) \|" + r" *(\d*) *\|" * 5, text, re.M):
        kinds = zip(("GET", "LIST", "HEAD", "PUT", "DELETE"), counts, strict=True)
        operations[operation] = {kind: int(count) for kind, count in kinds if count}
    return operations


def test_counts_are_those_of_the_page(bill: Bill) -> None:
    """The operations of this test are the rows of the page."""
    seen: dict[str, dict[str, int]] = {}
    find_root(URL, bill.storage)
    seen["detect that a root is a broker's directory"] = bill.request_counts()
    find_or_create_root(URL, "a cluster", bill.storage)
    seen["create a root, including the probe"] = bill.request_counts()
    find_root(URL, bill.storage)
    seen["find a root"] = bill.request_counts()

    log = bill.log()
    state = created(log)
    seen["create a topic, cold"] = bill.request_counts()
    state = append(log, state, (0, 3))
    seen["commit"] = bill.request_counts()
    other = append(bill.log(), state, (0, 1))
    bill.fake.request_counts()
    state = append(log, state, (0, 2))
    seen["commit, after a concurrent commit"] = bill.request_counts()
    assert state.version == other.version + 1

    assert log.load(state) is state
    seen["poll an idle topic"] = bill.request_counts()
    other = append(bill.log(), state, (0, 1), (1, 1))
    bill.fake.request_counts()
    assert log.load(state).version == other.version
    seen["poll, with one new commit"] = bill.request_counts()

    checkpoint_writer.write_checkpoint(log, other)
    seen["write a checkpoint"] = bill.request_counts()
    for _ in range(5):
        other = append(log, other, (0, 1))
    bill.fake.request_counts()
    assert bill.log().load().version == other.version
    seen["load, cold: a checkpoint and 5 commits after it"] = bill.request_counts()
    seen |= of_users(bill)
    seen |= of_streams(bill)
    assert seen == counts_of_page()


def of_streams(bill: Bill) -> dict[str, dict[str, int]]:
    """Return the cost of a micro-batch of one task; one process plans, another commits."""
    seen: dict[str, dict[str, int]] = {}
    texts = {f"storage.{name}": text for name, text in bill.storage.values}
    texts |= {"path": "s3://bucket/other", "topic": "streamed"}
    options = parse_write_options(texts, is_streaming=True)
    planner, committer = TopicStateCache(), TopicStateCache()
    rows = pa.RecordBatch.from_pydict({"value": [b"x" * 100] * 100})
    for number, process_name in enumerate(("cold, which creates its topic", "cold again", "warm")):
        if process_name == "cold again":
            planner, committer = TopicStateCache(), TopicStateCache()
        bill.fake.request_counts()
        with pytest.MonkeyPatch.context() as process:
            process.setattr(write_plan, "TOPIC_STATES", planner)
            plan = write_plan.load_write_plan(options, is_streaming=True)
        writer = Writer("etl", number, "query", "run")
        message = task_writer.write_task(plan, writer, 0, number, iter([rows]))
        with pytest.MonkeyPatch.context() as process:
            process.setattr(write_commit, "TOPIC_STATES", committer)
            write_commit.commit(options, [message])
        seen[f"a micro-batch of one small partition, {process_name}"] = bill.request_counts()
    return seen


def of_users(bill: Bill) -> dict[str, dict[str, int]]:
    """Return the cost of calls of `klog.open`: a topic of one partition with 8 small segments."""
    seen: dict[str, dict[str, int]] = {}
    storage = dict(bill.storage.values)
    rows = pa.table({"value": [b"x" * 100] * 100})
    writer = klog.open("s3://bucket/other", **storage)
    writer.create_topic("first")
    bill.fake.request_counts()
    klog.open("s3://bucket/other", **storage).create_topic("t")
    seen["`klog.open(...).create_topic`, in an existing root"] = bill.request_counts()
    writer = klog.open("s3://bucket/other", **storage)
    writer.append("t", rows)
    seen["`append`, cold"] = bill.request_counts()
    writer.append("t", rows)
    seen["`append`, warm"] = bill.request_counts()
    with pytest.MonkeyPatch.context() as process:
        later_ns = time.time_ns() + LISTING_INTERVAL_MS * 1_000_000
        process.setattr(time, "time_ns", lambda: later_ns)
        writer.append("t", rows)
    seen["`append`, warm, after a quiet minute, with 3 commits to read"] = bill.request_counts()
    for _ in range(5):
        writer.append("t", rows)
    reader = klog.open("s3://bucket/other", **storage)
    bill.fake.request_counts()
    assert reader.scan("t", 450, 451).read_all().num_rows == 1
    seen["`scan` of one offset, cold, with 8 commits to read"] = bill.request_counts()
    assert reader.scan("t", 450, 451).read_all().num_rows == 1
    seen["`scan` of one offset, warm"] = bill.request_counts()
    assert reader.scan("t").read_all().num_rows == 800
    seen["`scan` of 8 segments, warm"] = bill.request_counts()
    return seen


def test_load_does_not_grow_with_the_history(bill: Bill) -> None:
    """With an expiration file, and a checkpoint at the tip: nothing of the history is asked for.

    The checkpoint, its commit, and the next one, which is missing.
    """
    log = bill.log()
    state = created(log)
    for _ in range(20):
        state = append(log, state, (0, 1))
    bill.clock.now_ms += 90 * DAY_MS
    assert checkpoint_and_expire(log) == 20 - 1
    checkpoint_writer.write_checkpoint(log, state)
    bill.fake.request_counts()
    assert bill.log().load().version == state.version
    assert bill.fake.request_counts() == Counter(GET=3, LIST=3)


def test_listing_starts_at_the_checkpoint(bill: Bill) -> None:
    """250 commits are retained, 10 of them after the checkpoint: one page of 100, not three.

    The expiration files and the checkpoints are a listing each, too.
    """
    bill.fake.page_names = 100
    memory = CountingStore()
    log = topic_log(memory, bill.clock)
    checkpointed = appended(log, created(log), 239)
    checkpoint_writer.write_checkpoint(log, checkpointed)
    state = appended(log, checkpointed, 10)
    assert len(log.names(log.paths.commits)) == 250
    bill.fake.objects |= {f"/bucket{path}": data for path, data in memory.files.items()}
    assert bill.log().load().version == state.version
    assert bill.request_counts() == {"GET": 1 + 10 + 1, "LIST": 1 + 1 + 1, "HEAD": 1}

    (checkpoint,) = log.names(log.paths.checkpoints)
    del bill.fake.objects[f"/bucket{log.paths.checkpoints}/{checkpoint}"]
    assert bill.log().load().version == state.version
    assert bill.request_counts() == {"GET": 250 + 1, "LIST": 3 + 1 + 1, "HEAD": 2}


def test_requests_of_the_probe(bill: Bill) -> None:
    find_or_create_root(URL, "a cluster", bill.storage)
    counts = bill.fake.request_counts()
    assert (counts["PUT"], counts["DELETE"]) == (RACES * (RACERS + 1) + 1, RACES)
