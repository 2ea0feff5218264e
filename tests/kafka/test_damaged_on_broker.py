"""Damaged logs on a real broker and in klog: what a consumer reads, and what klog reads.

The rule: the broker mounts a copy under a topic that it created, klog reads a copy of the same
bytes, and a row says where klog differs on purpose. Each start of the broker recovers all
copies at once, one start after a kill and one after a clean stop. Numbers are rows of
docs/format.md, 19.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, TopicPartition

from klog.errors import CorruptFileError
from tests.connector.log_dirs import open_log
from tests.corpus import crash_files, damage, scene
from tests.corpus.clients import Client
from tests.corpus.damage import Spot
from tests.damage.damage_cases import (
    LEVELS,
    Case,
    Levels,
    Refused,
    below,
    check_refused,
    read,
    read_both,
    replaced,
    stable_below,
    truth,
    whole,
    without,
)
from tests.damage.damage_kinds import KILLED, SEGMENTS, flip, later_scene, zero
from tests.damage.damage_tables import COMPACTED, ROLLED
from tests.support.kafka_broker import Broker
from tests.support.waiting import TIMEOUT_SECONDS

pytestmark = pytest.mark.kafka

# Nothing is cleaned or expired during the tests.
PROPERTIES = {"log.retention.ms": "-1", "log.roll.ms": str((1 << 63) - 1)}


KILLED_CASES = [
    Case("none", *SEGMENTS, lambda directory: None, whole),
    Case("25 in the middle", *SEGMENTS, partial(damage.flip_bit, segment=2), Refused("CRC-32C")),
    Case("25 torn in the middle", *SEGMENTS, damage.tear_inside, Refused()),
    Case("30 last batch flipped", *KILLED, flip(-1, -1), below),
    Case("30 last batch zeros", *KILLED, zero(-1, -1), below),
    Case("30 zeros", *KILLED, damage.append_zeros, whole),
    Case("30 garbage", *KILLED, damage.append_invalid_bytes, whole),
    Case("30 open transactions, garbage", "killed", "killed.txn",
         damage.append_invalid_bytes, whole),
    Case("30 last batch torn", *KILLED, partial(damage.tear_last_batch, kept_bytes=99), below),
    Case("30 last marker torn", "transactions", "txn.fenced",
         partial(damage.tear_last_batch, kept_bytes=60), stable_below(6)),
    Case("29 last marker lost", "transactions", "txn.aborted", damage.lose_marker,
         stable_below(10)),
    Case("30 first batch torn", *KILLED, damage.tear_first_batch, below),
    *ROLLED,
    Case("30 swap", *COMPACTED,
         lambda d: crash_files.leave_swap(d, later_scene("compacted-after", "compacted"), 54),
         replaced("compacted-after", "compacted", 54, 107)),
    Case("30 swap of several into one", "compacted-after", "compacted.txn",
         lambda d: crash_files.leave_swap(d, later_scene("compacted-again", "compacted.txn"), 0),
         replaced("compacted-again", "compacted.txn", 0, 176)),
    Case("30 swap, half renamed", "compacted-before", "compacted.txn",
         lambda d: crash_files.leave_renamed_swap(
             d, later_scene("compacted-after", "compacted.txn"), 0),
         replaced("compacted-after", "compacted.txn", 0, 36)),
    Case("30 swap above cleaned", *COMPACTED,
         lambda d: (crash_files.leave_swap(d, later_scene("compacted-after", "compacted"), 54),
                    crash_files.leave_cleaned(d)), whole),
    Case("30 swap below cleaned", *COMPACTED,
         lambda d: (crash_files.leave_swap(d, later_scene("compacted-after", "compacted"), 0),
                    crash_files.leave_cleaned(d, 1)),
         replaced("compacted-after", "compacted", 0, 53)),
    Case("30 deleted", *SEGMENTS, crash_files.leave_deleted, whole),
    Case("30 cleaned", *COMPACTED, crash_files.leave_cleaned, whole),
    Case("30 strangers", *SEGMENTS, crash_files.add_strangers, whole),
    Case("30 middle segment lost", *SEGMENTS, damage.lose_segment, without(40, 79)),
    Case("28 index past the end", *KILLED, damage.point_index_past_end, whole),
    Case("27 txnindex removed", "transactions", "txn.interleaved", damage.remove_txnindex, whole),
    Case("27 txnindex falsified", "killed", "killed.txn", damage.falsify_txnindex, whole, 1),
]  # fmt: skip

# After a clean stop a broker trusts the files: here it is wrong, and klog is right.
CLEAN_CASES = [
    Case("none", *SEGMENTS, lambda directory: None, whole),
    Case("27 txnindex removed", "transactions", "txn.aborted", damage.remove_txnindex, whole),
    Case("28 index past the end", *SEGMENTS, damage.point_index_past_end, whole),
    Case("30 deleted", *SEGMENTS, crash_files.leave_deleted, whole),
    Case("30 swap", *COMPACTED,
         lambda d: crash_files.leave_swap(d, later_scene("compacted-after", "compacted"), 54),
         replaced("compacted-after", "compacted", 54, 107)),
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Mounted:
    """Each case: klog's copy, the damaged spot, and the offsets that a consumer of the broker read.

    `log_ends` are the log ends that the broker reports.
    """

    directories: dict[str, Path]
    spots: dict[str, Spot]
    offsets: dict[str, Levels]
    log_ends: dict[str, int]


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("damaged")


@pytest.fixture(scope="module")
def broker(work: Path) -> Iterator[Broker]:
    """A broker that knows a topic for each case and has stopped."""
    with Broker(work / "broker", PROPERTIES) as broker:
        client = Client(broker)
        for number in range(len(KILLED_CASES)):
            client.create(f"killed.{number}", "")
        for number in range(len(CLEAN_CASES)):
            client.create(f"clean.{number}", "")
        broker.stop()
        yield broker


@pytest.fixture(scope="module")
def clean(work: Path, broker: Broker) -> Mounted:
    return _mount(broker, work / "after-clean", "clean", CLEAN_CASES)


@pytest.fixture(scope="module")
def killed(work: Path, broker: Broker, clean: Mounted) -> Mounted:
    """Mounted after `clean`: one log dir, one broker at a time."""
    return _mount(broker, work / "after-kill", "killed", KILLED_CASES)


def _mount(broker: Broker, copy: Path, prefix: str, cases: list[Case]) -> Mounted:
    """Replace the broker's empty logs with damaged ones, copy all, and consume them."""
    log_dir = broker.log_dirs[0]
    spots = {}
    for number, case in enumerate(cases):
        directory = log_dir / f"{prefix}.{number}-0"
        own_id = (directory / "partition.metadata").read_bytes()
        shutil.rmtree(directory)
        shutil.copytree(scene(case.scene).partition_dir(case.topic, case.partition), directory)
        (directory / "partition.metadata").write_bytes(own_id)
        spot = case.hurt(directory)
        moved = spot if isinstance(spot, Spot) else Spot(directory, 0, 0)
        spots[case.name] = Spot(
            copy / moved.file.relative_to(log_dir), moved.position, moved.offset
        )
    if prefix == "killed":
        damage.unclean(log_dir / f"{prefix}.0-0")
    shutil.copytree(log_dir, copy)
    broker.start()
    topics = {case.name: f"{prefix}.{number}" for number, case in enumerate(cases)}
    consumed = {level: _consumed(broker, list(topics.values()), level) for level in LEVELS}
    offsets = {
        name: {level: consumed[level][topic] for level in LEVELS} for name, topic in topics.items()
    }
    log_ends = {name: _log_end(broker, topic) for name, topic in topics.items()}
    broker.stop()
    directories = {name: copy / f"{topic}-0" for name, topic in topics.items()}
    return Mounted(directories, spots, offsets, log_ends)


