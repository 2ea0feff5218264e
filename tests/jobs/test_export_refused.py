"""Exports that are refused: damage, wrong directories, and a log that is a broker's."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import klog
from klog.errors import CorruptRecordError, KlogError, OptionError
from klog.jobs import export_log, verify
from klog.jobs.exporting.export_directory import UNFINISHED
from klog.logformat.batches.scan_batches import scan_batches
from klog.logformat.broker_files.checkpoint_files import (
    decode_offset_checkpoint,
    encode_offset_checkpoint,
)
from klog.logformat.broker_files.metadata_files import encode_partition_metadata
from klog.logformat.topic_partition import TopicPartition
from tests.connector.kafka_dir.lock_holder import holding
from tests.jobs.exported_rows import CHECKPOINTS, NOW_MS, contended, run, same_records
from tests.jobs.written_root import WrittenRoot, numbers
from tests.kafka.mounted_partitions import files
from tests.support.batch_bytes import transactional


@pytest.fixture
def root(tmp_path: Path) -> WrittenRoot:
    return WrittenRoot(str(tmp_path / "root"))


def test_a_transaction_without_an_end_is_refused(root: WrittenRoot, tmp_path: Path) -> None:
    root.create("t", 1)
    root.adopt("t", 0, {5: transactional(5, 1234)})
    with pytest.raises(KlogError, match="producer 1234 that began at offset 5 has no end"):
        run(root, tmp_path / "to")
    assert not [path for path in (tmp_path / "to").iterdir() if path.is_dir()]


def flipped(data: bytes) -> bytes:
    return data[:-3] + bytes([data[-3] ^ 1]) + data[-2:]


def beyond(data: bytes) -> bytes:
    """Move the offset of the last batch out of its segment; the CRC does not cover it."""
    start = int(scan_batches(data, 0, len(data)).starts[-1])
    offset = int.from_bytes(data[start : start + 8], "big") + 1000
    return data[:start] + offset.to_bytes(8, "big") + data[start + 8 :]


def retimed(data: bytes) -> bytes:
    """Change what no CRC of a batch covers, and nothing else can tell."""
    return data[:12] + (3).to_bytes(4, "big") + data[16:]


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (flipped, r"CRC-32C is 0x.*, from offset [5-9]\d\d on"),
        (lambda data: data[:-1], r"it has \d+ bytes, its commit says \d+, from offset 500 on"),
        (lambda data: data[:-20] + bytes(20), r"CRC-32C is 0x.*, from offset [5-9]\d\d on"),
        (lambda data: bytes(len(data)), r"batch length 0 is below .*, from offset 500 on"),
        (beyond, r"ends after the segment's last offset.*, from offset [5-9]\d\d on"),
        (retimed, r"it is not the file that was committed, from offset 500 on"),
        (None, r"the file is missing.*, from offset 500 on|the file is missing"),
    ],
)
def test_damage_ends_it_and_leaves_nothing(
    root: WrittenRoot, tmp_path: Path, damage: Callable[[bytes], bytes] | None, reason: str
) -> None:
    root.create("t", 2, {"index.interval.bytes": "300"})
    root.append("t", numbers(0, 10, NOW_MS), 1)
    seen = root.state("t")
    for first in (0, 500):
        root.append("t", numbers(first, 500, NOW_MS), seen=seen)
    hurt = Path(root.path(root.files("t")[1]))
    whole = hurt.read_bytes()
    if damage is None:
        hurt.unlink()
    else:
        hurt.write_bytes(damage(whole))
    to = tmp_path / "to"
    with pytest.raises(CorruptRecordError, match=reason) as caught:
        run(root, to)
    assert f"t-0: corrupt log {hurt} at position" in str(caught.value)
    assert [path.name for path in to.iterdir()] == [".lock"]
    hurt.write_bytes(whole)
    run(root, to)
    assert same_records(root, to, ("t", 0)) == 1000


def test_what_is_refused(root: WrittenRoot, tmp_path: Path) -> None:
    contended(root)
    (tmp_path / "file").write_text("")
    (tmp_path / "raw").mkdir()
    for path, topics, to, message in (
        (root.location, ["t"], "s3://bucket/x", "a directory on this machine"),
        (root.location, ["t"], "", "it is empty"),
        (root.location, ["t"], root.location, "is a klog root"),
        (root.location, ["t"], str(tmp_path / "file"), "is a file"),
        (root.location, ["u"], str(tmp_path / "to"), "there is no topic u"),
        (root.location, ["t", "../t"], str(tmp_path / "to"), "not a topic name"),
        (str(tmp_path / "raw"), [], str(tmp_path / "to"), "is not a klog root"),
    ):
        with pytest.raises(OptionError, match=message):
            export_log.run(None, path, topics, to)
    assert not (tmp_path / "to").exists()
    assert not (Path(root.location) / ".lock").exists()


def test_a_root_without_topics_and_a_deleted_topic(root: WrittenRoot, tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="no topics"):
        run(root, tmp_path / "to")
    contended(root)
    klog.open(root.location).delete_topic("t")
    with pytest.raises(OptionError, match="no topics"):
        run(root, tmp_path / "to")
    with pytest.raises(OptionError, match="was deleted"):
        run(root, tmp_path / "to", "t")


@pytest.mark.parametrize("damage", ["x", "A" * 22, "9" * 70_000, "../t", "ASNFZ4mrze_-3LqYdlQyE!"])
@pytest.mark.parametrize("dry_run", [False, True])
def test_a_damaged_topic_id_is_named(
    root: WrittenRoot, tmp_path: Path, damage: str, dry_run: bool
) -> None:
    contended(root)
    contended(root, "u")
    commit = Path(root.location) / f"_klog/topics/t/log/{0:020d}.json"
    commit_json = json.loads(commit.read_bytes())
    commit_json["createTopic"]["topicId"] = damage
    commit.write_text(json.dumps(commit_json))
    with pytest.raises(KlogError, match=r"t.*topic ?I?i?d"):
        export_log.run(None, root.location, None, str(tmp_path / "to"), dry_run=dry_run)
    assert not (tmp_path / "to").exists()
    export_log.run(None, root.location, "u", str(tmp_path / "to"))
    report = verify.run(None, root.location)
    assert [(finding.topic, finding.kind) for finding in report.findings] == [("t", "log")]


def test_a_directory_that_a_broker_holds(root: WrittenRoot, tmp_path: Path) -> None:
    contended(root)
    to = tmp_path / "to"
    to.mkdir()
    with holding(to), pytest.raises(KlogError, match="a broker runs on it"):
        run(root, to)
    run(root, to)


def test_a_damaged_checkpoint_is_told_and_nothing_appears(
    root: WrittenRoot, tmp_path: Path
) -> None:
    contended(root)
    to = tmp_path / "to"
    to.mkdir()
    (to / CHECKPOINTS["replication"]).write_text("0\n2\nt 0 1\n")
    with pytest.raises(OptionError, match="replication-offset-checkpoint: not a checkpoint"):
        run(root, to)
    assert [path.name for path in to.iterdir()] == [CHECKPOINTS["replication"]]


def test_what_a_broker_has_written_to_is_not_taken_for_a_killed_export(
    root: WrittenRoot, tmp_path: Path
) -> None:
    contended(root)
    to = tmp_path / "to"
    run(root, to)
    size = sum(len(log) for log in files(to, ("t", 0), ".log").values())
    first, second = TopicPartition("t", 0), TopicPartition("t", 1)
    for sizes in ({first: size - 1, second: 0}, {second: 0}):
        (to / UNFINISHED).write_bytes(encode_offset_checkpoint(sizes))
        with pytest.raises(OptionError, match="has t-0 already"):
            run(root, to)
    sizes = {first: size, second: 0, TopicPartition("other", 0): 7}
    metadata = to / "t-1" / "partition.metadata"
    (to / UNFINISHED).write_bytes(encode_offset_checkpoint(sizes))
    own = metadata.read_bytes()
    metadata.write_bytes(encode_partition_metadata("ASNFZ4mrze_-3LqYdlQyEA"))
    with pytest.raises(OptionError, match="has t-1 already"):
        run(root, to)
    metadata.write_bytes(own)
    (to / UNFINISHED).write_bytes(encode_offset_checkpoint(sizes))
    run(root, to)
    assert decode_offset_checkpoint((to / UNFINISHED).read_bytes()) == {("other", 0): 7}
