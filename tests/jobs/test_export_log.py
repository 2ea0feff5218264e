"""Exports of klog roots: what klog reads of them, what is refused, what is left by a kill.

That brokers and Kafka's tools take them is asked in tests/kafka/test_exported.py.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from uuid import uuid1

import pytest

import klog
from klog.connector.log.committed import CommittedRoot
from klog.connector.log.partition import TopicPartition
from klog.connector.store.storage import NOTHING_GIVEN
from klog.errors import CorruptRecordError, KlogError, OptionError
from klog.jobs import export_log, verify
from klog.jobs.export_directory import UNFINISHED, export_directory
from klog.jobs.export_partition import stage_partition
from klog.logformat import batch as v2
from klog.logformat.checkpoint import decode_offset_checkpoint, encode_offset_checkpoint
from klog.logformat.metadata import decode_partition_metadata, encode_partition_metadata
from klog.logformat.names import deleted_directory
from klog.logformat.partition import load
from klog.logformat.rolling import RollLimits
from tests.connector.holder import holding
from tests.corpus.clients import CODECS
from tests.encode import marker, transactional
from tests.jobs.written_root import CONFIG, WrittenRoot, numbers, table
from tests.kafka.mounted import Where, files
from tests.kafka.written_topics import write_transactions
from tests.reading import LEVELS, read_partition, told_at
from tests.stores.fake_s3 import fake_s3

NOW_MS = 1_700_000_000_000
CHECKPOINTS = {
    name: f"{name}-offset-checkpoint" for name in ("log-start", "recovery-point", "replication")
}


def contended(root: WrittenRoot, topic: str = "t") -> None:
    """Write a partition with every codec, indexed and rolled segments and writers that lost."""
    root.create(topic, 2)
    root.append(topic, numbers(0, 200, NOW_MS), compression_type="uncompressed")
    seen = root.state(topic)
    for number, codec in enumerate(CODECS[1:]):
        rows = numbers(200 + 600 * number, 600, NOW_MS)
        root.append(topic, rows, compression_type=codec, name="nightly", number=number)
    lost = numbers(2600, 300, NOW_MS)
    root.append(topic, lost, seen=seen, compression_type="uncompressed")


@pytest.fixture
def root(tmp_path: Path) -> WrittenRoot:
    return WrittenRoot(str(tmp_path / "root"))


def run(root: WrittenRoot, to: Path, *topics: str) -> export_log.ExportLogReport:
    return export_log.run(None, root.given, topics, str(to), clock_ms=lambda: NOW_MS)


def checkpoint(to: Path, name: str) -> dict[Where, int]:
    return decode_offset_checkpoint((to / CHECKPOINTS[name]).read_bytes())


def same_records(root: WrittenRoot, to: Path, where: Where) -> int:
    """See that klog reads of the export what it reads of the root; gives the number of records."""
    wanted = read_partition([Path(root.given)], *where, "read_uncommitted")
    for level in LEVELS:
        assert read_partition([to], *where, level) == wanted
    return len(wanted)


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
            for one in (own, moved):
                v2.check_crcs(one, v2.scan(one, 0, len(one)))
            # But for 8 bytes a batch.
            starts = v2.scan(own, 0, len(own)).starts.tolist()
            differ = {number for number in range(len(own)) if own[number] != moved[number]}
            assert differ <= {start + byte for start in starts for byte in range(8)}
            continue
        assert exported[f"{base}.log"] == path.read_bytes()
        for suffix in ("index", "timeindex"):
            if entry["index_bytes"]:
                beside = path.with_suffix(f".{suffix}")
                assert exported[f"{base}.{suffix}"] == beside.read_bytes()
                indexed += 1
    assert shifted
    assert indexed


def test_recovery_would_make_the_same_files(root: WrittenRoot, tmp_path: Path) -> None:
    contended(root)
    run(root, tmp_path / "to")
    written = files(tmp_path / "to", ("t", 0), ".log", ".index", ".timeindex", ".snapshot")
    loaded = load(written, interval_bytes=int(CONFIG["index.interval.bytes"]))
    made = {
        f"{base:020}.{suffix}": content
        for base, segment in loaded.segments.items()
        for suffix, content in segment.items()
    }
    assert made == {name: content for name, content in written.items() if "snapshot" not in name}
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
        given = {("other", 3): 7, ("t", 0): 1, ("t", 1): 2}
        (to / name).write_bytes(encode_offset_checkpoint(given))
    run(root, to)
    assert checkpoint(to, "log-start") == {("other", 3): 7}
    for name in ("recovery-point", "replication"):
        assert checkpoint(to, name) == {("other", 3): 7, ("t", 0): 2900, ("t", 1): 0}


def test_topics_are_chosen_and_others_can_follow(root: WrittenRoot, tmp_path: Path) -> None:
    for topic in ("a", "b", "c-1"):
        root.create(topic, 1)
        root.append(topic, numbers(0, 5, NOW_MS))
    to = tmp_path / "to"
    assert [one.topic for one in run(root, to, "b", "b").partitions] == ["b"]
    with pytest.raises(OptionError, match=r"has b-0 already"):
        run(root, to)
    assert [one.topic for one in run(root, to, "a", "c-1").partitions] == ["a", "c-1"]
    assert checkpoint(to, "replication") == {("a", 0): 5, ("b", 0): 5, ("c-1", 0): 5}


def test_a_dry_run_writes_nothing(root: WrittenRoot, tmp_path: Path) -> None:
    contended(root)
    to = tmp_path / "to"
    told = export_log.run(None, root.given, (), str(to), dry_run=True)
    assert not to.exists()
    assert told.partitions == run(root, to).partitions
    with pytest.raises(OptionError, match="t-0, t-1 already"):
        export_log.run(None, root.given, (), str(to), dry_run=True)


@pytest.mark.parametrize("where", ["memory", "s3"])
def test_any_store_can_be_exported(tmp_path: Path, where: str) -> None:
    with fake_s3() as fake:
        storage = fake.storage() if where == "s3" else NOTHING_GIVEN
        given = "s3://bucket/root" if where == "s3" else f"memory://{uuid1().hex}"
        contended(WrittenRoot(given, storage))
        report = export_log.run(None, given, ["t"], str(tmp_path / "to"), storage=storage)
    assert report.total("records") == 2900
    assert len(read_partition([tmp_path / "to"], "t", 0, "read_committed")) == 2900


def test_an_adopted_log_keeps_its_transactions(
    root: WrittenRoot, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (log,) = write_transactions(NOW_MS)
    root.create(log.topic, 1)
    wanted = log.files()
    logs = load(wanted).logs
    root.adopt(log.topic, 0, logs)
    to = tmp_path / "to"
    run(root, to)
    where = (log.topic, 0)
    for level in LEVELS:
        assert read_partition([to], *where, level) == told_at(log.records, level)
    names = files(to, where, ".log", ".index", ".timeindex", ".txnindex")
    assert names == {name: wanted[name] for name in names}
    assert any("txnindex" in name for name in names)
    assert caplog.text == "", "its ids are as high as klog's own"


def test_ids_that_a_broker_gave_out_are_warned_of(
    root: WrittenRoot, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    root.create("t", 1)
    root.adopt("t", 0, {0: transactional(0, 1234) + marker(1, 1234, 1)})
    export_log.run(None, root.given, (), str(tmp_path / "to"), clock_ms=lambda: 0)
    assert "t-0: it knows 1 producers by ids that a broker gave out, such as 1234" in caplog.text


def test_a_transaction_without_an_end_is_refused(root: WrittenRoot, tmp_path: Path) -> None:
    root.create("t", 1)
    root.adopt("t", 0, {5: transactional(5, 1234)})
    with pytest.raises(KlogError, match="producer 1234 that began at offset 5 has no end"):
        run(root, tmp_path / "to")
    assert not [path for path in (tmp_path / "to").iterdir() if path.is_dir()]


def flipped(data: bytes) -> bytes:
    return data[:-3] + bytes([data[-3] ^ 1]) + data[-2:]


def beyond(data: bytes) -> bytes:
    """Give the last batch an offset that is not its segment's: outside its CRC."""
    start = int(v2.scan(data, 0, len(data)).starts[-1])
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
        (beyond, r"reaches behind the segment's last offset.*, from offset [5-9]\d\d on"),
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
    for given, topics, to, said in (
        (root.given, ["t"], "s3://bucket/x", "a directory on this machine"),
        (root.given, ["t"], "", "it is empty"),
        (root.given, ["t"], root.given, "is a klog root"),
        (root.given, ["t"], str(tmp_path / "file"), "is a file"),
        (root.given, ["u"], str(tmp_path / "to"), "there is no topic u"),
        (root.given, ["t", "../t"], str(tmp_path / "to"), "no topic name"),
        (str(tmp_path / "raw"), [], str(tmp_path / "to"), "is no klog root"),
    ):
        with pytest.raises(OptionError, match=said):
            export_log.run(None, given, topics, to)
    assert not (tmp_path / "to").exists()
    assert not (Path(root.given) / ".lock").exists()


