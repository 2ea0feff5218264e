"""A broker's directory imported reads as it does where it lies, on whatever store the root is."""

from __future__ import annotations

import json
import shutil
import zipfile
from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import Any
from uuid import uuid1

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import klog
from klog.cli import main
from klog.connector.commit_log.root_discovery import find_root
from klog.connector.options.storage_options import NO_STORAGE_OPTIONS
from klog.errors import CorruptRecordError, KlogError, OptionError
from klog.jobs import adopt, export_log, import_log, merge, verify
from klog.jobs.shared.broker_logs.adopt_report import AdoptReport
from klog.jobs.shared.job_tasks import try_tasks
from klog.logformat.broker_files.file_names import segment_file_name
from klog.logformat.producers.control_records import ABORT, COMMIT
from tests.connector.store.fake_s3 import fake_s3
from tests.corpus import scene
from tests.jobs.broker_dirs import (
    BY_SCENE,
    TOPIC_ID,
    Killed,
    copied,
    files_of,
    killed_at,
    logs_of,
    names_of,
    offsets_for_times,
    open_ones,
    read_all,
    scene_of,
    write_broker_dir,
)
from tests.jobs.verified_roots import live, root_of, state_of
from tests.support.batch_bytes import marker, transactional
from tests.support.sampled_cases import sampled

SAME = (
    "partition", "base_offset", "next_offset", "size_bytes", "crc32c", "record_count",
    "batch_count", "min_timestamp_ms", "max_timestamp_ms", "leader_epoch", "codec", "producer_ids",
    "origin", "aborted",
)  # fmt: skip
COMMITTED = transactional(0, 1) + marker(1, 1, COMMIT)


def bytes_of(root: Path, files: Sequence[dict[str, object]]) -> list[bytes]:
    return [
        (root / str(entry["file"])).read_bytes()[: int(str(entry["size_bytes"]))] for entry in files
    ]


def refusal(report: AdoptReport, topic: str, partition: int) -> str:
    """Return why a partition was refused; the next step is another root, or to fix the topic."""
    for adopted in report.partitions:
        if (adopted.topic, adopted.partition) == (topic, partition):
            assert adopted.failure is not None
            assert adopted.failure.next_step
            return adopted.failure.reason
    raise AssertionError(f"{topic}-{partition} is not in the report")


@pytest.mark.parametrize("name", BY_SCENE)
def test_it_is_as_adopted_and_goes_back(name: str, tmp_path: Path) -> None:
    (source,) = scene_of(name).log_dirs
    names = names_of(source)
    opened = {name.topic for name in open_ones(names, source)}
    names = [name for name in names if name.topic not in opened]
    topics = sorted({name.topic for name in names})
    before = read_all(names, source)
    times = {
        name: offsets_for_times(log, before[name, "read_uncommitted"])
        for name, log in logs_of(names, source).items()
    }

    root = tmp_path / "root"
    import_log.run(None, str(root), topics, source=str(source))

    assert read_all(names, root) == before
    logs = logs_of(names, root)
    for partition, log in logs.items():
        assert offsets_for_times(log, before[partition, "read_uncommitted"]) == times[partition], (
            partition
        )
    assert verify.run(None, str(root)).findings == ()
    adopted = copied(name, tmp_path / "adopted")
    adopt.run(None, str(adopted), topics)
    for topic in topics:
        mine, theirs = live(root, topic), live(adopted, topic)
        for copied_one, adopted_one in zip(mine, theirs, strict=True):
            assert {n: copied_one[n] for n in SAME} == {n: adopted_one[n] for n in SAME}
        assert bytes_of(root, mine) == bytes_of(adopted, theirs)
        actual, expected = state_of(root, topic), state_of(adopted, topic)
        for field in ("log_start", "log_end", "cleaned_to", "config"):
            assert getattr(actual, field) == getattr(expected, field)
        assert actual.topic_id == expected.topic_id or not logs_of(names, source)[names[0]].topic_id

    exported, back = tmp_path / "exported", tmp_path / "back"
    export_log.run(None, str(adopted), topics, str(exported))
    assert read_all(names, exported) == before
    import_log.run(None, str(back), source=str(exported))
    assert read_all(names, back) == before
    merge.run(None, str(root))
    assert read_all(names, root) == before
    assert verify.run(None, str(root)).findings == ()


