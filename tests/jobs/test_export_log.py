"""Exports of klog roots: what klog reads of them, what is refused, what is left by a kill.

That brokers and Kafka's tools take them is asked in tests/kafka/test_exported.py.
"""

from __future__ import annotations

from pathlib import Path
from uuid import uuid1

import pytest

import klog
from klog.connector.options.storage_options import NO_STORAGE_OPTIONS
from klog.errors import OptionError
from klog.jobs import export_log
from klog.jobs.exporting.export_directory import UNFINISHED
from klog.logformat.batches.batch_checksum import check_batch_crcs
from klog.logformat.batches.scan_batches import scan_batches
from klog.logformat.broker_files.checkpoint_files import (
    decode_offset_checkpoint,
    encode_offset_checkpoint,
)
from klog.logformat.broker_files.metadata_files import decode_partition_metadata
from klog.logformat.topic_partition import TopicPartition
from tests.connector.store.fake_s3 import fake_s3
from tests.jobs.exported_rows import CHECKPOINTS, NOW_MS, contended, run, same_records
from tests.jobs.written_root import CONFIG, WrittenRoot, numbers, table
from tests.kafka.mounted_partitions import files
from tests.kafka.written_topics import write_transactions
from tests.support.batch_bytes import marker, transactional
from tests.support.broker_loader.load_partition import load
from tests.support.reader_rows import LEVELS, read_partition, told_at


@pytest.fixture
def root(tmp_path: Path) -> WrittenRoot:
    return WrittenRoot(str(tmp_path / "root"))


def checkpoint(to: Path, name: str) -> dict[TopicPartition, int]:
    return decode_offset_checkpoint((to / CHECKPOINTS[name]).read_bytes())


def test_the_log_is_the_same_whoever_lost_a_race(root: WrittenRoot, tmp_path: Path) -> None:
    contended(root)
    to = tmp_path / "to"
    report = run(root, to)
    assert same_records(root, to, ("t", 0)) == 2900
    assert same_records(root, to, ("t", 1)) == 0
    first, second = report.partitions
    assert (first.topic, first.partition, first.log_start, first.log_end) == ("t", 0, 0, 2900)
    assert (first.records, first.shifted > 0) == (2900, True)
    exported = files(to, ("t", 0), ".log")
    assert first.segments == len(exported) > 5
    assert first.size_bytes == sum(map(len, exported.values()))
    assert (second.segments, second.records, second.size_bytes) == (0, 0, 0)
    metadata = (to / "t-0" / "partition.metadata").read_bytes()
    assert decode_partition_metadata(metadata) == root.state("t").topic_id
    assert not (to / UNFINISHED).exists()


def test_uncontended_files_are_the_same_to_the_byte(root: WrittenRoot, tmp_path: Path) -> None:
    contended(root)
    run(root, tmp_path / "to")
    exported = files(tmp_path / "to", ("t", 0), ".log", ".index", ".timeindex")
    indexed, shifted = 0, 0
    for entry in root.state("t").segments.to_pylist():
        path = Path(root.path(entry["file"]))
        base = f"{entry['base_offset']:020}"
        if entry["offset_shift"]:
            shifted += 1
            own, moved = path.read_bytes(), exported[f"{base}.log"]
            assert own != moved
            for data in (own, moved):
                check_batch_crcs(data, scan_batches(data, 0, len(data)))
            # But for 8 bytes a batch.
            starts = scan_batches(own, 0, len(own)).starts.tolist()
            differ = {number for number in range(len(own)) if own[number] != moved[number]}
            assert differ <= {start + byte for start in starts for byte in range(8)}
            continue
        assert exported[f"{base}.log"] == path.read_bytes()
        for suffix in ("index", "timeindex"):
            if entry["index_bytes"]:
                index = path.with_suffix(f".{suffix}")
                assert exported[f"{base}.{suffix}"] == index.read_bytes()
                indexed += 1
    assert shifted
    assert indexed


def test_recovery_would_make_the_same_files(root: WrittenRoot, tmp_path: Path) -> None:
    contended(root)
    run(root, tmp_path / "to")
    written = files(tmp_path / "to", ("t", 0), ".log", ".index", ".timeindex", ".snapshot")
    loaded = load(written, interval_bytes=int(CONFIG["index.interval.bytes"]))
    expected = {
        f"{base:020}.{suffix}": content
        for base, segment in loaded.segments.items()
        for suffix, content in segment.items()
    }
    assert expected == {
        name: content for name, content in written.items() if "snapshot" not in name
    }
    (snapshot,) = (name for name in written if "snapshot" in name)
    assert loaded.snapshots[int(snapshot[:20])] == written[snapshot]


