"""What a real broker's log cleaner leaves of logs, beside what klog's compaction leaves of them.

The rule: the same bytes, the same configs, three cleanings in a row with writes between them, each
side going on from what it left itself; then batch for batch the same. Logs are made by a seed
(`cleaning_workloads`) or by Java's producers; where klog cleans otherwise on purpose, a test of its
own says so. At last the broker mounts what klog exports of it.
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
from klog.logformat.producers.transaction_outcomes import is_transactional_data
from tests.corpus import Record, damage
from tests.kafka.cleaned_batches import Batch, broker_logs, klog_logs, producers
from tests.kafka.cleaning_differences import LEGACY, OVERDUE, RATIO, differences
from tests.kafka.cleaning_producers import PRODUCED, produce, use_transactions_of
from tests.kafka.cleaning_workloads import ROUNDS, Round, Workload
from tests.kafka.kafka_dump_tool import dumped
from tests.kafka.mounted_partitions import (
    BEHIND,
    Accounts,
    Where,
    consumed,
    files,
    of,
    produce_behind,
)
from tests.kafka.two_cleaners import PROPERTIES, Cleaned, Contest, contest, exported
from tests.support.broker_loader.index_updates import aborted_entries
from tests.support.kafka_broker import Broker
from tests.support.kafka_classes import java_process
from tests.support.reader_rows import LEVELS, read_partition

pytestmark = pytest.mark.kafka


def name(seed: int) -> str:
    """Name the topic of a seed."""
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
TROUBLE = re.compile(r"(?i)truncat|corrupt|invalid|stray|recover.*fail|exception|error")


@dataclass(frozen=True, slots=True)
class Played:
    """Both logs after each cleaning, klog's exports as mounted, and what was read of either."""

    contest: Contest
    mounted: Path
    recovered: dict[str, dict[str, bytes]]
    said: str
    consumed: Accounts
    continued: Accounts

    def cleaned(self, topic: str) -> list[Cleaned]:
        """Give what each cleaning left of a topic."""
        return [one[topic] for one in self.contest.cleaned if topic in one]

    def wanted(self, topic: str, level: str, name: str) -> list[Record]:
        """Give what klog reads of its own log, as records of a topic of another name.

        What was aborted is told by the markers of the export.
        """
        found = read_partition([self.mounted], exported(topic), 0, level)
        if level == "read_uncommitted":
            of_root = read_partition([Path(self.contest.root.location)], topic, 0, level)
            assert renamed(of_root, exported(topic)) == found
        return renamed(found, name)


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Played]:
    """Clean three times, consume, mount klog's exports after a kill, consume, produce, consume."""
    work = tmp_path_factory.mktemp("cleaned")
    now_ms = time.time_ns() // 1_000_000
    rounds = {
        topic: Workload(seed, now_ms).rounds() for topic, seed in zip(MADE, SEEDS, strict=True)
    }
    rounds |= {topic: [Round({}, 0, AT_ONCE)] * ROUNDS for topic in PRODUCED}
    rounds |= differences(now_ms)
    with Broker(work / "broker", PROPERTIES) as broker, java_process() as gateway:
        made = contest(broker, work, rounds)
        for number in range(ROUNDS):
            if number:
                broker.start()
            if number == 1:
                use_transactions_of(broker, 0)
            produce(gateway, broker, number)
            broker.stop()
            made.clean(number)
        mounted = made.export(work)
        damage.unclean(made.log_dir / "any")
        broker.start()
        exports: list[Where] = [(exported(topic), 0) for topic in TOPICS]
        found = consumed(gateway, broker, [*exports, *((topic, 0) for topic in TOPICS)])
        said = broker.output.read_text()
        recovered = {topic: files(made.log_dir, (topic, 0), *LOGS) for topic, _ in exports}
        produce_behind(gateway, broker, exports)
        continued = consumed(gateway, broker, exports)
        yield Played(made, mounted, recovered, said, found, continued)


def renamed(records: Iterable[Record], topic: str) -> list[Record]:
    """Say that records are of a topic of another name."""
    return [replace(one, topic=topic) for one in records]


