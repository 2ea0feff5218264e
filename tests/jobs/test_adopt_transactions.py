"""Transactions of an adopted directory: open, aborted, over segments, and what compaction drops."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import klog
from klog.connector.commit_log.segment_entries import merge_aborted
from klog.errors import KlogError
from klog.jobs import adopt, compact, merge, verify
from klog.logformat.broker_files.file_names import segment_file_name
from klog.logformat.indexes.transaction_index import (
    NO_ABORTED_TRANSACTIONS,
    AbortedTransaction,
    encode_aborted,
)
from klog.logformat.producers.control_records import ABORT, COMMIT
from klog.logformat.topic_partition import TopicPartition
from tests.corpus import Record
from tests.jobs.adopted_rows import COMMITTED, UNCOMMITTED, offsets
from tests.jobs.broker_dirs import (
    SCENE_NAMES,
    copied,
    names_of,
    open_ones,
    read_all,
    write_broker_dir,
)
from tests.jobs.verified_roots import live
from tests.support.batch_bytes import marker, transactional


@pytest.mark.parametrize("name", [name for name in SCENE_NAMES if name != "records"])
def test_an_open_transaction_is_told_and_can_be_ended(name: str, tmp_path: Path) -> None:
    root = copied(name, tmp_path / "log")
    stables = open_ones(names_of(root), root)
    before = read_all(stables, root)
    first = min(stables)
    with pytest.raises(KlogError, match=rf"that began at offset {stables[first]} has no end"):
        adopt.run(None, str(root), first.topic)
    assert not (root / "_klog").exists()

    adopt.run(None, str(root), sorted({name.topic for name in stables}), open_transactions="abort")
    after = read_all(stables, root)
    shutil.rmtree(root / "_klog")
    adopt.run(None, str(root), sorted({name.topic for name in stables}), open_transactions="commit")
    kept = read_all(stables, root)
    for partition, stable in stables.items():
        assert (
            after[partition, UNCOMMITTED]
            == kept[partition, UNCOMMITTED]
            == before[partition, UNCOMMITTED]
        )
        for seen in (after, kept):
            assert [r for r in seen[partition, COMMITTED] if r.offset < stable] == before[
                partition, COMMITTED
            ]
        more = {r.offset for r in kept[partition, COMMITTED]} - {
            r.offset for r in after[partition, COMMITTED]
        }
        assert min(more) == stable
    assert verify.run(None, str(root)).findings == ()


def test_transactions_over_segments(tmp_path: Path) -> None:
    logs = {
        0: transactional(0, 1) + transactional(1, 2) + transactional(2, 3),
        10: transactional(10, 1) + marker(11, 2, COMMIT) + transactional(12, 2),
        20: marker(20, 1, ABORT) + transactional(21, 1) + marker(22, 2, ABORT),
        30: marker(30, 1, COMMIT) + marker(31, 3, ABORT),
    }
    root = write_broker_dir(tmp_path, {"t-0": logs})
    before = read_all([TopicPartition("t", 0)], root)
    report = adopt.run(None, str(root))
    assert [entry["aborted"] for entry in live(root)] == [
        [1, 0, 20, 3, 2, 31], [1, 10, 20, 2, 12, 22], [], []
    ]  # fmt: skip
    assert [entry["record_count"] for entry in live(root)] == [1, 0, 1, 0]
    assert [(entry["base_offset"], entry["next_offset"]) for entry in live(root)] == [
        (0, 10), (10, 20), (20, 30), (30, 32)
    ]  # fmt: skip
    assert (report.partitions[0].records, report.partitions[0].aborted) == (2, 3)
    assert read_all([TopicPartition("t", 0)], root) == before
    assert offsets(root, COMMITTED) == [1, 21]
    assert merge_aborted(live(root)) == [1, 0, 20, 2, 12, 22, 3, 2, 31]
    merge.run(None, str(root), "t")
    assert len(live(root)) < 4
    assert merge_aborted(live(root)) == [1, 0, 20, 2, 12, 22, 3, 2, 31]
    assert sum(entry["record_count"] for entry in live(root)) == 2
    assert read_all([TopicPartition("t", 0)], root) == before
    table = klog.open(str(root)).scan("t").read_all()
    assert table["offset"].to_pylist() == [1, 21]


def test_what_an_index_alone_calls_aborted_is_hidden(tmp_path: Path) -> None:
    """As a raw read hides it: of a transaction whose marker's segment was lost."""
    root = write_broker_dir(tmp_path, {"t-0": {0: transactional(0, 1) + marker(1, 1, COMMIT)}})
    index = NO_ABORTED_TRANSACTIONS.with_entries([AbortedTransaction(1, 0, 1, 2)])
    (root / "t-0" / segment_file_name(0, "txnindex")).write_bytes(encode_aborted(index))
    assert offsets(root, COMMITTED) == []
    adopt.run(None, str(root))
    assert offsets(root, COMMITTED) == []
    assert offsets(root, UNCOMMITTED) == [0]
    assert live(root)[0]["aborted"] == [1, 0, 1]


def test_compaction_drops_what_was_aborted(tmp_path: Path) -> None:
    """Also if the marker is after the cleaned part."""
    logs = {
        0: transactional(0, 1, [b"old"]) + marker(1, 1, COMMIT) + transactional(2, 2, [b"new"]),
        10: marker(10, 2, ABORT),
    }
    root = write_broker_dir(tmp_path, {"t-0": logs})
    adopt.run(None, str(root), config={"cleanup.policy": "compact"})
    assert offsets(root, COMMITTED) == [0]
    compact.run(None, str(root), "t", min_dirty_ratio=0)
    assert offsets(root, UNCOMMITTED) == [0]
    assert all(not entry["aborted"] for entry in live(root) if entry["origin"] == "compact")
    assert verify.run(None, str(root)).findings == ()


@pytest.mark.parametrize(
    ("name", "topics"),
    [("2.8.2", ["v0.compacted", "v1.compacted"]), ("compacted-after", ["compacted.txn"])],
)
def test_what_a_broker_wrote_is_compacted(name: str, topics: list[str], tmp_path: Path) -> None:
    root = copied(name, tmp_path / "log")
    names = [name for name in names_of(root) if name.topic in topics]
    before = {where: last_values(records) for where, records in read_all(names, root).items()}
    adopt.run(None, str(root), topics)
    report = compact.run(None, str(root), min_dirty_ratio=0)
    assert sum(partition.records_after for partition in report.partitions) < sum(
        partition.records for partition in report.partitions if not partition.left
    )
    for where, records in read_all(names, root).items():
        if where[1] == COMMITTED:
            assert last_values(records) == before[where]
    assert verify.run(None, str(root)).findings == ()


def last_values(records: list[Record]) -> dict[bytes, tuple[int, object]]:
    """Return the last offset and value of each key that has one."""
    last = {record.key: record for record in records if record.key is not None}
    return {
        key: (record.offset, record.value)
        for key, record in last.items()
        if record.value is not None
    }
