"""What klog writes, put before Kafka's own tools: dump tool, broker, Java consumer and producers.

The rule: one broker, one Java process. Its topics are made first, so that their ids are known; then
klog's directories take the place of its empty ones, once as after a kill and once as after a clean
stop, and producers go on behind them. Numbers are lines of `kafka-seen.md`.
"""

from __future__ import annotations

import re
import shutil
import struct
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from klog.logformat.metadata import decode_partition_metadata, encode_partition_metadata
from klog.logformat.names import segment_name
from klog.logformat.partition import load
from klog.logformat.snapshot import decode_snapshot
from tests.broker import Broker, kafka_tool_output
from tests.corpus import Record, damage
from tests.corpus.clients import Client, numbered
from tests.java import JavaProducer, consume, java_process
from tests.kafka.written import COORDINATOR_EPOCH
from tests.kafka.written_topics import config_of, write_all
from tests.reading import LEVELS, read_partition, told_at

pytestmark = pytest.mark.kafka

# Nothing is cleaned or expired while it is looked at.
PROPERTIES = {"log.retention.ms": "-1"}
WRITTEN = write_all(time.time_ns() // 1_000_000)
EVERY = pytest.mark.parametrize("where", WRITTEN, ids=lambda where: f"{where[0]}-{where[1]}")
INDEXES = (".index", ".timeindex", ".txnindex")
Where = tuple[str, int]
Accounts = dict[str, list[Record]]


@dataclass(frozen=True, slots=True)
class Judged:
    """Log dirs as klog wrote them and as the broker left them, and what consumers were given."""

    written: Path
    recovered: Path  # after a start that recovers everything
    continued: Path  # after a start that trusts everything, and producers
    after_recovery: Accounts  # by isolation level
    before_producers: Accounts
    after_producers: Accounts


def files(folder: Path, where: Where, *suffixes: str) -> dict[str, bytes]:
    """Give the files of a partition that end with one of the suffixes."""
    directory = folder / f"{where[0]}-{where[1]}"
    return {
        path.name: path.read_bytes()
        for path in sorted(directory.iterdir())
        if path.suffix in suffixes
    }


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Judged]:
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
        after_recovery = _consumed(gateway, broker)
        broker.stop()
        shutil.copytree(log_dir, work / "recovered")
        _mount(work / "written", log_dir)
        broker.start()
        before = _consumed(gateway, broker)
        _produce(gateway, broker)
        after = _consumed(gateway, broker)
        broker.stop()
        yield Judged(work / "written", work / "recovered", log_dir, after_recovery, before, after)


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


def _consumed(gateway: Any, broker: Broker) -> Accounts:
    return {level: consume(gateway, broker.bootstrap, WRITTEN, level)[1] for level in LEVELS}


def _produce(gateway: Any, broker: Broker) -> None:
    """Go on behind every partition: idempotent, committed, aborted."""
    plain = JavaProducer(gateway, broker.bootstrap, enable_idempotence="true", acks="all",
                         compression_type="lz4")  # fmt: skip
    both = JavaProducer(gateway, broker.bootstrap, transactional_id="behind klog")
    both.java.initTransactions()
    for topic, partition in WRITTEN:
        plain.batch(topic, partition, numbered(3))
    for commit in (True, False, True):
        both.java.beginTransaction()
        for topic, partition in WRITTEN:
            both.batch(topic, partition, numbered(2, 10))
        if commit:
            both.java.commitTransaction()
        else:
            both.java.abortTransaction()
    for topic, partition in WRITTEN:
        plain.batch(topic, partition, numbered(2, 20))
    plain.close()
    both.close()


def of(records: list[Record], where: Where) -> list[Record]:
    return [one for one in records if (one.topic, one.partition) == where]


@EVERY
@pytest.mark.parametrize("level", LEVELS)
def test_the_java_consumer_reads_what_was_written(judged: Judged, where: Where, level: str) -> None:
    wanted = told_at(WRITTEN[where].records, level)
    assert wanted
    assert of(judged.before_producers[level], where) == wanted
    assert of(judged.after_recovery[level], where) == wanted


@EVERY
def test_recovery_truncates_no_byte(judged: Judged, where: Where) -> None:
    logs = files(judged.written, where, ".log")
    assert len(logs) > 1, "one segment shows little"
    assert files(judged.recovered, where, ".log") == logs


@EVERY
def test_recovery_makes_the_indexes_that_klog_wrote(judged: Judged, where: Where) -> None:
    rebuilt = files(judged.recovered, where, *INDEXES)
    written = files(judged.written, where, *INDEXES)
    if all(len(append) == 1 for append in WRITTEN[where].appends):
        assert rebuilt == written
    else:
        # An append of many batches has one entry at most; recovery no longer knows of appends.
        assert {name: rebuilt[name] for name in rebuilt if ".index" in name} != {
            name: written[name] for name in written if ".index" in name
        }


