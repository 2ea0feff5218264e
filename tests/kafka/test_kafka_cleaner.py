"""A real broker's log cleaner and klog's compaction leave the same batches of the same logs.

The rule: the same bytes and configs, three cleanings in a row with writes between them, each side
on its own result; then all batches are equal. Logs come from a seed (`cleaning_workloads`) or from
Java's producers; a test of its own shows each difference on purpose. Finally the broker mounts
klog's exports.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from klog.logformat.batches import record_batch as v2
from klog.logformat.batches.scan_batches import scan_batches
from klog.logformat.indexes.transaction_index import decode_aborted
from klog.logformat.producers.producer_snapshot import decode_snapshot
from klog.logformat.producers.producer_state import EXPIRATION_MS
from tests.corpus import Record, damage
from tests.kafka.cleaned_batches import Batch, broker_logs, klog_logs, producers
from tests.kafka.cleaning_differences import LEGACY, OVERDUE, RATIO, differences
from tests.kafka.cleaning_producers import PRODUCED, produce, use_transaction_version
from tests.kafka.cleaning_workloads import ROUNDS, Round, Workload
from tests.kafka.kafka_dump_tool import dumped
from tests.kafka.mounted_partitions import (
    PRODUCED_RECORDS,
    Accounts,
    Where,
    consumed,
    files,
    of_partition,
    produce_after,
)
from tests.kafka.two_cleaners import PROPERTIES, Cleaned, TwoCleaners, create_two_cleaners, exported
from tests.support.broker_loader.index_updates import aborted_entries
from tests.support.kafka_broker import Broker, log_faults
from tests.support.kafka_classes import java_process
from tests.support.reader_rows import LEVELS, read_partition

pytestmark = pytest.mark.kafka


def name(seed: int) -> str:
    """Return the name of the topic of a seed."""
    return f"made.{seed:02}"


SEEDS = range(20)
MADE = tuple(map(name, SEEDS))
TOPICS = (*MADE, *PRODUCED)
EVERY = pytest.mark.parametrize("topic", TOPICS)
NUMBERS = pytest.mark.parametrize("number", range(ROUNDS))
LOGS = (".log", ".txnindex")
AT_ONCE = {
    "cleanup.policy": "compact",
    "delete.retention.ms": "1",
    "min.cleanable.dirty.ratio": "0.0",
}


@dataclass(frozen=True, slots=True)
class Outcome:
    """Both logs after each cleaning, klog's exports as mounted, and what consumers read."""

    cleaners: TwoCleaners
    mounted: Path
    recovered: dict[str, dict[str, bytes]]
    output: str
    consumed: Accounts
    continued: Accounts

    def cleaned(self, topic: str) -> list[Cleaned]:
        """Return what remains of a topic after each cleaning."""
        return [topics[topic] for topics in self.cleaners.cleaned if topic in topics]

    def expected(self, topic: str, level: str, name: str) -> list[Record]:
        """Return the records that klog reads of its own log, under another topic name.

        The markers of the export decide what was aborted.
        """
        records = read_partition([self.mounted], exported(topic), 0, level)
        if level == "read_uncommitted":
            of_root = read_partition([Path(self.cleaners.root.location)], topic, 0, level)
            assert renamed(of_root, exported(topic)) == records
        return renamed(records, name)


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Outcome]:
    """Clean three times, consume, mount klog's exports after a kill, consume, produce, consume."""
    work = tmp_path_factory.mktemp("cleaned")
    now_ms = time.time_ns() // 1_000_000
    rounds = {
        topic: Workload(seed, now_ms).rounds() for topic, seed in zip(MADE, SEEDS, strict=True)
    }
    rounds |= {topic: [Round({}, 0, AT_ONCE)] * ROUNDS for topic in PRODUCED}
    rounds |= differences(now_ms)
    with Broker(work / "broker", PROPERTIES) as broker, java_process() as gateway:
        two_logs = create_two_cleaners(broker, work, rounds)
        for number in range(ROUNDS):
            if number:
                broker.start()
            if number == 1:
                use_transaction_version(broker, 0)
            produce(gateway, broker, number)
            broker.stop()
            two_logs.clean(number)
        mounted = two_logs.export(work)
        damage.unclean(two_logs.log_dir / "any")
        broker.start()
        exports: list[Where] = [(exported(topic), 0) for topic in TOPICS]
        consumed_records = consumed(gateway, broker, [*exports, *((topic, 0) for topic in TOPICS)])
        output = broker.output.read_text()
        recovered = {topic: files(two_logs.log_dir, (topic, 0), *LOGS) for topic, _ in exports}
        produce_after(gateway, broker, exports)
        continued = consumed(gateway, broker, exports)
        yield Outcome(two_logs, mounted, recovered, output, consumed_records, continued)