def test_all_directories_of_a_broker_are_one(tmp_path: Path) -> None:
    sources = [str(directory) for directory in scene("jbod").log_dirs]
    with pytest.raises(KlogError, match="topic spread is not complete"):
        import_log.run(None, str(tmp_path / "root"), "spread", source=sources[:1])
    import_log.run(None, str(tmp_path / "root"), source=sources)
    names = names_of(*scene("jbod").log_dirs)
    assert read_all(names, tmp_path / "root") == read_all(names, *scene("jbod").log_dirs)


@pytest.mark.parametrize("where", ["memory", "s3"])
def test_from_any_store_to_any(tmp_path: Path, where: str) -> None:
    source = write_broker_dir(tmp_path / "log", {"t-0": {0: COMMITTED + b"\xff" * 9}, "t-1": {}})
    with zipfile.ZipFile(tmp_path / "log.zip", "w") as archive:
        for path in sorted(source.rglob("*")):
            archive.write(path, f"log/{path.relative_to(source)}")
    with fake_s3() as fake:
        storage = fake.storage() if where == "s3" else NO_STORAGE_OPTIONS
        location = "s3://bucket/root" if where == "s3" else f"memory://{uuid1().hex}"
        source_url = f"zip://log::{tmp_path / 'log.zip'}"
        report = import_log.run(None, location, source=source_url, storage=storage)
        assert [partition.records for partition in report.partitions] == [1, 0]
        root = find_root(location, storage)
        assert root is not None
        state = root.log("t").load()
        assert (state.topic_id, state.log_end) == (TOPIC_ID, (2, 0))
        again = import_log.run(None, location, source=source_url, storage=storage)
        assert {partition.left for partition in again.partitions} == {"it was imported before"}
        assert verify.run(None, location, storage=storage).findings == ()


@pytest.mark.spark
def test_on_spark(spark: SparkSession, tmp_path: Path) -> None:
    adopted = copied("transactions", tmp_path / "adopted")
    names = names_of(adopted)
    report = import_log.run(
        spark, str(tmp_path / "root"), source=str(adopted), open_transactions="abort"
    )
    assert len(report.partitions) == len(names)
    with pytest.raises(KlogError, match="has no end in this log"):
        adopt.run(spark, str(adopted))
    adopt.run(spark, str(adopted), open_transactions="abort")
    assert read_all(names, adopted) == read_all(names, tmp_path / "root")
    assert verify.run(None, str(adopted)).findings == ()
    damaged = copied("transactions", tmp_path / "damaged")
    (log, *_) = sorted((damaged / "txn.java-0").glob("*.log"))
    data = bytearray(log.read_bytes())
    data[60] ^= 1
    log.write_bytes(bytes(data))
    with pytest.raises(KlogError, match=f"txn.java-0: corrupt log {log}"):
        adopt.run(spark, str(damaged), "txn.java")


def test_it_is_not_copied_again(tmp_path: Path) -> None:
    source = write_broker_dir(tmp_path / "log", {"t-0": {0: COMMITTED}, "t-1": {}})
    root = tmp_path / "root"
    import_log.run(None, str(root), source=str(source))
    files, version = files_of(root), state_of(root).version
    report = import_log.run(None, str(root), source=str(source))
    assert [partition.left for partition in report.partitions] == ["it was imported before"] * 2
    assert (files_of(root), state_of(root).version) == (files, version)
    merge.run(None, str(root))
    assert [
        partition.left
        for partition in import_log.run(None, str(root), source=str(source)).partitions
    ] == ["it was imported before"] * 2
    more = transactional(2, 1) + marker(3, 1, COMMIT)
    (source / "t-0" / segment_file_name(0, "log")).write_bytes(COMMITTED + more)
    for dry_run in (True, False):
        report = import_log.run(None, str(root), source=str(source), dry_run=dry_run)
        assert "up to offset 2, and the broker's ends at 4 now" in refusal(report, "t", 0)
        assert report.partitions[1].left == "it was imported before"


def test_a_topic_may_have_more_partitions_than_what_was_imported(tmp_path: Path) -> None:
    source = write_broker_dir(tmp_path / "log", {"t-0": {0: COMMITTED}})
    root = tmp_path / "root"
    import_log.run(None, str(root), source=str(source))
    klog.open(str(root)).add_partitions("t", 3)
    (again,) = import_log.run(None, str(root), source=str(source)).partitions
    assert again.left == "it was imported before"
    wider = write_broker_dir(
        tmp_path / "wider", {f"t-{number}": {0: COMMITTED} for number in range(4)}
    )
    report = import_log.run(None, str(root), source=str(wider))
    assert f"and 3 partitions, and the broker's has id {TOPIC_ID} and 4" in refusal(report, "t", 0)


