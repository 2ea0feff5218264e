"""Partitions that klog writes, read by a broker and by Java's consumer and producers.

The rule: one broker, one Java process. The topics are created first, so that their ids are known;
then klog's directories replace the empty ones, once as after a kill and once as after a clean stop,
and producers append to them.
"""

from __future__ import annotations

import shutil
import struct
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from klog.logformat.broker_files.file_names import segment_file_name
from klog.logformat.broker_files.metadata_files import (
    decode_partition_metadata,
    encode_partition_metadata,
)
from klog.logformat.producers.producer_snapshot import decode_snapshot
from tests.corpus import damage
from tests.corpus.clients import Client
from tests.kafka.mounted_partitions import (
    INDEXES,
    PRODUCED_RECORDS,
    Accounts,
    Where,
    assert_kept,
    consumed,
    files,
    of_partition,
    produce_after,
)
from tests.kafka.written_topics import config_of, write_all
from tests.support.broker_loader.load_partition import load
from tests.support.kafka_broker import Broker
from tests.support.kafka_classes import java_process
from tests.support.reader_rows import LEVELS, read_partition, told_at

pytestmark = pytest.mark.kafka

# Nothing is cleaned or expired during the tests.
PROPERTIES = {"log.retention.ms": "-1"}
WRITTEN = write_all(time.time_ns() // 1_000_000)
EVERY = pytest.mark.parametrize("where", WRITTEN, ids=lambda where: f"{where[0]}-{where[1]}")


@dataclass(frozen=True, slots=True)
class Outcome:
    """Log dirs as klog wrote them and as the broker left them, and what consumers read."""

    written: Path
    recovered: Path  # after a start that recovers everything
    continued: Path  # after a start that trusts everything, and producers
    after_recovery: Accounts  # by isolation level
    before_producers: Accounts
    after_producers: Accounts


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Outcome]:
    """Write, mount, recover, consume, mount again, consume, produce, consume."""
    work = tmp_path_factory.mktemp("written")
    with Broker(work / "broker", PROPERTIES) as broker, java_process() as gateway:
        _create(Client(broker))
        broker.stop()
        log_dir = broker.log_dirs[0]
        _write(log_dir, work / "written")
        _mount(work / "written", log_dir)
        damage.unclean(log_dir / "any")
        broker.start()
        after_recovery = consumed(gateway, broker, WRITTEN)
        broker.stop()
        shutil.copytree(log_dir, work / "recovered")
        _mount(work / "written", log_dir)
        broker.start()
        before = consumed(gateway, broker, WRITTEN)
        produce_after(gateway, broker, WRITTEN)
        after = consumed(gateway, broker, WRITTEN)
        broker.stop()
        yield Outcome(work / "written", work / "recovered", log_dir, after_recovery, before, after)


def _create(client: Client) -> None:
    partitions: dict[str, int] = {}
    for topic, partition in WRITTEN:
        partitions[topic] = max(partitions.get(topic, 0), partition + 1)
    for topic, count in partitions.items():
        config = config_of(WRITTEN[topic, 0].limits)
        if topic == "written.append":
            config["message.timestamp.type"] = "LogAppendTime"
        client.create(topic, "", config, count)


def _write(log_dir: Path, into: Path) -> None:
    """Write every directory, with the id that the broker gave its topic."""
    for (topic, partition), log in WRITTEN.items():
        name = f"{topic}-{partition}"
        topic_id = decode_partition_metadata((log_dir / name / "partition.metadata").read_bytes())
        files = {**log.files(), "partition.metadata": encode_partition_metadata(topic_id)}
        (into / name).mkdir(parents=True)
        for file, content in files.items():
            (into / name / file).write_bytes(content)


def _mount(written: Path, log_dir: Path) -> None:
    for directory in written.iterdir():
        shutil.rmtree(log_dir / directory.name)
        shutil.copytree(directory, log_dir / directory.name)


@EVERY
@pytest.mark.parametrize("level", LEVELS)
def test_the_java_consumer_reads_what_was_written(
    outcome: Outcome, where: Where, level: str
) -> None:
    expected = told_at(WRITTEN[where].records, level)
    assert expected
    assert of_partition(outcome.before_producers[level], where) == expected
    assert of_partition(outcome.after_recovery[level], where) == expected


@EVERY
def test_recovery_truncates_no_byte(outcome: Outcome, where: Where) -> None:
    logs = files(outcome.written, where, ".log")
    assert len(logs) > 1, "one segment shows little"
    assert files(outcome.recovered, where, ".log") == logs