def test_klog_open_writes_what_is_exported(tmp_path: Path) -> None:
    log = klog.open(tmp_path / "root")
    log.create_topic("t", 1)
    log.append("t", table(numbers(0, 10, NOW_MS), 0))
    log.append("t", table(numbers(10, 10, NOW_MS), 0), transactional_id="x", transaction_version=1)
    report = export_log.run(None, str(tmp_path / "root"), ["t"], str(tmp_path / "to"))
    assert report.total("records") == 20
    read = klog.open(tmp_path / "to").scan("t").read_all()
    assert read.equals(log.scan("t").read_all())


@pytest.mark.parametrize(("start", "kept"), [(3, 0), (777, 1), (1000, None)])
def test_the_log_start(root: WrittenRoot, tmp_path: Path, start: int, kept: int | None) -> None:
    root.create("t", 1)
    for first in (0, 500):
        root.append("t", numbers(first, 500, NOW_MS))
    root.delete_records("t", {0: start})
    run(root, tmp_path / "to")
    assert same_records(root, tmp_path / "to", ("t", 0)) == 1000 - start
    inside = {} if kept is None else {("t", 0): start}
    assert checkpoint(tmp_path / "to", "log-start") == inside
    for name in ("recovery-point", "replication"):
        assert checkpoint(tmp_path / "to", name) == {("t", 0): 1000}
    first_log = min(files(tmp_path / "to", ("t", 0), ".log"))
    assert first_log == f"{1000 if kept is None else 500 * kept:020}.log"


def test_other_partitions_in_the_checkpoints_are_kept(root: WrittenRoot, tmp_path: Path) -> None:
    contended(root)
    to = tmp_path / "to"
    to.mkdir()
    for name in CHECKPOINTS.values():
        names = [TopicPartition("other", 3), TopicPartition("t", 0), TopicPartition("t", 1)]
        offsets = dict(zip(names, (7, 1, 2), strict=True))
        (to / name).write_bytes(encode_offset_checkpoint(offsets))
    run(root, to)
    assert checkpoint(to, "log-start") == {("other", 3): 7}
    for name in ("recovery-point", "replication"):
        assert checkpoint(to, name) == {("other", 3): 7, ("t", 0): 2900, ("t", 1): 0}


def test_topics_are_chosen_and_others_can_follow(root: WrittenRoot, tmp_path: Path) -> None:
    for topic in ("a", "b", "c-1"):
        root.create(topic, 1)
        root.append(topic, numbers(0, 5, NOW_MS))
    to = tmp_path / "to"
    assert [partition.topic for partition in run(root, to, "b", "b").partitions] == ["b"]
    with pytest.raises(OptionError, match=r"has b-0 already"):
        run(root, to)
    assert [partition.topic for partition in run(root, to, "a", "c-1").partitions] == ["a", "c-1"]
    assert checkpoint(to, "replication") == {("a", 0): 5, ("b", 0): 5, ("c-1", 0): 5}


def test_a_dry_run_writes_nothing(root: WrittenRoot, tmp_path: Path) -> None:
    contended(root)
    to = tmp_path / "to"
    report = export_log.run(None, root.location, (), str(to), dry_run=True)
    assert not to.exists()
    assert report.partitions == run(root, to).partitions
    with pytest.raises(OptionError, match="t-0, t-1 already"):
        export_log.run(None, root.location, (), str(to), dry_run=True)


@pytest.mark.parametrize("where", ["memory", "s3"])
def test_any_store_can_be_exported(tmp_path: Path, where: str) -> None:
    with fake_s3() as fake:
        storage = fake.storage() if where == "s3" else NO_STORAGE_OPTIONS
        path = "s3://bucket/root" if where == "s3" else f"memory://{uuid1().hex}"
        contended(WrittenRoot(path, storage))
        report = export_log.run(None, path, ["t"], str(tmp_path / "to"), storage=storage)
    assert report.total("records") == 2900
    assert len(read_partition([tmp_path / "to"], "t", 0, "read_committed")) == 2900


def test_an_adopted_log_keeps_its_transactions(
    root: WrittenRoot, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (log,) = write_transactions(NOW_MS)
    root.create(log.topic, 1)
    expected = log.files()
    logs = load(expected).logs
    root.adopt(log.topic, 0, logs)
    to = tmp_path / "to"
    run(root, to)
    where = (log.topic, 0)
    for level in LEVELS:
        assert read_partition([to], *where, level) == told_at(log.records, level)
    names = files(to, where, ".log", ".index", ".timeindex", ".txnindex")
    assert names == {name: expected[name] for name in names}
    assert any("txnindex" in name for name in names)
    assert caplog.text == "", "its ids are as high as klog's own"


def test_ids_that_a_broker_gave_out_are_warned_of(
    root: WrittenRoot, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    root.create("t", 1)
    root.adopt("t", 0, {0: transactional(0, 1234) + marker(1, 1234, 1)})
    export_log.run(None, root.location, (), str(tmp_path / "to"), clock_ms=lambda: 0)
    assert "t-0: 1 of its producers have ids that a broker gave out, such as 1234" in caplog.text