@EVERY
def test_klog_recovers_what_the_broker_recovered(judged: Judged, where: Where) -> None:
    logs = files(judged.written, where, ".log")
    loaded = load(logs, interval_bytes=WRITTEN[where].limits.index_interval_bytes)
    made = {
        segment_name(base, suffix): content
        for base, segment in loaded.segments.items()
        for suffix, content in segment.items()
    }
    # A broker makes no file for an index of aborted transactions without any.
    made = {name: made[name] for name in made if made[name] or ".txnindex" not in name}
    assert files(judged.recovered, where, ".log", *INDEXES) == made
    snapshots = files(judged.recovered, where, ".snapshot")
    assert {int(name[:20]): set(decode_snapshot(snapshots[name])) for name in snapshots} == {
        offset: set(decode_snapshot(content)) for offset, content in loaded.snapshots.items()
    }


@EVERY
def test_recovery_finds_the_producers_that_klog_wrote(judged: Judged, where: Where) -> None:
    written = files(judged.written, where, ".snapshot")
    rebuilt = files(judged.recovered, where, ".snapshot")
    assert rebuilt.keys() == written.keys()
    for name, content in rebuilt.items():
        assert set(decode_snapshot(content)) == set(decode_snapshot(written[name])), name


@EVERY
def test_the_transaction_indexes(judged: Judged, where: Where) -> None:
    """The dump tool does not look at them: the rule is that of line 4."""
    found = []
    for name, content in files(judged.written, where, ".txnindex").items():
        bases = sorted(int(log[:20]) for log in files(judged.written, where, ".log"))
        base = int(name[:20])
        behind = min((one for one in bases if one > base), default=WRITTEN[where].next_offset)
        for version, *entry in struct.iter_unpack(">hqqqq", content):
            assert version == 0
            assert base <= entry[2] < behind, "an entry lies beside its marker"
            found.append(tuple(entry))
    assert found == WRITTEN[where].aborted


def test_transactions_are_worth_an_index(judged: Judged) -> None:
    log = WRITTEN["written.txn", 0]
    assert len(files(judged.written, ("written.txn", 0), ".txnindex")) > 3
    assert any(stable <= marker for _, _, marker, stable in log.aborted), "all stable at once?"
    assert {one.read_committed for one in log.records} == {True, False}


@EVERY
@pytest.mark.parametrize("level", LEVELS)
def test_klog_reads_what_producers_wrote_behind_it(
    judged: Judged, where: Where, level: str
) -> None:
    consumed = of(judged.after_producers[level], where)
    wanted = told_at(WRITTEN[where].records, level)
    behind = {"read_uncommitted": 3 + 3 * 2 + 2, "read_committed": 3 + 2 * 2 + 2}[level]
    assert consumed[: len(wanted)] == wanted
    assert len(consumed) == len(wanted) + behind
    assert read_partition([judged.continued], *where, level) == consumed


@EVERY
def test_a_clean_start_keeps_every_file(judged: Judged, where: Where) -> None:
    """Closed segments to the byte; the active one is written to, which begins with what it had."""
    kept = files(judged.continued, where, ".log", *INDEXES)
    written = files(judged.written, where, ".log", *INDEXES)
    active = max(name[:20] for name in written)
    for name, content in written.items():
        if name.startswith(active):
            # The last entry of a time index is that of the clean stop.
            assert kept[name].startswith(content), name
        else:
            assert kept[name] == content, name


@EVERY
def test_the_leader_epochs(judged: Judged, where: Where) -> None:
    """A broker keeps what it is given and adds its own epoch behind it."""
    name = f"{where[0]}-{where[1]}/leader-epoch-checkpoint"
    written = (judged.written / name).read_text().splitlines()
    for folder in (judged.recovered, judged.continued):
        assert (folder / name).read_text().splitlines()[2 : len(written)] == written[2:]


@EVERY
@pytest.mark.parametrize("level", LEVELS)
def test_klog_reads_its_own(judged: Judged, where: Where, level: str) -> None:
    wanted = told_at(WRITTEN[where].records, level)
    assert read_partition([judged.written], *where, level) == wanted


DUMPED = re.compile(r"^Dumping (\S+)$", re.MULTILINE)
RECORD = re.compile(
    r"^\| offset: (\d+) (CreateTime|LogAppendTime): (-?\d+) keySize: (-?\d+) valueSize: (-?\d+)"
    r".*?(?: endTxnMarker: (\w+) coordinatorEpoch: (\d+))?$",
    re.MULTILINE,
)
FAULTS = re.compile("isvalid: false|Found|[Ii]nvalid|not found|out of order")


