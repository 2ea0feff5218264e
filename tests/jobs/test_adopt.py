"""A broker's directory adopted reads as it did before, byte for byte where it lay."""

from __future__ import annotations

import json
import shutil
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import klog
from klog.cli import main
from klog.connector.log import cleaning
from klog.connector.log.adoption import ADOPTING_FILE
from klog.connector.log.entries import joined_aborted
from klog.connector.log.partition import TopicPartition
from klog.connector.log.roots import open_root
from klog.connector.log.topics import Topics
from klog.connector.options import read_options
from klog.connector.source.subscription import subscribed
from klog.errors import CorruptRecordError, KlogError, OptionError
from klog.jobs import adopt, compact, export_log, import_log, merge, verify
from klog.jobs.adopting.report import AdoptReport
from klog.logformat.checkpoint import encode_offset_checkpoint
from klog.logformat.control import ABORT, COMMIT
from klog.logformat.metadata import encode_partition_metadata
from klog.logformat.names import segment_name
from klog.logformat.transaction_index import NONE_ABORTED, AbortedTransaction, encode_aborted
from tests.connector.holder import holding
from tests.corpus import Record, scene
from tests.encode import marker, transactional
from tests.jobs.brokers import (
    BY_SCENE,
    SCENE_NAMES,
    TOPIC_ID,
    Killed,
    copied,
    files_of,
    killed_at,
    logs_of,
    made,
    names_of,
    offsets_for_times,
    open_ones,
    read_all,
)
from tests.jobs.roots import live, root_of, state_of
from tests.reading import read_partition

UNCOMMITTED, COMMITTED = "read_uncommitted", "read_committed"


def offsets(root: Path, level: str, topic: str = "t", partition: int = 0) -> list[int]:
    return [one.offset for one in read_partition([root], topic, partition, level)]


@pytest.mark.parametrize("name", BY_SCENE)
def test_it_reads_as_before(name: str, tmp_path: Path) -> None:
    root = copied(name, tmp_path / "log")
    names = names_of(root)
    opened = {one.topic for one in open_ones(names, root)}
    names = [one for one in names if one.topic not in opened]
    before, files = read_all(names, root), files_of(root)
    raw = logs_of(names, root)
    bounds = {one: (log.log_start, log.log_end) for one, log in raw.items()}
    ids = {one: log.topic_id for one, log in raw.items()}
    times = {one: offsets_for_times(log, before[one, UNCOMMITTED]) for one, log in raw.items()}

    report = adopt.run(None, str(root), sorted({one.topic for one in names}))

    assert read_all(names, root) == before
    assert files_of(root) == files
    logs = logs_of(names, root)
    for one, log in logs.items():
        assert (log.log_start, log.log_end) == bounds[one]
        assert log.topic_id == ids[one] or (log.topic_id and not ids[one])
        assert log.last_stable_offset() == log.log_end
        assert offsets_for_times(log, before[one, UNCOMMITTED]) == times[one], one
    told = {TopicPartition(one.topic, one.partition): one.records for one in report.partitions}
    assert told.keys() == set(names)
    for one, records in told.items():
        if not bounds[one][0]:  # Records below the log start count where their segment is kept.
            assert records == len(before[one, COMMITTED]), one
    assert verify.run(None, str(root)).findings == ()
    assert verify.run(None, str(root), fast=True).findings == ()


@pytest.mark.parametrize("name", [name for name in SCENE_NAMES if name != "records"])
def test_an_open_transaction_is_told_and_can_be_ended(name: str, tmp_path: Path) -> None:
    root = copied(name, tmp_path / "log")
    stables = open_ones(names_of(root), root)
    before = read_all(stables, root)
    first = min(stables)
    with pytest.raises(KlogError, match=rf"that began at offset {stables[first]} has no end"):
        adopt.run(None, str(root), first.topic)
    assert not (root / "_klog").exists()

    adopt.run(None, str(root), sorted({one.topic for one in stables}), open_transactions="abort")
    after = read_all(stables, root)
    shutil.rmtree(root / "_klog")
    adopt.run(None, str(root), sorted({one.topic for one in stables}), open_transactions="commit")
    kept = read_all(stables, root)
    for one, stable in stables.items():
        assert after[one, UNCOMMITTED] == kept[one, UNCOMMITTED] == before[one, UNCOMMITTED]
        for seen in (after, kept):
            assert [r for r in seen[one, COMMITTED] if r.offset < stable] == before[one, COMMITTED]
        more = {r.offset for r in kept[one, COMMITTED]} - {r.offset for r in after[one, COMMITTED]}
        assert min(more) == stable
    assert verify.run(None, str(root)).findings == ()