@NUMBERS
@EVERY
def test_the_same_batches_are_left(played: Played, topic: str, number: int) -> None:
    one = played.cleaned(topic)[number]
    assert one.broker
    assert one.klog == one.broker


@NUMBERS
@EVERY
def test_both_clean_or_leave_up_to_the_same_offset(played: Played, topic: str, number: int) -> None:
    one = played.cleaned(topic)[number]
    assert one.klog_cleaned_to == one.broker_cleaned_to
    assert one.klog_start == one.broker_start


@EVERY
@pytest.mark.parametrize("level", LEVELS)
def test_a_consumer_of_the_broker_reads_what_klog_reads(
    played: Played, topic: str, level: str
) -> None:
    wanted = played.wanted(topic, level, topic)
    assert wanted
    assert of(played.consumed[level], (topic, 0)) == wanted


@EVERY
def test_the_broker_knows_the_producers_that_klog_replays(played: Played, topic: str) -> None:
    """Of those that have not expired: of others a log need not tell."""
    directory = played.contest.log_dir / f"{topic}-0"
    log_end = played.contest.log_end(topic)
    known = decode_snapshot((directory / f"{log_end:020}.snapshot").read_bytes())
    oldest_ms = played.contest.windows[topic][-1].end_ms - EXPIRATION_MS
    alive = {one.producer_id: one for one in known if one.timestamp_ms > oldest_ms}
    found = producers(klog_logs(played.contest.root, topic), log_end, alive)
    assert found == {
        number: (one.epoch, one.last_sequence, one.last_offset) for number, one in alive.items()
    }


@EVERY
def test_the_same_transactions_are_known_to_be_aborted(played: Played, topic: str) -> None:
    """Of those that have a batch left, an index names each by its producer and its marker."""
    ours = set(aborted(played.mounted / f"{exported(topic)}-0"))
    assert ours == set(aborted(played.contest.log_dir / f"{topic}-0"))


def aborted(directory: Path) -> Iterator[tuple[int, int]]:
    """Give producer and marker of each transaction of the indexes that has a batch left."""
    data: set[tuple[int, int]] = set()
    for log in broker_logs(directory).values():
        found = scan_batches(log, 0, len(log))
        own = found.where(is_transactional_data(found))
        data.update(
            zip(own.headers["producer_id"].tolist(), own.base_offsets.tolist(), strict=True)
        )
    for path in directory.glob("*.txnindex"):
        for one in aborted_entries(decode_aborted(path.read_bytes())):
            inside = range(one.first_offset, one.last_offset)
            if any(producer == one.producer_id and at in inside for producer, at in data):
                yield one.producer_id, one.last_offset


def test_a_segment_that_is_partly_clean_is_dirty(played: Played) -> None:
    (one,) = played.cleaned(RATIO)
    assert (one.broker_cleaned_to, one.klog_cleaned_to) == (0, 8)
    assert [each.count for each in one.broker] == [4, 4]
    assert [each.records for each in one.klog] == [one.broker[-1].records[-1:]]


def test_any_record_may_be_overdue(played: Played) -> None:
    (one,) = played.cleaned(OVERDUE)
    assert (one.broker_cleaned_to, one.klog_cleaned_to) == (0, 2)
    assert [each.records for each in one.klog] == [one.broker[1].records]


@pytest.mark.parametrize("magic", [0, 1])
def test_messages_of_old_formats_become_batches(played: Played, magic: int) -> None:
    (one,) = played.cleaned(LEGACY[magic])
    assert one.broker_cleaned_to == one.klog_cleaned_to == 12
    of_broker, of_klog = (
        [record for each in some for record in each.records] for some in (one.broker, one.klog)
    )
    types = {each.magic: -1 if each.magic == 0 else 0 for each in (*one.broker, *one.klog)}
    assert [record[2] for record in of_broker] == [0] * 4
    assert [record[2] for record in of_klog] == [types[each.magic] for each in one.klog]
    assert [(*record[:2], *record[3:]) for record in of_klog] == [
        (*record[:2], *record[3:]) for record in of_broker
    ]
    assert [record[4] for record in of_klog] == [b"v8", b"v9", None, b"v11"]
    horizons = [None, None, 0, None]
    assert [(each.magic, each.horizon) for each in one.broker] == [(2, one) for one in horizons]
    magics = [2, magic, 2, magic]
    assert [(each.magic, each.horizon) for each in one.klog] == [
        *zip(magics, horizons, strict=True)
    ]