def _log_end(broker: Broker, topic: str) -> int:
    settings = {"group.id": "none", "isolation.level": "read_uncommitted"}
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, **settings})
    try:
        _, end = consumer.get_watermark_offsets(TopicPartition(topic, 0), TIMEOUT_SECONDS)
    finally:
        consumer.close()
    return int(end)


def _consumed(broker: Broker, topics: list[str], level: str) -> dict[str, list[int]]:
    """Return the offsets that a consumer reads of each topic from the log's start to its end."""
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": "none",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "check.crcs": True,
            "isolation.level": level,
            "log_level": 0,
        }
    )
    consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING) for topic in topics])
    offsets: dict[str, list[int]] = {topic: [] for topic in topics}
    waiting = set(topics)
    try:
        while waiting:
            message = consumer.poll(TIMEOUT_SECONDS)
            assert message is not None, f"nothing came from {waiting}"
            error, topic = message.error(), message.topic() or ""
            if error is None:
                offsets[topic].append(message.offset() or 0)
            elif error.code() == KafkaError._PARTITION_EOF:
                waiting.discard(topic)
            else:
                raise AssertionError(f"{topic}: {error}")
    finally:
        consumer.close()
    return offsets


def each_case(cases: list[Case]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("case", cases, ids=lambda case: case.name.replace(" ", "-"))


@each_case([case for case in KILLED_CASES if not isinstance(case.expected, Refused)])
def test_klog_answers_as_a_broker_that_recovered(case: Case, killed: Mounted) -> None:
    assert not isinstance(case.expected, Refused)
    expected = case.expected(truth(case.scene, case.topic, case.partition), killed.spots[case.name])
    assert killed.offsets[case.name] == expected
    assert read_both(killed.directories[case.name]) == expected
    directory = killed.directories[case.name]
    log = open_log(directory.parent, directory.name.removesuffix("-0"))
    assert log.log_end == killed.log_ends[case.name]


@each_case([case for case in KILLED_CASES if isinstance(case.expected, Refused)])
def test_klog_refuses_where_a_broker_drops_what_follows(case: Case, killed: Mounted) -> None:
    assert isinstance(case.expected, Refused)
    spot, directory = killed.spots[case.name], killed.directories[case.name]
    before = truth(case.scene, case.topic, case.partition)
    assert killed.offsets[case.name] == below(before, spot)
    assert len(before[LEVELS[0]]) > len(below(before, spot)[LEVELS[0]]) + 40
    for level in LEVELS:
        with pytest.raises(CorruptFileError) as caught:
            read(directory, level)
        check_refused(caught.value, directory, spot, case.expected.words)


@each_case([case for case in CLEAN_CASES if case.name[:2] not in ("27", "28")])
def test_klog_answers_as_a_broker_after_a_clean_stop(case: Case, clean: Mounted) -> None:
    assert not isinstance(case.expected, Refused)
    expected = case.expected(truth(case.scene, case.topic), clean.spots[case.name])
    assert clean.offsets[case.name] == expected
    assert read_both(clean.directories[case.name]) == expected


@each_case([case for case in CLEAN_CASES if case.name[:2] in ("27", "28")])
def test_klog_is_right_where_a_broker_is_wrong(case: Case, clean: Mounted) -> None:
    assert read_both(clean.directories[case.name]) == truth(case.scene, case.topic)
    assert clean.offsets[case.name] != truth(case.scene, case.topic), "a broker that is right?"