def test_transactions_over_segments(tmp_path: Path) -> None:
    logs = {
        0: transactional(0, 1) + transactional(1, 2) + transactional(2, 3),
        10: transactional(10, 1) + marker(11, 2, COMMIT) + transactional(12, 2),
        20: marker(20, 1, ABORT) + transactional(21, 1) + marker(22, 2, ABORT),
        30: marker(30, 1, COMMIT) + marker(31, 3, ABORT),
    }
    root = made(tmp_path, {"t-0": logs})
    before = read_all([TopicPartition("t", 0)], root)
    report = adopt.run(None, str(root))
    assert [one["aborted"] for one in live(root)] == [
        [1, 0, 20, 3, 2, 31], [1, 10, 20, 2, 12, 22], [], []
    ]  # fmt: skip
    assert [one["record_count"] for one in live(root)] == [1, 0, 1, 0]
    assert [(one["base_offset"], one["next_offset"]) for one in live(root)] == [
        (0, 10), (10, 20), (20, 30), (30, 32)
    ]  # fmt: skip
    assert (report.partitions[0].records, report.partitions[0].aborted) == (2, 3)
    assert read_all([TopicPartition("t", 0)], root) == before
    assert offsets(root, COMMITTED) == [1, 21]
    assert joined_aborted(live(root)) == [1, 0, 20, 2, 12, 22, 3, 2, 31]
    merge.run(None, str(root), "t")
    assert len(live(root)) < 4
    assert joined_aborted(live(root)) == [1, 0, 20, 2, 12, 22, 3, 2, 31]
    assert sum(one["record_count"] for one in live(root)) == 2
    assert read_all([TopicPartition("t", 0)], root) == before
    table = klog.open(str(root)).scan("t").read_all()
    assert table["offset"].to_pylist() == [1, 21]


def test_what_an_index_alone_calls_aborted_is_hidden(tmp_path: Path) -> None:
    """As a raw read hides it: of a transaction whose marker's segment was lost."""
    root = made(tmp_path, {"t-0": {0: transactional(0, 1) + marker(1, 1, COMMIT)}})
    said = NONE_ABORTED.with_entries([AbortedTransaction(1, 0, 1, 2)])
    (root / "t-0" / segment_name(0, "txnindex")).write_bytes(encode_aborted(said))
    assert offsets(root, COMMITTED) == []
    adopt.run(None, str(root))
    assert offsets(root, COMMITTED) == []
    assert offsets(root, UNCOMMITTED) == [0]
    assert live(root)[0]["aborted"] == [1, 0, 1]


def test_compaction_drops_what_was_aborted(tmp_path: Path) -> None:
    """Also where the marker lies behind what is cleaned."""
    logs = {
        0: transactional(0, 1, [b"old"]) + marker(1, 1, COMMIT) + transactional(2, 2, [b"new"]),
        10: marker(10, 2, ABORT),
    }
    root = made(tmp_path, {"t-0": logs})
    adopt.run(None, str(root), config={"cleanup.policy": "compact"})
    assert offsets(root, COMMITTED) == [0]
    compact.run(None, str(root), "t", min_dirty_ratio=0)
    assert offsets(root, UNCOMMITTED) == [0]
    assert all(not one["aborted"] for one in live(root) if one["origin"] == "compact")
    assert verify.run(None, str(root)).findings == ()