def test_another_topic_of_the_name_is_refused(tmp_path: Path) -> None:
    source = write_broker_dir(tmp_path / "log", {"t-0": {0: COMMITTED}})
    root = tmp_path / "root"
    klog.open(str(root)).create_topic("t", 1)
    report = import_log.run(None, str(root), source=str(source))
    assert f"the broker's has id {TOPIC_ID} and 1" in refusal(report, "t", 0)
    (source / "t-0" / "partition.metadata").unlink()
    import_log.run(None, str(tmp_path / "other"), source=str(source))
    assert import_log.run(None, str(tmp_path / "other"), source=str(source)).partitions[0].left
    (source / "t-0" / segment_file_name(0, "log")).write_bytes(COMMITTED + transactional(2, 1))
    report = import_log.run(
        None, str(tmp_path / "other"), source=str(source), open_transactions="abort"
    )
    assert "with other segments" in refusal(report, "t", 0)


def test_a_refused_topic_ends_only_itself(tmp_path: Path) -> None:
    source = write_broker_dir(
        tmp_path / "log", {f"{name}-0": {0: COMMITTED} for name in ("a", "b.c", "d", "e")}
    )
    root = tmp_path / "root"
    log = klog.open(str(root))
    log.create_topic("b_c", 1)
    log.create_topic("d", 1)
    (commit,) = (root / "_klog/topics/d/log").glob("*.json")
    commit.write_bytes(b"{")
    for dry_run in (True, False):
        report = import_log.run(None, str(root), source=str(source), dry_run=dry_run)
        assert report.exit_code == 1
        assert "collides with topic b_c" in refusal(report, "b.c", 0)
        assert commit.name in refusal(report, "d", 0)
        assert {p.topic for p in report.partitions if p.is_taken} == {"a", "e"}
    assert klog.open(str(root)).offsets("a") == klog.open(str(root)).offsets("e") == {0: 2}


def test_a_topic_of_a_similar_name_that_cannot_be_loaded_is_named(tmp_path: Path) -> None:
    source = write_broker_dir(tmp_path / "log", {"b.c-0": {0: COMMITTED}})
    root = tmp_path / "root"
    klog.open(str(root)).create_topic("b_c", 1)
    (commit,) = (root / "_klog/topics/b_c/log").glob("*.json")
    commit.write_bytes(b"{")
    (refused,) = import_log.run(None, str(root), source=str(source)).partitions
    assert refused.failure is not None
    assert commit.name in refused.failure.reason or commit.name in str(refused.failure.file)
    assert "`klog verify --topic b_c`" in refused.failure.next_step


def test_who_wrote_meanwhile_is_a_conflict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = write_broker_dir(tmp_path / "log", {"t-0": {0: COMMITTED}})
    root = tmp_path / "root"

    def late(*args: Any) -> Iterator[Any]:
        monkeypatch.setattr("klog.jobs.importing.import_topics.try_tasks", try_tasks)
        import_log.run(None, str(root), source=str(source))
        return try_tasks(*args)

    monkeypatch.setattr("klog.jobs.importing.import_topics.try_tasks", late)
    report = import_log.run(None, str(root), source=str(source))
    failure = report.partitions[0].failure
    assert failure is not None
    assert "topic t: partition 0 was written to meanwhile, or imported" in failure.reason
    assert report.exit_code == 1
    assert len(live(root)) == 1


def test_a_partition_that_was_written_to_first_is_no_import(tmp_path: Path) -> None:
    """One that was left for its damage has no record; what is written there has its offsets."""
    source = write_broker_dir(tmp_path / "log", {"t-0": {0: COMMITTED}, "t-1": {0: COMMITTED}})
    file, root = source / "t-1" / segment_file_name(0, "log"), tmp_path / "root"
    whole = file.read_bytes()
    file.write_bytes(bytes([*whole[:66], whole[66] ^ 1, *whole[67:]]))
    assert import_log.run(None, str(root), source=str(source)).exit_code == 1
    file.write_bytes(whole)
    klog.open(str(root)).append("t", pa.table({"value": [b"x"] * 9, "partition": [1] * 9}))
    report = import_log.run(None, str(root), source=str(source))
    assert "t-1 has records that klog wrote before the import" in refusal(report, "t", 1)


