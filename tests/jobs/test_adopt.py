"""A broker's directory adopted reads as it did before, byte for byte where it lay."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from klog.cli import main
from klog.connector.commit_log import checkpoint_writer
from klog.jobs import adopt, verify
from klog.logformat.broker_files.checkpoint_files import encode_offset_checkpoint
from klog.logformat.producers.control_records import ABORT, COMMIT
from klog.logformat.topic_partition import TopicPartition
from tests.jobs.adopted_rows import COMMITTED, UNCOMMITTED, WHOLE, offsets
from tests.jobs.broker_dirs import (
    BY_SCENE,
    TOPIC_ID,
    copied,
    files_of,
    logs_of,
    names_of,
    offsets_for_times,
    open_ones,
    read_all,
    write_broker_dir,
)
from tests.jobs.verified_roots import live, root_of, state_of
from tests.support.batch_bytes import marker, transactional


@pytest.mark.parametrize("name", BY_SCENE)
def test_it_reads_as_before(name: str, tmp_path: Path) -> None:
    root = copied(name, tmp_path / "log")
    names = names_of(root)
    opened = {name.topic for name in open_ones(names, root)}
    names = [name for name in names if name.topic not in opened]
    before, files = read_all(names, root), files_of(root)
    raw = logs_of(names, root)
    bounds = {name: (log.log_start, log.log_end) for name, log in raw.items()}
    ids = {name: log.topic_id for name, log in raw.items()}
    times = {name: offsets_for_times(log, before[name, UNCOMMITTED]) for name, log in raw.items()}

    report = adopt.run(None, str(root), sorted({name.topic for name in names}))

    assert read_all(names, root) == before
    assert files_of(root) == files
    logs = logs_of(names, root)
    for partition, log in logs.items():
        assert (log.log_start, log.log_end) == bounds[partition]
        assert log.topic_id == ids[partition] or (log.topic_id and not ids[partition])
        assert log.last_stable_offset() == log.log_end
        assert offsets_for_times(log, before[partition, UNCOMMITTED]) == times[partition], partition
    record_counts = {
        TopicPartition(partition.topic, partition.partition): partition.records
        for partition in report.partitions
    }
    assert record_counts.keys() == set(names)
    for partition, records in record_counts.items():
        if not bounds[partition][
            0
        ]:  # Records below the log start count where their segment is kept.
            assert records == len(before[partition, COMMITTED]), partition
    assert verify.run(None, str(root)).findings == ()
    assert verify.run(None, str(root), fast=True).findings == ()


def test_what_a_broker_knew_is_kept(tmp_path: Path) -> None:
    logs = {at: transactional(at, 1) + marker(at + 1, 1, COMMIT) for at in (0, 10, 20)}
    root = write_broker_dir(tmp_path, {"t-0": logs, "t-1": {}, "u-0": {7: b""}}, {"t-0": 11})
    checkpoint = encode_offset_checkpoint({TopicPartition("t", 0): 20, TopicPartition("t", 1): 99})
    (root / "cleaner-offset-checkpoint").write_bytes(checkpoint)
    assert offsets(root, COMMITTED) == [20]
    adopt.run(None, str(root), config={"retention.ms": "-1"})
    state = state_of(root)
    assert (state.topic_id, state.log_start, state.log_end) == (TOPIC_ID, (11, 0), (22, 0))
    assert dict(state.cleaned_to) == {0: 20}
    assert dict(state.config) == {"cleanup.policy": "compact", "retention.ms": "-1"}
    assert [entry["base_offset"] for entry in live(root)] == [10, 20], "0 lies below the log start"
    assert offsets(root, COMMITTED) == [20]
    other = state_of(root, "u")
    assert (other.log_start, other.log_end, dict(other.config)) == (
        (7,),
        (7,),
        {"retention.ms": "-1"},
    )
    assert root_of(root).cluster_id == "of a broker"


def test_a_checkpoint_keeps_it(tmp_path: Path) -> None:
    logs = {0: transactional(0, 1) + marker(1, 1, ABORT) + b"\0" * 20}
    root = write_broker_dir(tmp_path, {"t-0": logs, "t-1": {9: b""}})
    adopt.run(None, str(root))
    log = root_of(root).log("t")
    before = log.load()
    name = checkpoint_writer.write_checkpoint(log, before)
    schema = pq.read_schema(log.paths.checkpoint(name))
    assert json.loads(schema.metadata[b"klog"])["format"] == 2
    loaded = log.newest_checkpoint()
    assert loaded.version == before.version == name.version
    assert loaded.segments.to_pylist() == before.segments.to_pylist()
    assert loaded.log_end == (2, 9)


def test_many_segments_are_in_a_sidecar(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("klog.connector.commit_log.commit_sidecar.MAX_JSON_BYTES", 100)
    root = write_broker_dir(tmp_path, {"t-0": {0: transactional(0, 1) + marker(1, 1, ABORT)}})
    adopt.run(None, str(root))
    (sidecar,) = (root / "_klog" / "topics" / "t" / "sidecars").iterdir()
    assert sidecar.stat().st_size > 100
    assert live(root)[0]["aborted"] == [1, 0, 1]
    (commit,) = (root / "_klog" / "topics" / "t" / "log").iterdir()
    assert json.loads(commit.read_bytes())["format"] == 2


def test_a_dry_run_writes_nothing(tmp_path: Path) -> None:
    root = write_broker_dir(tmp_path, {"t-0": {0: WHOLE + b"\xff" * 9}})
    report = adopt.run(None, str(root), dry_run=True)
    (partition,) = report.partitions
    assert (partition.segments, partition.size_bytes) == (1, len(WHOLE))
    assert (partition.torn_bytes, partition.log_end, partition.records) == (9, 2, None)
    assert not (root / "_klog").exists()
    assert [*report.lines()][-1].startswith("WouldAdopt: 1\t")
    assert "a broker does not start on an adopted directory" in report.note


def test_as_a_verb(tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    root = write_broker_dir(tmp_path, {"t-0": {0: WHOLE}})
    assert main(["adopt", "--root", str(root), "--config", "retention.ms=-1", "--json"]) == 0
    result = json.loads(capfdbinary.readouterr().out)
    assert result["partitions"][0] | {"seconds": 0} == {
        "topic": "t", "partition": 0, "logStart": 0, "logEnd": 2, "segments": 1,
        "sizeBytes": len(WHOLE), "tornBytes": 0, "records": 1, "aborted": 0, "left": "",
        "failure": None, "seconds": 0,
    }  # fmt: skip
    assert "until _klog/ is moved" in result["note"]
    assert dict(state_of(root).config) == {"retention.ms": "-1"}
    with pytest.raises(SystemExit, match="2"):
        main(["adopt", "--root", str(root), "--config", "retention.ms"])