@EVERY
def test_recovery_makes_the_indexes_that_klog_wrote(outcome: Outcome, where: Where) -> None:
    rebuilt = files(outcome.recovered, where, *INDEXES)
    written = files(outcome.written, where, *INDEXES)
    if all(len(append) == 1 for append in WRITTEN[where].appends):
        assert rebuilt == written
    else:
        # An append of several batches has at most one entry; recovery does not know the appends.
        assert {name: rebuilt[name] for name in rebuilt if ".index" in name} != {
            name: written[name] for name in written if ".index" in name
        }


@EVERY
def test_klog_recovers_what_the_broker_recovered(outcome: Outcome, where: Where) -> None:
    logs = files(outcome.written, where, ".log")
    loaded = load(logs, interval_bytes=WRITTEN[where].limits.index_interval_bytes)
    recovered = {
        segment_file_name(base, suffix): content
        for base, segment in loaded.segments.items()
        for suffix, content in segment.items()
    }
    # A broker writes no `.txnindex` without entries.
    recovered = {
        name: recovered[name] for name in recovered if recovered[name] or ".txnindex" not in name
    }
    assert files(outcome.recovered, where, ".log", *INDEXES) == recovered
    snapshots = files(outcome.recovered, where, ".snapshot")
    assert {int(name[:20]): set(decode_snapshot(snapshots[name])) for name in snapshots} == {
        offset: set(decode_snapshot(content)) for offset, content in loaded.snapshots.items()
    }


@EVERY
def test_recovery_finds_the_producers_that_klog_wrote(outcome: Outcome, where: Where) -> None:
    written = files(outcome.written, where, ".snapshot")
    rebuilt = files(outcome.recovered, where, ".snapshot")
    assert rebuilt.keys() == written.keys()
    for name, content in rebuilt.items():
        assert set(decode_snapshot(content)) == set(decode_snapshot(written[name])), name


@EVERY
def test_the_transaction_indexes(outcome: Outcome, where: Where) -> None:
    """The dump tool does not look at them: the rule is docs/format.md, 8.3, seen 4."""
    entries = []
    for name, content in files(outcome.written, where, ".txnindex").items():
        bases = sorted(int(log[:20]) for log in files(outcome.written, where, ".log"))
        base = int(name[:20])
        end = min((other for other in bases if other > base), default=WRITTEN[where].next_offset)
        for version, *entry in struct.iter_unpack(">hqqqq", content):
            assert version == 0
            assert base <= entry[2] < end, "an entry is not in the segment of its marker"
            entries.append(tuple(entry))
    assert entries == WRITTEN[where].aborted


def test_transactions_are_worth_an_index(outcome: Outcome) -> None:
    log = WRITTEN["written.txn", 0]
    assert len(files(outcome.written, ("written.txn", 0), ".txnindex")) > 3
    assert any(stable <= marker for _, _, marker, stable in log.aborted), "all stable at once?"
    assert {record.read_committed for record in log.records} == {True, False}


@EVERY
@pytest.mark.parametrize("level", LEVELS)
def test_klog_reads_what_producers_appended(outcome: Outcome, where: Where, level: str) -> None:
    records = of_partition(outcome.after_producers[level], where)
    expected = told_at(WRITTEN[where].records, level)
    assert records[: len(expected)] == expected
    assert len(records) == len(expected) + PRODUCED_RECORDS[level]
    assert read_partition([outcome.continued], *where, level) == records


@EVERY
def test_a_clean_start_keeps_every_file(outcome: Outcome, where: Where) -> None:
    """Closed segments keep their bytes."""
    written = files(outcome.written, where, ".log", *INDEXES)
    assert_kept(written, files(outcome.continued, where, ".log", *INDEXES))


@EVERY
def test_the_leader_epochs(outcome: Outcome, where: Where) -> None:
    """A broker keeps klog's epochs and appends its own."""
    name = f"{where[0]}-{where[1]}/leader-epoch-checkpoint"
    written = (outcome.written / name).read_text().splitlines()
    for folder in (outcome.recovered, outcome.continued):
        assert (folder / name).read_text().splitlines()[2 : len(written)] == written[2:]


@EVERY
@pytest.mark.parametrize("level", LEVELS)
def test_klog_reads_its_own(outcome: Outcome, where: Where, level: str) -> None:
    expected = told_at(WRITTEN[where].records, level)
    assert read_partition([outcome.written], *where, level) == expected