def test_a_damaged_segment_ends_only_its_own_partition(tmp_path: Path) -> None:
    """The others are imported; the damaged one is, when its file is whole again."""
    logs = {0: COMMITTED, 2: transactional(2, 1) + marker(3, 1, COMMIT)}
    source = write_broker_dir(tmp_path / "log", {f"t-{number}": logs for number in range(3)})
    file, root = source / "t-1" / segment_file_name(0, "log"), tmp_path / "root"
    whole = file.read_bytes()
    file.write_bytes(bytes([*whole[:66], whole[66] ^ 1, *whole[67:]]))
    report = import_log.run(None, str(root), source=str(source))
    assert report.exit_code == 1
    assert [partition.failure is None for partition in report.partitions] == [True, False, True]
    failure = report.partitions[1].failure
    assert failure is not None
    assert (failure.file, failure.position) == (str(file), 0)
    assert "klog dump --files" in failure.next_step
    assert f"\tFile: {file}\tPosition: 0\tNext: " in list(report.lines())[1]
    assert state_of(root).log_end == (4, 0, 4)
    file.write_bytes(whole)
    report = import_log.run(None, str(root), source=str(source))
    assert (report.exit_code, [partition.left == "" for partition in report.partitions]) == (
        0,
        [False, True, False],
    )
    assert len(set(state_of(root).log_end)) == 1


def test_what_is_wrong_is_said(tmp_path: Path) -> None:
    source = write_broker_dir(tmp_path / "log", {"t-0": {0: COMMITTED}})
    root = tmp_path / "root"
    report = import_log.run(None, str(root), source=str(source), dry_run=True)
    assert [*report.lines()][-1].startswith("WouldImport: 1\t")
    assert not root.exists()
    import_log.run(None, str(root), source=str(source))
    with pytest.raises(OptionError, match="is a klog root; `klog export-log`"):
        import_log.run(None, str(tmp_path / "other"), source=str(root))
    data = bytearray(COMMITTED)
    data[40] ^= 1
    (source / "t-0" / segment_file_name(0, "log")).write_bytes(bytes(data) + COMMITTED)
    with pytest.raises(CorruptRecordError, match=segment_file_name(0, "log")):
        import_log.run(None, str(tmp_path / "other"), source=str(source))


@pytest.mark.slow
# After a call is nearly the same as before the next one.
@pytest.mark.parametrize(
    "after", sampled([False, True], 2, pytest.mark.full), ids=["before", "after"]
)
def test_killed_at_each_call_it_goes_on(tmp_path: Path, after: bool) -> None:
    aborted = transactional(0, 1) + marker(1, 1, ABORT)
    logs = {0: aborted, 10: transactional(10, 2) + marker(11, 2, COMMIT)}
    source = write_broker_dir(
        tmp_path / "log", {"t-0": logs, "t-1": {0: COMMITTED}, "u-0": {0: COMMITTED}}
    )
    names = names_of(source)
    before, files = read_all(names, source), files_of(source)
    for at in count():
        root = tmp_path / str(at)
        with killed_at(at, after=after) as calls:
            try:
                import_log.run(None, str(root), source=str(source))
                is_killed = False
            except Killed:
                is_killed = True
        has_root = find_root(str(root)) is not None
        had = [state_of(root, topic).version for topic in ("t", "u")] if has_root else [-1, -1]
        whole = {entry["file"] for entry in live(root)} if had[0] >= 0 else set()
        import_log.run(None, str(root), source=str(source))
        assert read_all(names, root) == before, calls[-1]
        assert whole <= {entry["file"] for entry in live(root)}, "what was committed stays"
        assert [state_of(root, topic).version for topic in ("t", "u")] == [1, 0]
        assert files_of(source) == files
        shutil.rmtree(root)
        if not is_killed:
            assert at > 30
            break


def test_as_a_verb(tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    source = write_broker_dir(tmp_path / "log", {"t-0": {0: COMMITTED}})
    root = tmp_path / "root"
    assert main(["import-log", "--root", str(root), "--from", str(source), "--json"]) == 0
    result = json.loads(capfdbinary.readouterr().out)
    assert [partition["records"] for partition in result["partitions"]] == [1]
    assert root_of(root).cluster_id
    assert state_of(root).topic_id == TOPIC_ID