@pytest.mark.parametrize(
    ("name", "topics"),
    [("2.8.2", ["v0.compacted", "v1.compacted"]), ("compacted-after", ["compacted.txn"])],
)
def test_what_a_broker_wrote_is_compacted(name: str, topics: list[str], tmp_path: Path) -> None:
    root = copied(name, tmp_path / "log")
    names = [one for one in names_of(root) if one.topic in topics]
    before = {where: last_values(records) for where, records in read_all(names, root).items()}
    adopt.run(None, str(root), topics)
    report = compact.run(None, str(root), min_dirty_ratio=0)
    assert sum(one.records_after for one in report.partitions) < sum(
        one.records for one in report.partitions if not one.left
    )
    for where, records in read_all(names, root).items():
        if where[1] == COMMITTED:
            assert last_values(records) == before[where]
    assert verify.run(None, str(root)).findings == ()


def last_values(records: list[Record]) -> dict[bytes, tuple[int, object]]:
    """Give the last offset and value of each key that has one."""
    last = {one.key: one for one in records if one.key is not None}
    return {key: (one.offset, one.value) for key, one in last.items() if one.value is not None}


def test_a_torn_tail_stays_and_does_not_count(tmp_path: Path) -> None:
    whole = transactional(0, 1) + marker(1, 1, COMMIT)
    root = made(tmp_path, {"t-0": {0: whole + b"\xff" * 40}})
    adopt.run(None, str(root))
    (entry,) = live(root)
    assert (entry["size_bytes"], entry["torn_bytes"]) == (len(whole), 40)
    assert offsets(root, COMMITTED) == [0]
    (log,) = logs_of([TopicPartition("t", 0)], root).values()
    assert log.offset_for_time(0, 2) == 0
    assert verify.run(None, str(root)).findings == ()
    merge.run(None, str(root), "t")
    file = root / "t-0" / segment_name(0, "log")
    file.write_bytes(file.read_bytes() + b"more")
    (finding,) = verify.run(None, str(root)).findings
    assert (finding.kind, finding.file) == ("size", f"t-0/{segment_name(0, 'log')}")


@pytest.mark.parametrize("behind", [b"", bytes(4096), b"\x5a" * 300])
@pytest.mark.parametrize("way", ["adopt", "import"])
def test_a_torn_tail_before_an_empty_segment(tmp_path: Path, way: str, behind: bytes) -> None:
    """A broker that was killed just after it rolled: all ways end where its recovery would."""
    whole = transactional(0, 1) + marker(1, 1, COMMIT)
    torn = transactional(2, 1, [b"x"] * 3)[:-5]
    made(tmp_path / "log", {"t-0": {0: whole + torn, 5: behind, 9: b""}, "t-1": {0: whole}})
    (raw, _) = logs_of([TopicPartition("t", 0), TopicPartition("t", 1)], tmp_path / "log").values()
    assert raw.log_end == 2
    if way == "adopt":
        root = tmp_path / "log"
        report = adopt.run(None, str(root))
    else:
        root = tmp_path / "root"
        report = import_log.run(None, str(root), source=str(tmp_path / "log"))
    assert [one.log_end for one in report.partitions] == [2, 2]
    assert [one.torn_bytes for one in report.partitions] == [len(torn), 0]
    assert state_of(root).log_end == (2, 2)
    for level in (UNCOMMITTED, COMMITTED):
        assert offsets(root, level) == [0]
    assert verify.run(None, str(root)).findings == ()
    klog.open(str(root)).append("t", pa.table({"value": [b"next"], "partition": [0]}))
    assert offsets(root, COMMITTED) == [0, 2]
    export_log.run(None, str(root), "t", str(tmp_path / "out"))
    assert offsets(tmp_path / "out", COMMITTED) == [0, 2]
    assert verify.run(None, str(root)).findings == ()


@pytest.mark.parametrize("level", [UNCOMMITTED, COMMITTED])
@pytest.mark.parametrize("change", ["longer", "shorter", "flipped", "gone"])
def test_a_file_that_changes_later_is_named(tmp_path: Path, change: str, level: str) -> None:
    root = made(tmp_path, {"t-0": {0: transactional(0, 1) + marker(1, 1, COMMIT)}})
    adopt.run(None, str(root))
    file = root / "t-0" / segment_name(0, "log")
    data = file.read_bytes()
    if change == "gone":
        file.unlink()
    else:
        flipped = data[:30] + bytes([data[30] ^ 1]) + data[31:]
        file.write_bytes({"longer": data + b"\0", "shorter": data[:-1], "flipped": flipped}[change])
    with pytest.raises(CorruptRecordError, match=file.name):
        offsets(root, level)