def renamed(records: Iterable[Record], topic: str) -> list[Record]:
    """Return the records under another topic name."""
    return [replace(record, topic=topic) for record in records]


@NUMBERS
@EVERY
def test_the_same_batches_remain(outcome: Outcome, topic: str, number: int) -> None:
    cleaning = outcome.cleaned(topic)[number]
    assert cleaning.broker
    assert cleaning.klog == cleaning.broker


@NUMBERS
@EVERY
def test_both_clean_or_leave_up_to_the_same_offset(
    outcome: Outcome, topic: str, number: int
) -> None:
    cleaning = outcome.cleaned(topic)[number]
    assert cleaning.klog_cleaned_to == cleaning.broker_cleaned_to
    assert cleaning.klog_start == cleaning.broker_start


@EVERY
@pytest.mark.parametrize("level", LEVELS)
def test_a_consumer_of_the_broker_reads_what_klog_reads(
    outcome: Outcome, topic: str, level: str
) -> None:
    expected = outcome.expected(topic, level, topic)
    assert expected
    assert of_partition(outcome.consumed[level], (topic, 0)) == expected


@EVERY
def test_the_broker_knows_the_producers_that_klog_replays(outcome: Outcome, topic: str) -> None:
    """Only of producers that have not expired; a log need not have the others."""
    directory = outcome.cleaners.log_dir / f"{topic}-0"
    log_end = outcome.cleaners.log_end(topic)
    known = decode_snapshot((directory / f"{log_end:020}.snapshot").read_bytes())
    oldest_ms = outcome.cleaners.windows[topic][-1].end_ms - EXPIRATION_MS
    alive = {entry.producer_id: entry for entry in known if entry.timestamp_ms > oldest_ms}
    replayed = producers(klog_logs(outcome.cleaners.root, topic), log_end, alive)
    assert replayed == {
        number: (entry.epoch, entry.last_sequence, entry.last_offset)
        for number, entry in alive.items()
    }


@EVERY
def test_the_same_transactions_are_known_to_be_aborted(outcome: Outcome, topic: str) -> None:
    """The transaction indexes name each aborted transaction that still has a batch."""
    ours = set(aborted(outcome.mounted / f"{exported(topic)}-0"))
    assert ours == set(aborted(outcome.cleaners.log_dir / f"{topic}-0"))


def aborted(directory: Path) -> Iterator[tuple[int, int]]:
    """Return producer and marker of each indexed transaction that still has a batch."""
    data: set[tuple[int, int]] = set()
    for log in broker_logs(directory).values():
        scan = scan_batches(log, 0, len(log))
        own = scan.where(scan.is_transactional_data)
        data.update(
            zip(own.headers["producer_id"].tolist(), own.base_offsets.tolist(), strict=True)
        )
    for path in directory.glob("*.txnindex"):
        for transaction in aborted_entries(decode_aborted(path.read_bytes())):
            inside = range(transaction.first_offset, transaction.last_offset)
            if any(producer == transaction.producer_id and at in inside for producer, at in data):
                yield transaction.producer_id, transaction.last_offset


def test_a_segment_that_is_partly_clean_is_dirty(outcome: Outcome) -> None:
    (cleaning,) = outcome.cleaned(RATIO)
    assert (cleaning.broker_cleaned_to, cleaning.klog_cleaned_to) == (0, 8)
    assert [batch.count for batch in cleaning.broker] == [4, 4]
    assert [batch.records for batch in cleaning.klog] == [cleaning.broker[-1].records[-1:]]


def test_any_record_can_be_overdue(outcome: Outcome) -> None:
    (cleaning,) = outcome.cleaned(OVERDUE)
    assert (cleaning.broker_cleaned_to, cleaning.klog_cleaned_to) == (0, 2)
    assert [batch.records for batch in cleaning.klog] == [cleaning.broker[1].records]


