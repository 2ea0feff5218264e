"""Exports of `klog export-log`, read by Kafka's dump tool, a broker and Java's clients.

The rule: the commands of docs/export.md mount the export. One broker, one Java process: the broker
starts once as after a kill, so that it recovers every segment, and once as after a clean stop; then
producers append to the export.
"""

from __future__ import annotations

import re
import shutil
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from klog.jobs import export_log, import_log, verify
from klog.logformat.broker_files.file_names import deleted_directory_name
from klog.logformat.producers.producer_snapshot import decode_snapshot
from klog.logformat.topic_partition import TopicPartition
from tests.corpus import Record, damage
from tests.corpus.clients import Client
from tests.jobs.written_root import WrittenRoot
from tests.kafka.exported_topics import (
    GAPS,
    OPEN,
    WRITTEN,
    adopt,
    config_on_broker,
    take_open,
    write_by_jvm,
)
from tests.kafka.kafka_dump_tool import RECORD, as_dumped, checked, dumped
from tests.kafka.mounted_partitions import (
    INDEXES,
    PRODUCED_RECORDS,
    Accounts,
    Where,
    assert_kept,
    consumed,
    files,
    mount,
    of_partition,
    produce_after,
)
from tests.support.broker_loader.producer_state_manager import ProducerStateManager
from tests.support.kafka_broker import Broker, log_faults
from tests.support.kafka_classes import consume, java_process
from tests.support.reader_rows import LEVELS, read_partition, told_at

pytestmark = pytest.mark.kafka

PROPERTIES = {"log.retention.ms": "-1", "log.segment.delete.delay.ms": "0"}
PARTITIONS: list[Where] = [
    *(("exported.codecs", number) for number in range(5)),
    *(("exported.jvm", number) for number in range(5)),
    ("exported.started", 0),
    ("exported.started", 1),
    ("exported.emptied", 0),
    ("exported.emptied", 1),
    ("exported.appended", 0),
    ("written.txn", 0),
    (GAPS, 0),
    ("exported.epochs", 0),
    (OPEN, 0),
]
EVERY = pytest.mark.parametrize("where", PARTITIONS, ids=lambda where: f"{where[0]}-{where[1]}")
KILLED_EXPORT = deleted_directory_name(TopicPartition("exported.codecs", 0), "0123456789abcdef" * 2)


@dataclass(frozen=True, slots=True)
class Exported:
    """The root, its export, the broker's log dirs and outputs, and what consumers read."""

    root: WrittenRoot
    adopted: dict[Where, list[Record]]
    exported: Path
    recovered: Path
    untouched: Path
    continued: Path
    outputs: list[str]
    bounds: dict[Where, tuple[int, int]]
    after_recovery: Accounts
    before_producers: Accounts
    after_producers: Accounts

    def expected(self, where: Where, level: str) -> list[Record]:
        """Return the records that readers must read: klog's scan, or those of an adopted log."""
        if where in self.adopted:
            return told_at(self.adopted[where], level)
        return read_partition([Path(self.root.location)], *where, level)


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Iterator[Exported]:
    """Write, mount, recover, consume, mount again, consume, stop, produce, consume."""
    work = tmp_path_factory.mktemp("exported")
    now = time.time_ns() // 1_000_000 - 3_600_000
    root = WrittenRoot(str(work / "root"))
    for write in WRITTEN:
        write(root, now)
    write_by_jvm(root, spark, now)
    adopted = adopt(root, now)
    take_open(root, work, now)
    outputs: list[str] = []
    with Broker(work / "broker", PROPERTIES) as broker, java_process() as gateway:
        client = Client(broker)
        counts = Counter(topic for topic, _ in PARTITIONS)
        for topic, count in counts.items():
            client.create(topic, "", config_on_broker(root, topic), count)
        broker.stop()
        log_dir = broker.log_dirs[0]
        for topic, count in counts.items():
            options = ["--open-transactions", "end"] if topic == OPEN else []
            mount(root.location, topic, count, log_dir, work, *options)
        shutil.copytree(log_dir, work / "exported")
        # The files of an export that was killed.
        shutil.copytree(log_dir / "exported.codecs-0", log_dir / KILLED_EXPORT)
        next((log_dir / KILLED_EXPORT).glob("*.index")).unlink()
        damage.unclean(log_dir / "any")
        broker.start()
        after_recovery = consumed(gateway, broker, PARTITIONS)
        broker.stop()
        outputs.append(broker.output.read_text())
        shutil.copytree(log_dir, work / "recovered")
        restore(work / "exported", log_dir)
        broker.start()
        before = consumed(gateway, broker, PARTITIONS)
        bounds, _ = consume(gateway, broker.bootstrap, PARTITIONS, "read_committed")
        broker.stop()
        outputs.append(broker.output.read_text())
        shutil.copytree(log_dir, work / "untouched")
        broker.start()
        produce_after(gateway, broker, PARTITIONS)
        after = consumed(gateway, broker, PARTITIONS)
        broker.stop()
        yield Exported(
            root,
            adopted,
            work / "exported",
            work / "recovered",
            work / "untouched",
            log_dir,
            outputs,
            {where: (bound.earliest, bound.high_watermark) for where, bound in bounds.items()},
            after_recovery,
            before,
            after,
        )