def test_the_logs_show_all_that_a_cleaner_does(played: Played) -> None:
    """So that no rule is left out by a choice of seeds."""
    shown: Counter[str] = Counter()
    for topic in TOPICS:
        before: list[Batch] = []
        for after in played.cleaned(topic):
            shown.update(what_is_shown(before, after.broker))
            before = after.broker
            shown["left"] += bool(after.report.left)
            shown["partly"] += after.broker_cleaned_to < after.broker[-1].last_offset
            shown["start moved"] += after.broker_start > 0
    assert not {kind for kind in SHOWN if not shown[kind]}


SHOWN = (
    "horizon", "marker with horizon", "tombstone", "tombstone gone", "marker gone", "emptied",
    "emptied marker", "gap", "left", "partly", "start moved",
)  # fmt: skip


def what_is_shown(before: list[Batch], after: list[Batch]) -> Iterator[str]:
    """Name what a cleaning has done, or left."""
    left = {one.base_offset: one for one in after}
    for one in after:
        is_control = bool(one.attributes & v2.CONTROL)
        if one.horizon is not None:
            yield "marker with horizon" if is_control else "horizon"
        if not one.count:
            yield "emptied marker" if is_control else "emptied"
        elif one.count < one.last_offset - one.base_offset + 1:
            yield "gap"
        if any(value is None for _, _, _, _, value, _ in one.records):
            yield "tombstone"
    for one in before:
        stayed = left.get(one.base_offset)
        if one.attributes & v2.CONTROL and one.horizon is not None and stayed is None:
            yield "marker gone"
        if stayed is None and any(value is None for _, _, _, _, value, _ in one.records):
            yield "tombstone gone"


@EVERY
def test_a_broker_truncates_nothing_of_an_export(played: Played, topic: str) -> None:
    """Recovery has seen every batch, and found the aborted transactions that klog wrote."""
    assert played.recovered[exported(topic)] == files(played.mounted, (exported(topic), 0), *LOGS)


def test_the_broker_has_nothing_to_say(played: Played) -> None:
    assert "Kafka Server started" in played.said
    assert [line for line in played.said.splitlines() if TROUBLE.search(line)] == []


@EVERY
@pytest.mark.parametrize("level", LEVELS)
def test_a_consumer_of_an_export_reads_the_same(played: Played, topic: str, level: str) -> None:
    name = exported(topic)
    wanted = played.wanted(topic, level, name)
    assert of(played.consumed[level], (name, 0)) == wanted
    found = of(played.continued[level], (name, 0))
    assert found[: len(wanted)] == wanted
    assert len(found) == len(wanted) + BEHIND[level], "producers did not go on"


def test_the_dump_tool_finds_no_fault(played: Played) -> None:
    directories = [played.mounted / f"{exported(topic)}-0" for topic in TOPICS]
    paths = sorted(path for one in directories for path in one.iterdir())
    _, complaints = dumped([one for one in paths if one.suffix == ".log"], "--deep-iteration")
    # It misses the offsets that have no record, as it does in any log that a broker has cleaned.
    missed = re.compile(r"Non-consecutive offsets in \S+|  \d+ is followed by \d+")
    assert [line for line in complaints.splitlines() if not missed.fullmatch(line)] == []
    _, complaints = dumped([one for one in paths if one.suffix in (".index", ".timeindex")])
    # The time of a batch without records is in its header alone, and there it does not look.
    emptied = re.compile(
        r"Found timestamp mismatch in :\S+|  Index timestamp: \d+, log timestamp: -1|Found"
    )
    assert [line for line in complaints.splitlines() if not emptied.fullmatch(line)] == []
