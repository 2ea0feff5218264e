"""Roots that a release wrote: the current code reads, extends and maintains them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import klog
from tests.releases.account import (
    Record,
    ordered,
    records_of,
    root_account,
    short,
    topic_account,
)
from tests.releases.brokers import ABORT, KEEP
from tests.releases.command import done, run
from tests.releases.conftest import Archive
from tests.releases.release_topics import (
    WIDE,
    numbered,
    table,
    wait_for_checkpoint,
)

Copied = Callable[[str], Path]


def test_every_release_has_an_archive(archive: Archive) -> None:
    assert archive.expected["version"] == archive.version


def test_every_root_is_read_as_it_was(archive: Archive) -> None:
    for name, topics in archive.expected["roots"].items():
        root = archive.folder / name
        account = root_account(root)
        assert account.keys() == topics.keys(), name
        for topic, expected in topics.items():
            assert account[topic] == expected, f"{name}: {topic}"
            assert _consumed(root, topic) == expected["records"], f"{name}: {topic}"


def _consumed(root: Path, topic: str) -> Any:
    """Return the records of a topic as the command prints them."""
    result = done("consume", "--root", str(root), "--topic", topic, "--json")
    return short(ordered(result.json_lines()))


def test_verify_has_no_findings(archive: Archive) -> None:
    for name in archive.expected["roots"]:
        result = done("verify", "--root", str(archive.folder / name), "--json")
        (report,) = result.json_lines()
        assert report["findings"] == [], name
        assert report["topics"].keys() == archive.expected["roots"][name].keys()


def test_the_history_has_every_commit(archive: Archive) -> None:
    """It begins after the last missing commit, which must have expired."""
    for name, topics in archive.expected["roots"].items():
        root = archive.folder / name
        for topic in topics:
            folder = root / "_klog" / "topics" / topic
            last_expired = max((int(path.name) for path in folder.glob("gc/*")), default=-1)
            commits = {int(path.stem) for path in folder.glob("log/*.json")}
            lost = max({-1, *range(max(commits))} - commits)
            assert lost <= last_expired, f"{name}: {topic}"
            history = done("history", "--root", str(root), "--topic", topic, "--json").json_lines()
            versions = [commit["version"] for commit in reversed(history)]
            assert versions == list(range(lost + 1, max(commits) + 1)), f"{name}: {topic}"


def test_every_topic_is_appended_to_and_maintained(archive: Archive, copied: Copied) -> None:
    """Append to every topic of every root, run the jobs, and read all records after each."""
    for name in sorted(archive.expected["roots"].keys() - {"wide"}):
        root = copied(name)
        topics = {topic: _appended(root, topic) for topic in klog.open(root).topics()}
        for job in (
            ("compact", "--min-dirty-ratio", "0"),
            ("merge",),
            ("retain",),
            ("vacuum", "--execute", "--grace", "0s", "--log-retention", "0s"),
        ):
            done(*job, "--root", str(root))
            topics = {topic: _kept(root, topic, old, job[0]) for topic, old in topics.items()}
        done("verify", "--root", str(root))


def _appended(root: Path, topic: str) -> list[Record]:
    """Append to partition 0 of a topic; return all its records."""
    log = klog.open(root)
    old, end = records_of(root, topic), log.describe(topic).partitions[0].log_end
    rows = numbered(1000, 3)
    assert log.append(topic, table(rows)).offsets == {0: (end, end + 3)}
    new = records_of(root, topic)
    added = [record for record in new if record not in old]
    assert [record for record in new if record in old] == old, topic
    assert [(record["offset"], record["value"]) for record in added] == [
        (end + number, value.decode()) for number, (_, value) in enumerate(rows) if value
    ]
    return new


def _kept(root: Path, topic: str, old: list[Record], job: str) -> list[Record]:
    """Check the records of a topic after a job, and return them."""
    description = klog.open(root).describe(topic)
    config, new = description.config, records_of(root, topic)
    starts = [partition.log_start for partition in description.partitions]
    if job == "compact" and "compact" in config.get("cleanup.policy", ""):
        assert _values(new) == _values(old), topic
        keys = [(record["partition"], str(record["key"])) for record in new]
        assert len(keys) == len(set(keys)), topic
        assert all(record in old for record in new), topic
    elif job == "retain" and ("retention.bytes" in config or config.get("retention.ms") != "-1"):
        assert new == [
            record for record in old if record["offset"] >= starts[record["partition"]]
        ], topic
    else:
        assert new == old, f"{topic} after {job}"
    return new


def _values(records: list[Record]) -> dict[tuple[int, str], Any]:
    """Return the last value of each key that has one."""
    last = {
        (record["partition"], str(record["key"])): record["value"]
        for record in records
        if record["key"]
    }
    return {key: value for key, value in last.items() if value is not None}


def test_named_writers_go_on(archive: Archive, copied: Copied) -> None:
    root = copied("root")
    for writer, version in (("one", 2), ("two", 2), ("lines", 5)):
        _go_on(root, "named", writer, version)
    letters = copied("letters")
    for topic in ("orders", "payments", "letters"):
        _go_on(letters, topic, "etl", 7)


def _go_on(root: Path, topic: str, writer: str, version: int) -> None:
    """Write a batch again, which does nothing, and the next one, which is there once."""
    before = records_of(root, topic)
    for number, is_new in ((version, False), (version + 1, True), (version + 1, False)):
        rows = table([(b"again", b"%d" % number)])
        done = klog.open(root).append(
            topic, rows, transactional_id=writer, transaction_version=number
        )
        assert done.is_new == is_new, (topic, writer, number)
    after = records_of(root, topic)
    assert len(after) == len(before) + 1
    assert {record["value"] for record in after if record not in before} == {str(version + 1)}


def test_a_checkpoint_follows_the_old_one(archive: Archive, copied: Copied) -> None:
    root = copied("root")
    log = klog.open(root)
    (checkpoint,) = (root / "_klog" / "topics" / "many" / "checkpoints").glob("*.parquet")
    for number in range(100):
        log.append("many", table(numbered(200 + number, 1)))
    wait_for_checkpoint(root, "many", 2)
    checkpoint.unlink()
    values = [record["value"] for record in records_of(root, "many")]
    assert values == [f"v{number}" for number in [*range(125), *range(200, 300)]]
    done("verify", "--root", str(root), "--topic", "many")


def test_expired_commits_are_in_the_checkpoint(archive: Archive) -> None:
    folder = archive.folder / "root" / "_klog" / "topics" / "cleaned"
    (last_expired,) = (int(path.name) for path in (folder / "gc").iterdir())
    assert min(int(path.stem) for path in (folder / "log").iterdir()) == last_expired + 1


def test_topics_are_changed(archive: Archive, copied: Copied) -> None:
    root = copied("root")
    log = klog.open(root)
    old = log.describe("altered")
    new = log.alter_config("altered", {"segment.ms": "1000"}, unset=["compression.type"])
    config = {"retention.ms": "-1", "segment.ms": "1000"}
    assert (new.config, new.topic_id) == (config, old.topic_id)
    assert len(log.add_partitions("altered", 6).partitions) == 6
    for topic in ("deleted", "again"):
        topic_ids = {commit.actions.create_topic for commit in log.history(topic)}
        if topic == "again":
            log.delete_topic(topic)
        description = log.create_topic(topic, 2)
        assert [partition.log_end for partition in description.partitions] == [0, 0]
        assert description.topic_id not in {
            created.topic_id for created in topic_ids if created is not None
        }
        log.append(topic, table(numbered(0, 2), [0, 1]))
        assert [record["value"] for record in records_of(root, topic)] == ["v0", "v1"]


def test_a_commit_with_a_sidecar_is_extended(archive: Archive, copied: Copied) -> None:
    assert list((archive.folder / "wide").glob("_klog/topics/*/sidecars/*.parquet"))
    root = copied("wide")
    klog.open(root).append(WIDE, table([(None, b"more")], 7))
    values = [record["value"] for record in records_of(root, WIDE) if record["partition"] == 7]
    assert values == ["7", "again", "more"]
    done("verify", "--root", str(root), "--fast")


def test_an_unfinished_adoption_is_finished(archive: Archive, copied: Copied) -> None:
    root = copied("adopting")
    assert run("topics", "describe", "--root", str(root)).code == 0
    done("adopt", "--root", str(root), *KEEP, *ABORT)
    topics = archive.expected["adopting"]
    assert {topic: topic_account(root, topic) for topic in klog.open(root).topics()} == topics
    done("verify", "--root", str(root))
