"""What tests of adoptions share: the offsets that are read, and what a report says."""

from __future__ import annotations

from pathlib import Path

from klog.jobs.shared.broker_logs.adopt_report import AdoptReport
from klog.logformat.producers.control_records import COMMIT
from tests.support.batch_bytes import marker, transactional
from tests.support.reader_rows import read_partition

UNCOMMITTED, COMMITTED = "read_uncommitted", "read_committed"


def offsets(root: Path, level: str, topic: str = "t", partition: int = 0) -> list[int]:
    return [record.offset for record in read_partition([root], topic, partition, level)]


WHOLE = transactional(0, 1) + marker(1, 1, COMMIT)


def reasons(report: AdoptReport) -> list[tuple[str, int, str]]:
    return [
        (partition.topic, partition.partition, partition.left) for partition in report.partitions
    ]
