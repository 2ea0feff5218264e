"""A short soak, one with a faulty producer, and the tally that tells them apart."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

from klog.cli import main
from tests.soak.lanes import Process, Target, forked, klog_producer
from tests.soak.run_soak import soak
from tests.soak.tally import Tally, tally

SEED = 7


@pytest.mark.slow
def test_nothing_is_lost_doubled_or_out_of_order(tmp_path: Path) -> None:
    done = soak(tmp_path, 15, SEED)
    assert done.tally.wrong == 0, done
    assert done.gave_up == 0, done
    assert done.tally.read >= done.tally.acknowledged > 0
    assert done.kills > 5, done
    assert done.zombies > 0, done


def careless(target: Target, lane: int, events: Path) -> Process:
    """Start a producer with another name in each life, so that its batch ids begin again at 0."""
    arguments = (
        "verifiable-producer", "--root", target.root, "--topic", target.topic, "--value-prefix",
        str(lane), "--throughput", "100", "--batch-messages", "10",
        "--transactional-id", events.name,
    )  # fmt: skip
    return forked(main, arguments, events=events)


@pytest.mark.slow
def test_a_careless_producer_shows(tmp_path: Path) -> None:
    """On a busy machine most lives end before their first commit: then a longer soak decides."""
    producers = [careless, klog_producer]
    result = soak(tmp_path / "short", 8, SEED, producers, consumers=1)
    if not result.tally.doubled:
        result = soak(tmp_path / "long", 40, SEED, producers, consumers=1)
    assert result.tally.doubled > 0, result
    assert result.tally.lost == result.tally.misread == result.tally.unread == 0, result


LOG = [(0, 0, "0.0"), (0, 1, "0.2"), (1, 0, "0.1"), (1, 1, "1.0")]


def count_records(
    tmp_path: Path,
    log: list[tuple[int, int, str]],
    acks: list[tuple[int, int | None, str]],
    read: list[list[list[tuple[int, int, str]]]],
) -> Tally:
    """Count records as (partition, offset, value): `acks` are acknowledged, `read` is by lives."""
    partitions, offsets, values = zip(*log, strict=True)
    table = pa.table({"partition": partitions, "offset": offsets, "value": values})
    lives = [
        [write_events(tmp_path, "record_data", life) for life in consumer] for consumer in read
    ]
    return tally(table, [write_events(tmp_path, "producer_send_success", acks)], lives)


def write_events(
    tmp_path: Path,
    name: str,
    records: list[tuple[int, int, str]] | list[tuple[int, int | None, str]],
) -> Path:
    path = tmp_path / f"{len(list(tmp_path.iterdir()))}.json"
    lines = [
        json.dumps({"name": name, "partition": partition, "offset": offset, "value": value})
        for partition, offset, value in records
    ]
    path.write_text("".join(f"{line}\n" for line in [*lines, '{"name": "tool_data"}']) + '{"na')
    return path


def test_a_complete_log_has_no_errors(tmp_path: Path) -> None:
    result = count_records(tmp_path, LOG, [*LOG[:2], (1, None, "0.1")], [[LOG], [LOG[:2], LOG[1:]]])
    assert result == Tally(acknowledged=3, read=4)
    assert result.wrong == 0


@pytest.mark.parametrize(
    ("log", "acks", "read", "wrong"),
    [
        (LOG, [(0, 2, "0.3")], LOG, {"lost": 1, "moved": 1}),
        (LOG, [(0, 1, "0.0")], LOG, {"moved": 1}),
        ([*LOG, (1, 2, "0.2")], LOG, [*LOG, (1, 2, "0.2")], {"doubled": 1}),
        ([*LOG, (1, 2, "1.3")], LOG, [*LOG, (1, 2, "1.3")], {"missing": 2}),
        ([(0, 0, "0.1"), (0, 1, "0.0")], [], [(0, 0, "0.1"), (0, 1, "0.0")], {"reordered": 1}),
        (LOG, LOG, LOG[:3], {"unread": 1}),
        (LOG, LOG, [*LOG, (1, 2, "9.9")], {"misread": 1}),
        (LOG, LOG, [*LOG[:3], (1, 1, "1.1")], {"misread": 1}),
        (LOG, LOG, [LOG[1], LOG[0], *LOG[2:]], {"skipped": 1}),
    ],
)
def test_errors_are_counted(
    tmp_path: Path,
    log: list[tuple[int, int, str]],
    acks: list[tuple[int, int | None, str]],
    read: list[tuple[int, int, str]],
    wrong: dict[str, int],
) -> None:
    result = count_records(tmp_path, log, acks, [[read]])
    acknowledged = len({value for _, _, value in acks})
    assert result == Tally(acknowledged=acknowledged, read=len(log), **wrong)
    assert result.wrong == sum(wrong.values())