def dumped(paths: list[Path], *options: str) -> tuple[dict[Path, str], str]:
    """Run the dump tool over files; give what it said of each, and what it complains of at last.

    It names mismatches only on standard error, and ends with success all the same.
    """
    given = ",".join(map(str, paths))
    said, told = kafka_tool_output("kafka.tools.DumpLogSegments", *options, "--files", given)
    _, *parts = DUMPED.split(said)
    complaints = [line for line in told.splitlines() if not line.startswith(("SLF4J", "WARNING"))]
    found = {Path(parts[i]): parts[i + 1] for i in range(0, len(parts), 2)}
    return found, "\n".join([*complaints, *FAULTS.findall(said)])


def checked(paths: list[Path], *options: str) -> dict[Path, str]:
    """Run it and see that it came to the end of the list and found nothing."""
    found, complaints = dumped(paths, *options)
    assert complaints == ""
    assert sorted(found) == sorted(paths), "the tool stops at the first file it cannot read"
    return found


def written_files(judged: Judged, *suffixes: str, but: str = "") -> list[Path]:
    every = judged.written.glob("*/*")
    return sorted(path for path in every if path.suffix in suffixes and path.parent.name != but)


GAPS, GROUPED = "written.gaps-0", "written.grouped-0"


def test_the_dump_tool_finds_every_record_and_no_fault(judged: Judged) -> None:
    found = checked(written_files(judged, ".log", but=GAPS), "--deep-iteration")
    gaps, complaints = dumped(sorted((judged.written / GAPS).glob("*.log")), "--deep-iteration")
    # It misses the offsets that have no record, as it does in any log that a broker has cleaned.
    offsets = re.compile(r"Non-consecutive offsets in \S+|  \d+ is followed by \d+")
    assert [line for line in complaints.splitlines() if not offsets.fullmatch(line)] == []
    found |= gaps
    for where, log in WRITTEN.items():
        name = f"{where[0]}-{where[1]}"
        text = "".join(text for path, text in found.items() if path.parent.name == name)
        assert text.count("baseOffset: ") == sum(len(append) for append in log.appends)
        told = RECORD.findall(text)
        data = [one[:5] for one in told if not one[5]]
        assert data == [_as_dumped(one) for one in log.records]
        markers = {int(offset): kind for offset, *_, kind, _ in told if kind}
        assert markers == log.markers
        assert {epoch for *_, epoch in told} <= {"", str(COORDINATOR_EPOCH)}


def _as_dumped(one: Record) -> tuple[str, ...]:
    def size(content: Any) -> str:
        return "-1" if content is None else str(len(content))

    kind = ("CreateTime", "LogAppendTime")[one.timestamp_type]
    return (str(one.offset), kind, str(one.timestamp), size(one.key), size(one.value))


@pytest.mark.parametrize("option", ["--index-sanity-check", "--verify-index-only", None])
def test_the_dump_tool_finds_no_fault_in_an_index(judged: Judged, option: str | None) -> None:
    paths = written_files(judged, ".index", ".timeindex", but=GROUPED)
    found = checked(paths, *([option] if option else []))
    if option == "--index-sanity-check":
        for path, text in found.items():
            good = "passed sanity check." if path.stat().st_size else "is empty."
            assert text.strip() == f"{path} {good}"


def test_the_dump_tool_takes_the_first_batch_of_an_append_for_all_of_it(judged: Judged) -> None:
    """So an entry of many batches, which is what a broker writes as well, looks wrong to it."""
    paths = sorted((judged.written / GROUPED).glob("*.index"))
    found, complaints = dumped(paths)
    assert complaints.startswith("Mismatches in")
    assert sorted(found) == paths


@pytest.mark.parametrize(("suffix", "position"), [(".log", 99), (".index", 3), (".timeindex", 6)])
def test_the_dump_tool_would_have_found_a_fault(
    judged: Judged, tmp_path: Path, suffix: str, position: int
) -> None:
    name = f"{0:020}{suffix}"
    shutil.copytree(judged.written / "written.txn-0", tmp_path / "hurt")
    hurt = tmp_path / "hurt" / name
    content = bytearray(hurt.read_bytes())
    content[position] ^= 1
    hurt.write_bytes(content)
    assert dumped([hurt])[1] != ""


def test_the_dump_tool_reads_snapshots_and_transaction_indexes(judged: Judged) -> None:
    for path, text in checked(written_files(judged, ".snapshot", ".txnindex")).items():
        content = path.read_bytes()
        entries = len(content) // 34 if path.suffix == ".txnindex" else (len(content) - 10) // 46
        assert text.lower().count("producerid: ") == entries, path