@pytest.mark.parametrize("magic", [0, 1])
def test_messages_of_old_formats_become_batches(outcome: Outcome, magic: int) -> None:
    (cleaning,) = outcome.cleaned(LEGACY[magic])
    assert cleaning.broker_cleaned_to == cleaning.klog_cleaned_to == 12
    of_broker, of_klog = (
        [record for batch in batches for record in batch.records]
        for batches in (cleaning.broker, cleaning.klog)
    )
    types = {
        batch.magic: -1 if batch.magic == 0 else 0 for batch in (*cleaning.broker, *cleaning.klog)
    }
    assert [record[2] for record in of_broker] == [0] * 4
    assert [record[2] for record in of_klog] == [types[batch.magic] for batch in cleaning.klog]
    assert [(*record[:2], *record[3:]) for record in of_klog] == [
        (*record[:2], *record[3:]) for record in of_broker
    ]
    assert [record[4] for record in of_klog] == [b"v8", b"v9", None, b"v11"]
    horizons = [None, None, 0, None]
    assert [(batch.magic, batch.horizon) for batch in cleaning.broker] == [
        (2, horizon) for horizon in horizons
    ]
    magics = [2, magic, 2, magic]
    assert [(batch.magic, batch.horizon) for batch in cleaning.klog] == [
        *zip(magics, horizons, strict=True)
    ]


def test_the_logs_show_all_that_a_cleaner_does(outcome: Outcome) -> None:
    """So that the seeds cover every rule."""
    shown: Counter[str] = Counter()
    for topic in TOPICS:
        before: list[Batch] = []
        for after in outcome.cleaned(topic):
            shown.update(observations(before, after.broker))
            before = after.broker
            shown["left"] += bool(after.report.left)
            shown["partly"] += after.broker_cleaned_to < after.broker[-1].last_offset
            shown["start moved"] += after.broker_start > 0
    assert not {kind for kind in SHOWN if not shown[kind]}


SHOWN = (
    "horizon", "marker with horizon", "tombstone", "tombstone gone", "marker gone", "emptied",
    "emptied marker", "gap", "left", "partly", "start moved",
)  # fmt: skip


def observations(before: list[Batch], after: list[Batch]) -> Iterator[str]:
    """Yield the names of what a cleaning has done or kept."""
    left = {batch.base_offset: batch for batch in after}
    for batch in after:
        is_control = bool(batch.attributes & v2.CONTROL)
        if batch.horizon is not None:
            yield "marker with horizon" if is_control else "horizon"
        if not batch.count:
            yield "emptied marker" if is_control else "emptied"
        elif batch.count < batch.last_offset - batch.base_offset + 1:
            yield "gap"
        if any(value is None for _, _, _, _, value, _ in batch.records):
            yield "tombstone"
    for batch in before:
        stayed = left.get(batch.base_offset)
        if batch.attributes & v2.CONTROL and batch.horizon is not None and stayed is None:
            yield "marker gone"
        if stayed is None and any(value is None for _, _, _, _, value, _ in batch.records):
            yield "tombstone gone"


@EVERY
def test_a_broker_truncates_nothing_of_an_export(outcome: Outcome, topic: str) -> None:
    """Recovery reads every batch, and finds the aborted transactions that klog wrote."""
    assert outcome.recovered[exported(topic)] == files(outcome.mounted, (exported(topic), 0), *LOGS)


def test_the_broker_logs_no_fault(outcome: Outcome) -> None:
    assert "Kafka Server started" in outcome.output
    assert log_faults(outcome.output) == []


@EVERY
@pytest.mark.parametrize("level", LEVELS)
def test_a_consumer_of_an_export_reads_the_same(outcome: Outcome, topic: str, level: str) -> None:
    name = exported(topic)
    expected = outcome.expected(topic, level, name)
    assert of_partition(outcome.consumed[level], (name, 0)) == expected
    records = of_partition(outcome.continued[level], (name, 0))
    assert records[: len(expected)] == expected
    assert len(records) == len(expected) + PRODUCED_RECORDS[level], "producers did not go on"


def test_the_dump_tool_finds_no_fault(outcome: Outcome) -> None:
    directories = [outcome.mounted / f"{exported(topic)}-0" for topic in TOPICS]
    paths = sorted(path for directory in directories for path in directory.iterdir())
    _, complaints = dumped([path for path in paths if path.suffix == ".log"], "--deep-iteration")
    # It misses the offsets that have no record, as it does in any log that a broker has cleaned.
    missed = re.compile(r"Non-consecutive offsets in \S+|  \d+ is followed by \d+")
    assert [line for line in complaints.splitlines() if not missed.fullmatch(line)] == []
    _, complaints = dumped([path for path in paths if path.suffix in (".index", ".timeindex")])
    # The time of a batch without records is only in its header, which the tool does not read.
    emptied = re.compile(
        r"Found timestamp mismatch in :\S+|  Index timestamp: \d+, log timestamp: -1|Found"
    )
    assert [line for line in complaints.splitlines() if not emptied.fullmatch(line)] == []
