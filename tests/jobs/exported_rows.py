"""What tests of exports share: a root with every codec, and what the export reads as."""

from __future__ import annotations

from pathlib import Path

from klog.jobs import export_log
from klog.jobs.exporting.export_report import ExportLogReport
from tests.corpus.clients import CODECS
from tests.jobs.written_root import WrittenRoot, numbers
from tests.kafka.mounted_partitions import Where
from tests.support.reader_rows import LEVELS, read_partition

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


def run(root: WrittenRoot, to: Path, *topics: str) -> ExportLogReport:
    return export_log.run(None, root.location, topics, str(to), clock_ms=lambda: NOW_MS)


def same_records(root: WrittenRoot, to: Path, where: Where) -> int:
    """See that klog reads of the export what it reads of the root; returns their number."""
    expected = read_partition([Path(root.location)], *where, "read_uncommitted")
    for level in LEVELS:
        assert read_partition([to], *where, level) == expected
    return len(expected)