@pytest.mark.parametrize(
    ("index", "kept"),
    [
        ("as it is", True),
        ("missing", False),
        ("preallocated", False),
        ("of another log", False),
        ("cut", False),
    ],
)
def test_an_index_is_taken_if_it_fits(tmp_path: Path, index: str, kept: bool) -> None:
    root = copied("records", tmp_path / "log")
    (path,) = [one for one in (root / "segments-0").glob("*.index") if one.stat().st_size][:1]
    data = path.read_bytes()
    changed = {
        "preallocated": data + bytes(4096),
        "of another log": b"".join(
            data[at : at + 4]
            + (int.from_bytes(data[at + 4 : at + 8], "big") + 1).to_bytes(4, "big")
            for at in range(0, len(data), 8)
        ),
        "cut": data[:-3],
    }
    if index == "missing":
        path.unlink()
    else:
        path.write_bytes(changed.get(index, data))
    names = [TopicPartition("segments", number) for number in (0, 1)]
    before = read_all(names, root)
    adopt.run(None, str(root), "segments")
    (entry,) = [
        one for one in live(root, "segments") if one["file"].endswith(f"-0/{path.stem}.log")
    ]
    assert entry["index_bytes"] == (len(data) if kept else 0)
    assert read_all(names, root) == before
    assert verify.run(None, str(root)).findings == ()


def test_a_damaged_batch_is_refused(tmp_path: Path) -> None:
    whole = transactional(0, 1) + marker(1, 1, COMMIT)
    damaged = bytearray(whole)
    damaged[40] ^= 1
    root = made(tmp_path, {"t-0": {0: bytes(damaged), 10: transactional(10, 1) + marker(11, 1, 1)}})
    with pytest.raises(CorruptRecordError, match=segment_name(0, "log")):
        adopt.run(None, str(root))
    assert klog_is_not_there(root)


def klog_is_not_there(root: Path) -> bool:
    return not (root / "_klog" / "format.json").exists()


def test_a_batch_outside_of_its_segment_is_refused(tmp_path: Path) -> None:
    logs = {0: transactional(12, 1) + marker(13, 1, 1), 10: transactional(14, 1) + marker(15, 1, 1)}
    root = made(tmp_path, {"t-0": logs})
    with pytest.raises(CorruptRecordError, match="from 0 to before 10"):
        adopt.run(None, str(root))


def test_what_a_broker_knew_is_kept(tmp_path: Path) -> None:
    logs = {at: transactional(at, 1) + marker(at + 1, 1, COMMIT) for at in (0, 10, 20)}
    root = made(tmp_path, {"t-0": logs, "t-1": {}, "u-0": {7: b""}}, {"t-0": 11})
    said = encode_offset_checkpoint({("t", 0): 20, ("t", 1): 99})
    (root / "cleaner-offset-checkpoint").write_bytes(said)
    assert offsets(root, COMMITTED) == [20]
    adopt.run(None, str(root), config={"retention.ms": "-1"})
    state = state_of(root)
    assert (state.topic_id, state.log_start, state.log_end) == (TOPIC_ID, (11, 0), (22, 0))
    assert dict(state.cleaned_to) == {0: 20}
    assert dict(state.config) == {"cleanup.policy": "compact", "retention.ms": "-1"}
    assert [one["base_offset"] for one in live(root)] == [10, 20], "0 lies below the log start"
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
    root = made(tmp_path, {"t-0": logs, "t-1": {9: b""}})
    adopt.run(None, str(root))
    log = root_of(root).log("t")
    before = log.load()
    name = cleaning.write_checkpoint(log, before)
    said = pq.read_schema(log.paths.checkpoint(name))
    assert json.loads(said.metadata[b"klog"])["format"] == 2
    loaded = log.newest_checkpoint()
    assert loaded.version == before.version == name.version
    assert loaded.segments.to_pylist() == before.segments.to_pylist()
    assert loaded.log_end == (2, 9)