def restore(exported: Path, log_dir: Path) -> None:
    for topic, partition in PARTITIONS:
        shutil.rmtree(log_dir / f"{topic}-{partition}")
        shutil.copytree(exported / f"{topic}-{partition}", log_dir / f"{topic}-{partition}")


def exported_files(exported: Exported, *suffixes: str, but: str = "") -> list[Path]:
    paths = exported.exported.glob("*/*")
    names = {f"{topic}-{partition}" for topic, partition in PARTITIONS if topic != but}
    return sorted(path for path in paths if path.suffix in suffixes and path.parent.name in names)


def test_the_dump_tool_finds_every_record_and_no_fault(exported: Exported) -> None:
    options = ("--deep-iteration", "--print-data-log")
    texts = checked(exported_files(exported, ".log", but=GAPS), *options)
    gaps, complaints = dumped(sorted((exported.exported / f"{GAPS}-0").glob("*.log")), *options)
    # It misses the offsets that have no record, as it does in any log that a broker has cleaned.
    missed = re.compile(r"Non-consecutive offsets in \S+|  \d+ is followed by \d+")
    assert [line for line in complaints.splitlines() if not missed.fullmatch(line)] == []
    texts |= gaps
    for where in PARTITIONS:
        name = f"{where[0]}-{where[1]}"
        text = "".join(text for path, text in texts.items() if path.parent.name == name)
        # Those below the log start are in its segment.
        start = exported.bounds[where][0]
        records = [
            fields[:5]
            for fields in RECORD.findall(text)
            if not fields[5] and int(fields[0]) >= start
        ]
        assert records == [
            as_dumped(record) for record in exported.expected(where, "read_uncommitted")
        ]


def test_there_is_something_to_dump(exported: Exported) -> None:
    report = export_log.run(
        None, exported.root.location, (), str(exported.exported / "x"), dry_run=True
    )
    shifted = {
        (partition.topic, partition.partition): partition.shifted for partition in report.partitions
    }
    assert all(shifted["exported.codecs", number] > 1 for number in range(5))
    assert all(shifted["exported.jvm", number] > 1 for number in range(5))
    assert not shifted["exported.appended", 0]
    names = [path.name for path in exported_files(exported, ".txnindex")]
    assert len(names) > 3


@pytest.mark.parametrize("option", ["--index-sanity-check", "--verify-index-only", None])
def test_the_dump_tool_finds_no_fault_in_an_index(exported: Exported, option: str | None) -> None:
    paths = exported_files(exported, ".index", ".timeindex")
    texts = checked(paths, *([option] if option else []))
    if option == "--index-sanity-check":
        for path, text in texts.items():
            is_empty = path.suffix == ".index" and not path.stat().st_size
            good = "is empty." if is_empty else "passed sanity check."
            assert text.strip() == f"{path} {good}"


def test_the_dump_tool_reads_snapshots(exported: Exported) -> None:
    for path, text in checked(exported_files(exported, ".snapshot", ".txnindex")).items():
        content = path.read_bytes()
        entries = len(content) // 34 if path.suffix == ".txnindex" else (len(content) - 10) // 46
        assert text.lower().count("producerid: ") == entries, path


def test_the_broker_logs_no_fault(exported: Exported) -> None:
    for output in exported.outputs:
        assert "Kafka Server started" in output
        assert log_faults(output) == []


@EVERY
def test_recovery_truncates_no_byte_and_makes_the_indexes_that_klog_wrote(
    exported: Exported, where: Where
) -> None:
    assert files(exported.recovered, where, ".log") == files(exported.exported, where, ".log")
    assert files(exported.recovered, where, *INDEXES) == files(exported.exported, where, *INDEXES)


