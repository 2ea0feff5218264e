"""What the commit log costs in requests on S3, counted at the server: what docs/stores.md says."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest

import klog
from klog.connector.log import cleaning
from klog.connector.log.log_reader import LISTING_MS
from klog.connector.log.operations import Writer
from klog.connector.log.paths import TopicPaths
from klog.connector.log.root import find_root, make_root
from klog.connector.log.topic_log import TopicLog
from klog.connector.sink import committing, writing
from klog.connector.sink.known import KnownTopics
from klog.connector.sink.write_options import write_options
from klog.connector.store.probe import RACERS, RACES
from klog.connector.store.s3 import S3
from klog.connector.store.storage import Storage
from tests.commits.logs import (
    DAY_MS,
    TOPIC,
    Clock,
    CountingStore,
    append,
    appended,
    created,
    topic_log,
)
from tests.stores.fake_s3 import FakeS3, fake_s3

STORES_PAGE = Path(__file__).parents[2] / "docs" / "stores.md"
URL = "s3://bucket/root"


@dataclass(frozen=True, slots=True)
class Bill:
    """A topic on a server that counts."""

    fake: FakeS3
    clock: Clock

    @property
    def storage(self) -> Storage:
        return self.fake.storage()

    def log(self) -> TopicLog:
        """Give the log to a process that has just begun."""
        store = S3("bucket", self.storage)
        return TopicLog(store, TopicPaths(URL, TOPIC), self.clock, lambda tries: None)

    def asked(self) -> dict[str, int]:
        return dict(self.fake.asked())


@pytest.fixture
def bill() -> Iterator[Bill]:
    with fake_s3() as fake:
        yield Bill(fake, Clock())


def on_the_page() -> dict[str, dict[str, int]]:
    """The table of the page: what is done, and how many requests of each kind."""
    text = STORES_PAGE.read_text().split("## Requests", 1)[1].split("\n## ", 1)[0]
    found = {}
    for what, *counts in re.findall(r"^\| (.*?) \|" + r" *(\d*) *\|" * 5, text, re.M):
        kinds = zip(("GET", "LIST", "HEAD", "PUT", "DELETE"), counts, strict=True)
        found[what] = {kind: int(count) for kind, count in kinds if count}
    return found


def test_the_page_is_true(bill: Bill) -> None:
    """Each row of the page is done here, and nothing else is in it."""
    seen: dict[str, dict[str, int]] = {}
    find_root(URL, bill.storage)
    seen["find out that a root is raw"] = bill.asked()
    make_root(URL, "a cluster", bill.storage)
    seen["make a root, its probe included"] = bill.asked()
    find_root(URL, bill.storage)
    seen["find a root"] = bill.asked()

    log = bill.log()
    state = created(log)
    seen["create a topic, cold"] = bill.asked()
    state = append(log, state, (0, 3))
    seen["commit"] = bill.asked()
    other = append(bill.log(), state, (0, 1))
    bill.fake.asked()
    state = append(log, state, (0, 2))
    seen["commit, when another came first"] = bill.asked()
    assert state.version == other.version + 1

    assert log.load(state) is state
    seen["poll an idle topic"] = bill.asked()
    other = append(bill.log(), state, (0, 1), (1, 1))
    bill.fake.asked()
    assert log.load(state).version == other.version
    seen["poll, with one new commit"] = bill.asked()

    cleaning.write_checkpoint(log, other)
    seen["write a checkpoint"] = bill.asked()
    for _ in range(5):
        other = append(log, other, (0, 1))
    bill.fake.asked()
    assert bill.log().load().version == other.version
    seen["load, cold: a checkpoint and 5 commits behind it"] = bill.asked()
    seen |= of_users(bill)
    seen |= of_streams(bill)
    assert seen == on_the_page()


def of_streams(bill: Bill) -> dict[str, dict[str, int]]:
    """What a micro-batch of one task and one partition costs; two processes plan and commit."""
    seen: dict[str, dict[str, int]] = {}
    given = {f"storage.{word}": text for word, text in bill.storage.given}
    given |= {"path": "s3://bucket/other", "topic": "streamed"}
    options = write_options(given, streaming=True)
    planner, committer = KnownTopics(), KnownTopics()
    rows = pa.RecordBatch.from_pydict({"value": [b"x" * 100] * 100})
    for number, called in enumerate(("cold, its topic made", "cold again", "warm")):
        if called == "cold again":
            planner, committer = KnownTopics(), KnownTopics()
        bill.fake.asked()
        with pytest.MonkeyPatch.context() as process:
            process.setattr(writing, "KNOWN", planner)
            planned = writing.plan(options, streaming=True)
        by = Writer("etl", number, "query", "run")
        work = writing.stage(planned, by, 0, number, iter([rows]))
        with pytest.MonkeyPatch.context() as process:
            process.setattr(committing, "KNOWN", committer)
            committing.commit(options, [work])
        seen[f"a micro-batch of one small partition, {called}"] = bill.asked()
    return seen


def of_users(bill: Bill) -> dict[str, dict[str, int]]:
    """What `klog.open` costs: a topic of one partition with 8 segments, small ones."""
    seen: dict[str, dict[str, int]] = {}
    words = dict(bill.storage.given)
    rows = pa.table({"value": [b"x" * 100] * 100})
    writer = klog.open("s3://bucket/other", **words)
    writer.create_topic("first")
    bill.fake.asked()
    klog.open("s3://bucket/other", **words).create_topic("t")
    seen["`klog.open(...).create_topic`, in a root that is there"] = bill.asked()
    writer = klog.open("s3://bucket/other", **words)
    writer.append("t", rows)
    seen["`append`, cold"] = bill.asked()
    writer.append("t", rows)
    seen["`append`, warm"] = bill.asked()
    with pytest.MonkeyPatch.context() as process:
        later_ns = time.time_ns() + LISTING_MS * 1_000_000
        process.setattr(time, "time_ns", lambda: later_ns)
        writer.append("t", rows)
    seen["`append`, warm, after a quiet minute, with 3 commits to read"] = bill.asked()
    for _ in range(5):
        writer.append("t", rows)
    reader = klog.open("s3://bucket/other", **words)
    bill.fake.asked()
    assert reader.scan("t", 450, 451).read_all().num_rows == 1
    seen["`scan` of one offset, cold, with 8 commits to read"] = bill.asked()
    assert reader.scan("t", 450, 451).read_all().num_rows == 1
    seen["`scan` of one offset, warm"] = bill.asked()
    assert reader.scan("t").read_all().num_rows == 800
    seen["`scan` of 8 segments, warm"] = bill.asked()
    return seen


def test_a_load_does_not_grow_with_the_history(bill: Bill) -> None:
    """With a boundary, and a checkpoint at the tip: nothing of the history is asked for.

    The checkpoint, the commit that it stands for, and the one behind it, which is not there.
    """
    log = bill.log()
    state = created(log)
    for _ in range(20):
        state = append(log, state, (0, 1))
    cleaning.write_checkpoint(log, state)
    bill.clock.now_ms += 90 * DAY_MS
    assert cleaning.clean_log(log) == 20 - 1
    bill.fake.asked()
    assert bill.log().load().version == state.version
    assert bill.fake.asked() == Counter(GET=3, LIST=3)


def test_a_listing_is_as_long_as_what_lies_after_the_checkpoint(bill: Bill) -> None:
    """2,500 commits are retained, 10 of them after the checkpoint: one page, not three.

    The boundaries and the checkpoints are a listing each, too.
    """
    kept = CountingStore()
    log = topic_log(kept, bill.clock)
    checkpointed = appended(log, created(log), 2489)
    cleaning.write_checkpoint(log, checkpointed)
    state = appended(log, checkpointed, 10)
    assert len(log.names(log.paths.commits)) == 2500
    bill.fake.objects |= {f"/bucket{path}": data for path, data in kept.files.items()}
    assert bill.log().load().version == state.version
    assert bill.asked() == {"GET": 1 + 10 + 1, "LIST": 1 + 1 + 1, "HEAD": 1}

    (checkpoint,) = log.names(log.paths.checkpoints)
    del bill.fake.objects[f"/bucket{log.paths.checkpoints}/{checkpoint}"]
    assert bill.log().load().version == state.version
    assert bill.asked() == {"GET": 2500 + 1, "LIST": 3 + 1 + 1, "HEAD": 2}


def test_the_probe(bill: Bill) -> None:
    make_root(URL, "a cluster", bill.storage)
    found = bill.fake.asked()
    assert (found["PUT"], found["DELETE"]) == (RACES * (RACERS + 1) + 1, RACES)
