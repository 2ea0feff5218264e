"""Streams that a release began: the current code continues from their checkpoints."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import klog
from tests.releases.account import records_of
from tests.releases.command import done
from tests.releases.conftest import Archive
from tests.releases.streams import (
    BATCHES,
    LETTER_HEADERS,
    STREAMS,
    TOPIC,
    go_on,
    offsets_of,
    sink_records,
    source_records,
    without_offsets,
    write_letters,
)

pytestmark = pytest.mark.spark

Copied = Callable[[str], Path]


@pytest.mark.parametrize("name", STREAMS)
def test_a_stream_goes_on(spark: SparkSession, archive: Archive, copied: Copied, name: str) -> None:
    """It reads each unread record once, and writes no record again."""
    stream = copied(f"streams/{name}")
    expected = archive.expected["streams"][name]
    assert source_records(stream) == expected["records"]
    before, written = offsets_of(stream), sink_records(stream)
    assert (len(before), len(written)) == (BATCHES, 6 * BATCHES)
    go_on(spark, stream, expected)
    assert [record for record in sink_records(stream) if record in written] == written
    assert without_offsets(sink_records(stream)) == without_offsets(expected["records"])
    *same, newest = offsets_of(stream)
    assert same == before
    ids = {TOPIC: _topic_id(archive, name)}
    restored: dict[str, object] = (
        {} if name == "broker" else {"#restored": {}}
    )  # An older klog reads it if empty.
    assert newest == {"#ids": ids, **restored, TOPIC: {"0": 10, "1": 7, "2": 1}}
    assert list(before[0]) == ["#ids", TOPIC]
    assert list(newest) == ["#ids", *restored, TOPIC]
    go_on(spark, stream, expected)
    assert len(offsets_of(stream)) == BATCHES + 1
    done("verify", "--root", str(stream / "sink"))


@pytest.mark.parametrize("name", ["klog", "named"])
def test_a_batch_that_was_committed_is_not_written_again(
    spark: SparkSession, archive: Archive, copied: Copied, name: str
) -> None:
    """The release was killed after its commit: Spark runs the batch again, and klog skips it."""
    stream = copied(f"streams/{name}")
    expected = archive.expected["streams"][name]
    commits = stream / "checkpoint" / "commits"
    for file in (f"{BATCHES - 1}", f".{BATCHES - 1}.crc"):
        (commits / file).unlink()
    go_on(spark, stream, expected)
    assert (commits / f"{BATCHES - 1}").exists()
    assert without_offsets(sink_records(stream)) == without_offsets(expected["records"])
    batches = [
        commit["batchId"]
        for commit in done(
            "history", "--root", str(stream / "sink"), "--topic", TOPIC, "--json"
        ).json_lines()
        if "batchId" in commit
    ]
    assert batches == [2, 1, 0]


def test_roots_are_read_by_spark(spark: SparkSession, archive: Archive) -> None:
    klog.register(spark)
    for topic in ("codecs", "txn.interleaved", "compacted-many"):
        rows = (
            spark.read.format("klog")
            .option("subscribe", topic)
            .load(str(archive.folder / "root"))
            .selectExpr("partition", "offset", "unix_millis(timestamp)")
        )
        expected = archive.expected["roots"]["root"][topic]["records"]
        assert sorted(map(tuple, rows.collect())) == [
            (record["partition"], record["offset"], record["timestamp"]) for record in expected
        ]


def test_dead_letters_have_their_headers(spark: SparkSession, tmp_path: Path) -> None:
    write_letters(spark, tmp_path)
    (letter,) = records_of(tmp_path, "letters")
    headers = {header["key"]: header["value"] for header in letter["headers"]}
    reason = headers.pop("klog.dead-letter.reason")
    assert "partition 9" in reason
    assert headers == LETTER_HEADERS


def test_a_named_batch_of_a_release_is_not_written_again(
    spark: SparkSession, archive: Archive, copied: Copied
) -> None:
    root = copied("letters")
    topics = ("orders", "payments", "letters")
    before = {topic: records_of(root, topic) for topic in topics}
    write_letters(spark, root)
    assert {topic: records_of(root, topic) for topic in topics} == before


def _topic_id(archive: Archive, name: str) -> str:
    """Return the id of the topic that a stream reads."""
    roots = archive.expected["roots"]
    if name == "broker":
        path = archive.folder / "streams" / name / "source" / f"{TOPIC}-0" / "partition.metadata"
        return path.read_text().split("topic_id: ")[1].strip()
    topic_id: str = roots[f"streams/{name}/source"][TOPIC]["topicId"]
    return topic_id