@EVERY
def test_recovery_finds_the_producers_that_klog_wrote(exported: Exported, where: Where) -> None:
    """The broker rebuilds them from the log; klog's last snapshot has the same producers."""
    written = files(exported.exported, where, ".snapshot")
    rebuilt = files(exported.recovered, where, ".snapshot")
    for name, content in written.items():
        entries = decode_snapshot(content)
        assert ProducerStateManager.from_snapshot(entries, int(name[:20])).open_transactions == {}
        assert set(decode_snapshot(rebuilt[name])) == set(entries), name
    log_start, log_end = exported.bounds[where]
    assert list(written) == ([f"{log_end:020}.snapshot"] if log_end > log_start else [])


@EVERY
def test_a_clean_start_keeps_every_file(exported: Exported, where: Where) -> None:
    every = (".log", *INDEXES)
    written = files(exported.exported, where, *every)
    assert files(exported.untouched, where, *every) == written
    assert_kept(written, files(exported.continued, where, *every))


@EVERY
def test_the_bounds(exported: Exported, where: Where) -> None:
    topic, partition = where
    state = exported.root.state(topic)
    markers = 2 if topic == OPEN else 0
    bounds = state.log_start[partition], state.log_end[partition] + markers
    assert exported.bounds[where] == bounds


@EVERY
@pytest.mark.parametrize("level", LEVELS)
def test_the_java_consumer_reads_what_klog_reads(
    exported: Exported, where: Where, level: str
) -> None:
    expected = exported.expected(where, level)
    assert bool(expected) != (where[0] == "exported.emptied")
    assert of_partition(exported.after_recovery[level], where) == expected
    assert of_partition(exported.before_producers[level], where) == expected
    assert read_partition([exported.exported], *where, level) == expected


@EVERY
@pytest.mark.parametrize("level", LEVELS)
def test_producers_append_to_exports(exported: Exported, where: Where, level: str) -> None:
    records = of_partition(exported.after_producers[level], where)
    expected = exported.expected(where, level)
    assert records[: len(expected)] == expected
    assert len(records) == len(expected) + PRODUCED_RECORDS[level]
    assert read_partition([exported.continued], *where, level) == records


@pytest.fixture(scope="module")
def back(exported: Exported, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Import the whole log dir that the broker appended to into a new klog root."""
    root = tmp_path_factory.mktemp("back") / "root"
    topics = sorted({topic for topic, _ in PARTITIONS})
    import_log.run(None, str(root), topics, source=str(exported.continued))
    return root


@EVERY
@pytest.mark.parametrize("level", LEVELS)
def test_imported_back_nothing_has_changed(
    exported: Exported, back: Path, where: Where, level: str
) -> None:
    """Offsets, times, headers and keys are those that Java reads, and begin with the export's."""
    records = read_partition([back], *where, level)
    assert records == of_partition(exported.after_producers[level], where)
    expected = exported.expected(where, level)
    assert records[: len(expected)] == expected


@pytest.fixture(scope="module")
def again(back: Path) -> Path:
    """Export that root, which has the segments of two clusters."""
    to = back.parent / "again"
    export_log.run(None, str(back), None, str(to))
    return to


@EVERY
def test_imported_back_its_producers_are_the_brokers(
    exported: Exported, again: Path, where: Where
) -> None:
    """An export of it has the producers of the snapshot that the broker wrote when it stopped.

    Except for those that a start would expire: their records are years old.
    """
    ((name, content),) = files(again, where, ".snapshot").items()
    theirs = decode_snapshot(files(exported.continued, where, ".snapshot")[name])
    since_ms = time.time_ns() // 1_000_000 - 86_400_000
    assert set(decode_snapshot(content)) == {
        entry for entry in theirs if entry.timestamp_ms > since_ms
    }


def test_verify_finds_nothing_in_what_was_imported_back(back: Path) -> None:
    report = verify.run(None, str(back))
    assert report.findings == ()
    assert report.records


@EVERY
def test_the_leader_epochs(exported: Exported, where: Where) -> None:
    """A broker keeps the epochs of the export and appends its own, whichever led before."""
    name = f"{where[0]}-{where[1]}/leader-epoch-checkpoint"
    written = (exported.exported / name).read_text().splitlines()
    assert (exported.continued / name).read_text().splitlines()[2 : len(written)] == written[2:]


def test_a_killed_export_leaves_no_partition(exported: Exported) -> None:
    """The broker takes it for a partition to delete, by its name."""
    assert not (exported.exported / KILLED_EXPORT).exists()
    names = [path.name for path in exported.continued.glob("*-delete")]
    assert names in ([], [KILLED_EXPORT])