def test_a_root_without_topics_and_a_deleted_topic(root: WrittenRoot, tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="no topics"):
        run(root, tmp_path / "to")
    contended(root)
    klog.open(root.given).delete_topic("t")
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
    commit = Path(root.given) / f"_klog/topics/t/log/{0:020d}.json"
    said = json.loads(commit.read_bytes())
    said["createTopic"]["topicId"] = damage
    commit.write_text(json.dumps(said))
    with pytest.raises(KlogError, match=r"t.*topic ?I?i?d"):
        export_log.run(None, root.given, None, str(tmp_path / "to"), dry_run=dry_run)
    assert not (tmp_path / "to").exists()
    export_log.run(None, root.given, "u", str(tmp_path / "to"))
    report = verify.run(None, root.given)
    assert [(one.topic, one.kind) for one in report.findings] == [("t", "log")]


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
    with pytest.raises(CorruptRecordError, match="replication-offset-checkpoint"):
        run(root, to)
    assert [path.name for path in to.iterdir()] == [CHECKPOINTS["replication"]]


@pytest.mark.slow
def test_killed_at_any_step_it_leaves_nothing_half_and_runs_again(
    root: WrittenRoot, tmp_path: Path
) -> None:
    root.create("t", 2)
    root.create("u", 1)
    for topic in ("t", "u"):
        root.append(topic, numbers(0, 20, NOW_MS))
    done = subprocess.run(
        [sys.executable, "-m", "tests.jobs.killed", root.given, str(tmp_path / "to"), "t", "u"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        cwd=Path(__file__).parents[2],
        capture_output=True,
        timeout=300,
        check=True,
    )
    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert [one["killed"] for one in told] == [True] * (len(told) - 1) + [False]
    assert len(told) > 30
    assert all(one["whole"] and (one["again"] or one["done"]) for one in told)
    assert sum(one["done"] for one in told) < 3, "done is what no longer counts as unfinished"
    assert {len(one["mountable"]) for one in told} == {0, 1, 2, 3}


def test_what_a_broker_has_written_to_is_not_taken_for_a_killed_export(
    root: WrittenRoot, tmp_path: Path
) -> None:
    contended(root)
    to = tmp_path / "to"
    run(root, to)
    size = sum(len(log) for log in files(to, ("t", 0), ".log").values())
    for sizes in ({("t", 0): size - 1, ("t", 1): 0}, {("t", 1): 0}):
        (to / UNFINISHED).write_bytes(encode_offset_checkpoint(sizes))
        with pytest.raises(OptionError, match="has t-0 already"):
            run(root, to)
    sizes = {("t", 0): size, ("t", 1): 0, ("other", 0): 7}
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


def test_a_segment_is_never_held_whole(root: WrittenRoot, tmp_path: Path) -> None:
    root.create("t", 1, {})
    value = os.urandom(1_000_000)
    rows = [one._replace(value=value) for one in numbers(1, 48, NOW_MS)]
    root.append("t", rows, compression_type="uncompressed")
    del rows
    (tmp_path / "to").mkdir()
    name = TopicPartition("t", 0)
    partition = CommittedRoot(root.root).look().open([name])[name]
    tracemalloc.start()
    try:
        target = export_directory(str(tmp_path / "to"))
        done = stage_partition(partition, target, RollLimits(), NOW_MS)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert done.said.size_bytes > 47_000_000
    assert peak_bytes < 20_000_000


def test_a_task_that_outlives_its_export_is_waited_for(root: WrittenRoot, tmp_path: Path) -> None:
    """It holds what it writes, and the next export does not write beside it."""
    root.create("t", 1, {})
    root.append("t", numbers(0, 3, NOW_MS))
    to = tmp_path / "to"
    staged = to / deleted_directory(
        "t", 0, hashlib.blake2b(b"klog export-log t-0", digest_size=16).hexdigest()
    )
    staged.mkdir(parents=True)
    held = os.open(staged, os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_EX)
    try:
        with pytest.raises(KlogError, match="a task of an export that was killed still writes"):
            run(root, to, "t")
    finally:
        os.close(held)
    assert [one.topic for one in run(root, to, "t").partitions] == ["t"]
