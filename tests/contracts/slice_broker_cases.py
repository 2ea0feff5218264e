"""Golden cases with files that brokers wrote (tests/golden), and the rows their consumers read."""

from __future__ import annotations

import json

import google_crc32c
import numpy as np

from klog.connector.kafka_dir.raw_root import RawRoot
from klog.connector.options.read_options import parse_read_options
from klog.connector.source import scan_planner
from klog.logformat.indexes.transaction_index import decode_aborted
from tests import golden
from tests.contracts.slice_case import (
    Case,
    Cases,
    Files,
    MakeCase,
    Rows,
)
from tests.contracts.slice_runner import row_of
from tests.corpus import Digest
from tests.support.project import PROJECT
from tests.support.reader_rows import told_at

CASES = Cases()


def broker_case(version: str, topic: str, partition: int, level: str) -> MakeCase:
    """Return a case with files that a broker wrote (tests/golden)."""

    def make(files: Files) -> Case:
        scene = golden.scene(version)
        options = parse_read_options(
            {"assign": json.dumps({topic: [partition]}), "isolationLevel": level}
        )
        root = RawRoot([str(path) for path in scene.log_dirs])
        (task,) = scan_planner.plan_snapshot(root.snapshot(), options)
        return Case(
            f"{topic}-{partition} of a broker {version}: {scene.notes[topic]}",
            task,
            broker_rows(version, topic, partition, level),
        )

    return make


def broker_rows(version: str, topic: str, partition: int, level: str) -> Rows:
    """Return the rows that the broker's own consumer read."""
    rows = []
    for record in told_at(golden.scene(version).records(), level):
        if (record.topic, record.partition) == (topic, partition):
            assert not isinstance(record.value, Digest)
            rows.append(
                row_of(
                    record.offset, record.timestamp, record.timestamp_type, record.key,
                    record.value, record.headers,
                )
            )  # fmt: skip
    return rows


def adopted_transactions(files: Files) -> Case:
    """Return the transactions of a broker as a klog root has them after `klog adopt`."""
    uncommitted = broker_case("4.2.0", "txn", 0, "read_uncommitted")(files)
    task = []
    for values in uncommitted.task:
        path = PROJECT / str(values["path"])
        aborted = decode_aborted(path.with_suffix(".txnindex").read_bytes())
        task.append(
            values
            | {
                "isCommitted": True,
                "fileSizeBytes": path.stat().st_size,
                "crc32c": google_crc32c.value(path.read_bytes()),
                "committedOnly": True,
                "aborted": np.stack(
                    [aborted.producer_ids, aborted.first_offsets, aborted.last_offsets], 1
                ).tolist(),
            }
        )
    rows = broker_rows("4.2.0", "txn", 0, "read_committed")
    stable = max(row["offset"] for row in rows) + 1
    task[-1]["endOffset"] = stable
    return Case("aborted and committed transactions of a broker, adopted", task, rows)


CASES["adopted_transactions"] = adopted_transactions
for _version, _topic, _partitions in (
    ("2.8.2", "v0", range(4)),
    ("2.8.2", "v1", range(4)),
    ("2.8.2", "v1.append", range(4)),
    ("2.8.2", "v1.kafka-python", range(3)),
    ("2.8.2", "mixed", range(4)),
    ("2.8.2", "v0.compacted", range(4)),
    ("2.8.2", "v1.compacted", range(4)),
    ("4.2.0", "v2", range(5)),
    ("4.2.0", "v2.append", range(5)),
    ("4.2.0", "v2.compacted", range(5)),
    ("4.2.0", "idempotent", range(1)),
):
    for _partition in _partitions:
        _name = f"broker_{_topic}_{_partition}".replace(".", "_").replace("-", "_")
        CASES[_name] = broker_case(_version, _topic, _partition, "read_committed")
for _level in ("read_committed", "read_uncommitted"):
    CASES[f"broker_txn_{_level}"] = broker_case("4.2.0", "txn", 0, _level)
