"""`klog history`: each kind of commit as text and as JSON."""

from __future__ import annotations

import json
import re

import pytest

from klog.connector.commit_log import (
    append_commit,
    checkpoint_writer,
    commit_builders,
    commit_expiration,
)
from klog.connector.commit_log.commit_info import CommitInfo
from klog.connector.commit_log.root_discovery import find_root
from tests.support.command_root import Root

CREATE = ("topics", "create", "--topic", "orders")


def lines(on_root: Root, *arguments: str) -> list[str]:
    return on_root.does("history", "--topic", "orders", *arguments).splitlines()


def test_each_kind_of_commit_as_a_line(on_root: Root) -> None:
    on_root.does(*CREATE, "--partitions", "3", "--config", "retention.ms=5")
    topic_id = on_root.state("orders").topic_id
    on_root.clock.now_ms += 1_234
    on_root.append("orders", 2, 1000, append_commit.Writer("the writer", 4, "query", "run"))
    on_root.does("topics", "alter", "--topic", "orders", "--partitions", "4")
    on_root.does(
        "configs",
        "--topic",
        "orders",
        "--config",
        "segment.ms=7",
        "--delete-config",
        "retention.ms",
    )
    on_root.append("orders", 2, 1)
    records = commit_builders.delete_records(topic_id, {2: 1000})
    on_root.commit("orders", records, "delete-records")
    on_root.does("topics", "delete", "--topic", "orders")
    on_root.does(*CREATE)

    output = lines(on_root)
    assert [line.split("\t")[0] for line in output] == [f"Version: {n}" for n in range(7, -1, -1)]
    assert all(re.search(r"\tBy: (klog [0-9.]+, .+@.+|a test)$", line) for line in output)
    middle = [re.sub(r"^Version: .\tTime: [^\t]+\t|\tBy: .*", "", line) for line in output]
    assert middle[1:] == [
        "Operation: delete-topic\tRemoved: 1 record, 7 bytes",
        "Operation: delete-records\tRemoved: 1 segment, 1,000 records, 7,000 bytes"
        "\tPartitions: 2\tLogStart: 2=1000",
        "Operation: append\tAdded: 1 segment, 1 record, 7 bytes\tPartitions: 2"
        "\tOffsets: 2=1000..1000",
        "Operation: alter-config\tConfigs: retention.ms unset,segment.ms=7",
        "Operation: add-partitions\tPartitionCount: 4",
        "Operation: append\tAdded: 1 segment, 1,000 records, 7,000 bytes\tPartitions: 2"
        "\tOffsets: 2=0..999\tWriter: the writer\tBatch: 4",
        f"Operation: create-topic\tTopicId: {topic_id}\tPartitionCount: 3\tConfigs: retention.ms=5",
    ]
    assert "\tTime: 2023-11-14T22:13:21.234Z\tOperation: append\t" in output[-2]


def test_the_newest_only(on_root: Root) -> None:
    on_root.does(*CREATE)
    on_root.append("orders", 0, 1)
    assert [line.split("\t")[0] for line in lines(on_root, "--limit", "1")] == ["Version: 1"]
    assert len(lines(on_root, "--limit", "999999999999999")) == 2


def test_as_json(on_root: Root) -> None:
    on_root.does(*CREATE)
    on_root.append("orders", 0, 10, append_commit.Writer("w", 4, "query", "run"))
    on_root.commit(
        "orders",
        commit_builders.delete_records(on_root.state("orders").topic_id, {0: 10}),
        "retain",
    )
    retained, appended, created = map(json.loads, lines(on_root, "--json"))
    amount = {"segments": 1, "records": 10, "bytes": 70}
    assert (retained["removed"], retained["logStart"]) == (amount, {"0": 10})
    assert appended == {
        "version": 1,
        "timestampMs": on_root.clock.now_ms + 1,
        "operation": "append",
        "engine": "a test",
        "writeId": appended["writeId"],
        "added": amount,
        "partitions": [0],
        "transactionalId": "w",
        "batchId": 4,
        "queryId": "query",
        "runId": "run",
        "offsets": {"0": {"first": 0, "last": 9}},
    }
    assert (created["operation"], created["partitionCount"]) == ("create-topic", 1)


def test_expired_commits_are_mentioned(on_root: Root) -> None:
    on_root.does(*CREATE)
    root = find_root(str(on_root.path))
    assert root is not None
    log = root.log("orders")
    for number in range(1, 5):
        on_root.clock.now_ms += 1000
        on_root.append("orders", 0, 1)
        if number == 2:
            checkpoint_writer.write_checkpoint(log, log.load())
    assert commit_expiration.expire_log(log, retention_ms=2000) == 2
    *_, last, note = lines(on_root)
    assert last.startswith("Version: 3\t")
    assert note == "Commits before version 3 have expired: a checkpoint has their state."
    assert len(lines(on_root, "--limit", "2")) == 2  # The limit ends before the note.
    assert [json.loads(line)["version"] for line in lines(on_root, "--json")] == [4, 3]


def test_control_characters_are_escaped(on_root: Root) -> None:
    on_root.does(*CREATE)
    root = find_root(str(on_root.path))
    assert root is not None
    log, state = root.log("orders"), on_root.state("orders")
    build = commit_builders.alter_config(state.topic_id, {}, {"x": "1\x1b[2J\nVersion: 9"})
    log.commit(state, build, CommitInfo("id", "alter-config", "\r\x1b]0;me\x07"))
    (line, _) = lines(on_root)
    assert r"Configs: x=1\x1b[2J\nVersion: 9" in line
    assert line.endswith(r"By: \r\x1b]0;me\x07")


def test_a_deleted_topic_has_its_history(on_root: Root) -> None:
    on_root.does(*CREATE)
    on_root.does("topics", "delete", "--topic", "orders")
    assert "Operation: delete-topic" in lines(on_root)[0]
    assert "there is no topic order" in on_root.refuses("history", "--topic", "order")


@pytest.mark.parametrize("limit", ["0", "-1", "ten", "9" * 5000])
def test_a_limit_that_is_not_a_number(on_root: Root, limit: str) -> None:
    message = on_root.refuses("history", "--topic", "orders", f"--limit={limit}", code=2)
    assert "must be a number of commits from 1" in message


def test_the_offsets_of_a_commit(on_root: Root) -> None:
    on_root.does(*CREATE, "--partitions", "3")
    first, second = on_root.stage("orders", 0, 4), on_root.stage("orders", 2, 2)
    both = append_commit.StagedSegments(
        first.topic_id, first.base_version, [*first.segments, *second.segments]
    )
    on_root.commit("orders", append_commit.append(both), "append")
    on_root.append("orders", 0, 6)
    on_root.does("delete-records", "--topic", "orders", "--partition", "0", "--offset", "3")
    on_root.does("restore", "--topic", "orders", "--version", "1")
    restored, deleted, _, appended, _ = lines(on_root)
    assert "\tHoles: 0=4..9\tLogStart: 0=0\tRestored: 1\t" in restored
    assert "\tOffsets: " not in restored
    assert "\tLogStart: 0=3\t" in deleted
    assert "\tOffsets: 0=0..3,2=0..1\t" in appended
    row = json.loads(lines(on_root, "--json", "--limit", "1")[0])
    assert row["holes"] == [{"partition": 0, "first": 4, "last": 9}]
    assert row["logStart"] == {"0": 0}
    assert "offsets" not in row
    *_, row, _ = map(json.loads, lines(on_root, "--json"))
    assert row["offsets"] == {"0": {"first": 0, "last": 3}, "2": {"first": 0, "last": 1}}