def test_many_segments_are_in_a_sidecar(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("klog.connector.log.sidecar.MOST_JSON_BYTES", 100)
    root = made(tmp_path, {"t-0": {0: transactional(0, 1) + marker(1, 1, ABORT)}})
    adopt.run(None, str(root))
    (sidecar,) = (root / "_klog" / "topics" / "t" / "sidecars").iterdir()
    assert sidecar.stat().st_size > 100
    assert live(root)[0]["aborted"] == [1, 0, 1]
    (commit,) = (root / "_klog" / "topics" / "t" / "log").iterdir()
    assert json.loads(commit.read_bytes())["format"] == 2


def refused(tmp_path: Path, words: str, error: type[KlogError] = KlogError, **more: Any) -> None:
    files = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    with pytest.raises(error, match=words):
        adopt.run(None, str(tmp_path), **more)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == files


WHOLE = transactional(0, 1) + marker(1, 1, COMMIT)


def test_what_cannot_be_adopted_is_refused(tmp_path: Path) -> None:
    refused(tmp_path, "there is nothing to adopt", OptionError)
    root = made(tmp_path, {"t-0": {0: WHOLE}, "t-2": {0: WHOLE}, "__cluster_metadata-0": {}})
    refused(root, "t-2 and no t-1")
    refused(root, "the controllers' own log", OptionError, topic="__cluster_metadata")
    refused(root, r"no topic tt; did you mean t\?", OptionError, topic="tt")
    refused(root, "abort or commit", OptionError, open_transactions="perhaps")
    (root / "t-1").mkdir()
    refused(root, "different topic ids")
    (root / "t-1" / "partition.metadata").write_bytes(encode_partition_metadata(TOPIC_ID))
    (root / "t-0" / f"{segment_name(0, 'log')}.swap").write_bytes(WHOLE)
    refused(root, "a cleaning of the broker's was cut short")
    refused(root, "is no config", OptionError, config={"retention": "1"})


def test_a_directory_that_a_broker_has_is_refused(tmp_path: Path) -> None:
    made(tmp_path, {"t-0": {0: WHOLE}})
    with holding(tmp_path):
        refused(tmp_path, "a broker runs on it")
    adopt.run(None, str(tmp_path))


def test_a_dry_run_writes_nothing(tmp_path: Path) -> None:
    root = made(tmp_path, {"t-0": {0: WHOLE + b"\xff" * 9}})
    report = adopt.run(None, str(root), dry_run=True)
    (one,) = report.partitions
    assert (one.segments, one.size_bytes, one.torn_bytes, one.log_end, one.records) == (
        1, len(WHOLE), 9, 2, None,
    )  # fmt: skip
    assert not (root / "_klog").exists()
    assert [*report.lines()][-1].startswith("WouldAdopt: 1\t")


def test_topics_can_be_adopted_later(tmp_path: Path) -> None:
    root = made(tmp_path, {"t-0": {0: WHOLE}, "u-0": {0: WHOLE}})
    adopt.run(None, str(root), "t")
    klog.open(str(root)).create_topic("new", 1)
    klog.open(str(root)).append("new", pa.table({"value": [b"x"]}))
    report = adopt.run(None, str(root))
    assert {one.topic: one.left for one in report.partitions} == {
        "new": "no broker left anything of it", "t": "it was adopted before", "u": "",
    }  # fmt: skip
    assert offsets(root, COMMITTED, "u") == [0]
    klog.open(str(root)).append("u", pa.table({"value": [b"x"]}))
    assert offsets(root, COMMITTED, "u") == [0, 2]
    Topics(root_of(root)).delete("u")
    (left,) = (one.left for one in adopt.run(None, str(root)).partitions if one.topic == "u")
    assert left == "it was deleted"
    with pytest.raises(OptionError, match="was adopted and then deleted"):
        adopt.run(None, str(root), "u")


LEFT_BY_A_FAILED_WRITE: dict[str, list[str]] = {
    "new-0": [],
    "new-1": ["00000000000000000000-0000000000-3f9ac2d1.log"],
    "gap-3": ["00000000000000000000-0000000000-3f9ac2d1.log"],
    "torn-0": [".00000000000000000000-0000000000-3f9ac2d1.log.0123456789abcdef.tmp"],
    "with-dash-0": ["00000000000000000000-0000000000-3f9ac2d1.index"],
}


def write_that_failed(root: Path) -> None:
    """Leave the directories of topics that no commit made."""
    for directory, files in LEFT_BY_A_FAILED_WRITE.items():
        (root / directory).mkdir()
        for name in files:
            (root / directory / name).write_bytes(WHOLE)


def told(report: AdoptReport) -> list[tuple[str, int, str]]:
    return [(one.topic, one.partition, one.left) for one in report.partitions]


def test_a_klog_root_is_one_already(tmp_path: Path) -> None:
    """Nothing is done and that is said, by a dry run as by a run, however often."""
    log = klog.open(tmp_path)
    log.create_topic("t", 2)
    log.append("t", pa.table({"value": [b"x"]}))
    write_that_failed(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    for dry_run in (True, False, True, False):
        report = adopt.run(None, str(tmp_path), dry_run=dry_run)
        assert {left for _, _, left in told(report)} == {"no broker left anything of it"}
        assert {topic for topic, _, _ in told(report)} == {"t"}
        assert report.exit_code == 0
        assert "it is a klog root already" in report.note
        assert log.topics() == ["t"]
        named = adopt.run(None, str(tmp_path), "t", dry_run=dry_run)
        assert told(named) == told(report)
        for topic in ("new", "gap", "torn", "with-dash", "nope"):
            with pytest.raises(OptionError, match=f"there is no topic {topic} of a broker's"):
                adopt.run(None, str(tmp_path), topic, dry_run=dry_run)
    assert sorted(tmp_path.rglob("*")) == before


def test_what_a_failed_write_left_is_no_topic_beside_a_brokers(tmp_path: Path) -> None:
    root = made(tmp_path, {"t-0": {0: WHOLE}, "u-0": {0: WHOLE}})
    adopt.run(None, str(root), "t")
    write_that_failed(root)
    (root / "u-1").mkdir()  # Of a write to u, which is not adopted yet.
    klog.open(root).add_partitions("t", 2)
    klog.open(root).append("t", pa.table({"value": [b"x"], "partition": pa.array([1])}))
    dry = adopt.run(None, str(root), dry_run=True)
    assert told(dry) == [("t", 0, "it was adopted before"), ("u", 0, "")]
    report = adopt.run(None, str(root))
    assert told(report) == told(dry)
    assert "a broker does not start" in report.note
    assert klog.open(root).topics() == ["t", "u"]
    again = [adopt.run(None, str(root), dry_run=dry_run) for dry_run in (True, False)]
    assert told(again[0]) == told(again[1])
    assert all("it is a klog root already" in one.note for one in again)


@pytest.mark.parametrize(
    "command",
    [
        ["topics", "list"], ["topics", "describe"], ["verify"], ["retain"], ["merge"], ["compact"],
        ["vacuum", "--execute"], ["export-log", "--to", "OUT"], ["adopt"],
    ],
    ids=" ".join,
)  # fmt: skip
def test_no_verb_takes_what_a_failed_write_left_for_a_topic(
    tmp_path: Path, command: list[str], capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    root = tmp_path / "root"
    klog.open(root).create_topic("t")
    klog.open(root).append("t", pa.table({"value": [b"x"]}))
    write_that_failed(root)
    out = str(tmp_path / "out")
    assert main([*(out if one == "OUT" else one for one in command), "--root", str(root)]) == 0
    said = b"".join(capfdbinary.readouterr()).decode()
    assert not any(topic in said for topic in ("new", "gap", "torn-", "with-dash"))
    assert klog.open(root).topics() == ["t"]
    pattern = read_options({"subscribePattern": ".*"})
    look = open_root([str(root)]).look()
    assert subscribed(pattern, look) == [TopicPartition("t", 0)]


def test_a_dry_run_says_what_a_killed_adoption_has_done(tmp_path: Path) -> None:
    root = made(tmp_path, {"t-0": {0: WHOLE}, "u-0": {0: WHOLE}})
    adopt.run(None, str(root), "t")
    (root / "_klog" / "format.json").rename(root / "_klog" / "adopting.json")
    dry = adopt.run(None, str(root), dry_run=True)
    assert told(dry) == [("t", 0, "it was adopted before"), ("u", 0, "")]
    assert not (root / "_klog" / "format.json").exists()
    assert told(adopt.run(None, str(root))) == told(dry)
    assert klog.open(root).topics() == ["t", "u"]


def test_a_topic_that_went_on_is_left(tmp_path: Path) -> None:
    root = made(tmp_path, {"t-0": {0: WHOLE, 10: transactional(10, 1) + marker(11, 1, COMMIT)}})
    adopt.run(None, str(root))
    merge.run(None, str(root))
    assert [one.left for one in adopt.run(None, str(root)).partitions] == ["it was adopted before"]
    (root / "t-0" / "partition.metadata").write_bytes(
        encode_partition_metadata("BAAAAAAAAAAAAAAAAAAAAQ")
    )
    with pytest.raises(KlogError, match="its name is taken"):
        adopt.run(None, str(root))


def test_until_it_is_done_it_is_a_brokers(tmp_path: Path) -> None:
    root = made(tmp_path, {"t-0": {0: WHOLE}})
    raw = open_root([str(root)])
    adopt.run(None, str(root))
    assert not (root / ADOPTING_FILE).exists()
    with pytest.raises(KlogError, match="has been adopted"):
        raw.look()
    (root / "_klog" / "format.json").unlink()
    with pytest.raises(KlogError, match=r"format\.json: this file is lost"):
        open_root([str(root)]).look()
    (root / ADOPTING_FILE).write_bytes(b"{}")
    assert offsets(root, COMMITTED) == [0]
    file = root / "t-0" / segment_name(0, "log")
    file.write_bytes(WHOLE + transactional(2, 1) + marker(3, 1, COMMIT))
    with pytest.raises(KlogError, match="something changed the directory since"):
        adopt.run(None, str(root))


@pytest.mark.slow
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_killed_at_each_call_it_is_raw_or_whole(tmp_path: Path, after: bool) -> None:
    logs = {
        0: transactional(0, 1) + marker(1, 1, ABORT),
        10: transactional(10, 2) + marker(11, 2, 1),
    }
    base = made(tmp_path / "base", {"t-0": logs, "t-1": {}, "u-0": {0: WHOLE}})
    names = names_of(base)
    before, files = read_all(names, base), files_of(base)
    for at in count():
        root = tmp_path / str(at)
        shutil.copytree(base, root)
        with killed_at(at, after=after) as calls:
            try:
                adopt.run(None, str(root))
                is_killed = False
            except Killed:
                is_killed = True
        assert read_all(names, root) == before, calls[-1]
        adopt.run(None, str(root))
        assert read_all(names, root) == before, calls[-1]
        assert files_of(root) == files
        assert (root / "_klog" / "format.json").exists()
        assert not (root / ADOPTING_FILE).exists()
        assert state_of(root).version == 0
        shutil.rmtree(root)
        if not is_killed:
            assert at > 30
            break


def test_several_log_directories_are_refused_by_name(tmp_path: Path) -> None:
    (first, _) = scene("jbod").log_dirs
    root = tmp_path / "log"
    shutil.copytree(first, root)
    with pytest.raises(KlogError, match=r"topic spread is not whole: .* `klog import-log`"):
        adopt.run(None, str(root))
    adopt.run(None, str(root), "__consumer_offsets")


def test_as_a_verb(tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    root = made(tmp_path, {"t-0": {0: WHOLE}})
    assert main(["adopt", "--root", str(root), "--config", "retention.ms=-1", "--json"]) == 0
    said = json.loads(capfdbinary.readouterr().out)
    assert said["partitions"][0] | {"seconds": 0} == {
        "topic": "t", "partition": 0, "logStart": 0, "logEnd": 2, "segments": 1,
        "sizeBytes": len(WHOLE), "tornBytes": 0, "records": 1, "aborted": 0, "left": "",
        "failure": None, "seconds": 0,
    }  # fmt: skip
    assert "until _klog/ is moved" in said["note"]
    assert dict(state_of(root).config) == {"retention.ms": "-1"}
    assert main(["adopt", "--root", str(root), "--config", "retention.ms"]) != 0
