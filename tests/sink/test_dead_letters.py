"""Rows that cannot be written: set aside with the reason, the others written, nothing lost."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from klog.connector.sink.dead_letters import DeadLetters
from klog.connector.sink.plan import WritePlan, plan_write
from klog.connector.sink.segments import Task
from klog.connector.sink.stage import stage_topics
from klog.errors import KlogError, OptionError
from klog.logformat.headers import HEADERS_TYPE
from tests.commits.logs import ROOT, CountingStore
from tests.sink.reading import Row, read_segment
from tests.sink.staging import NOW_MS, topic

DEAD = "dead"
_PREFIX = "klog.dead-letter."


def staged(
    rows: pa.RecordBatch,
    partitions: int = 2,
    *,
    one_topic: bool = True,
    aside: bool = True,
    config: Mapping[str, str] | None = None,
) -> dict[str, list[Row]]:
    """Stage rows for `orders`, or for the topics of their column; gives what each topic has."""
    store = CountingStore()
    states = {"orders": topic(partitions, **(config or {})), "bills": topic(), DEAD: topic()}

    def plan_of(name: str) -> WritePlan:
        if name not in states:
            raise OptionError(f"there is no topic {name}")
        return plan_write(name, ROOT, states[name], {}, "etl", 3)

    found = stage_topics(
        plan_of,
        Task(5, "0123456789abcdef", NOW_MS, "task 5"),
        rows,
        store,
        topic="orders" if one_topic else None,
        dead_letters=DeadLetters(DEAD, "etl/3", 5) if aside else None,
    )
    return {
        name: [
            row
            for entry in one.segments
            for row in read_segment(store.files[f"{ROOT}/{entry['file']}"], entry)
        ]
        for name, one in found.items()
    }


def said(row: Row) -> dict[str, str]:
    """What a dead letter's own headers say."""
    return {
        name.removeprefix(_PREFIX): (value or b"").decode()
        for name, value in row.headers
        if name.startswith(_PREFIX)
    }


def batch(**columns: Any) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(columns)


def times(*milliseconds: int | None) -> pa.Array:
    return pa.array(milliseconds, pa.timestamp("ms"))


def test_all_that_a_row_was_is_there() -> None:
    rows = batch(
        key=["a", "b", "c"],
        value=["1", "2", None],
        partition=[0, 7, -1],
        timestamp=times(NOW_MS, NOW_MS - 1, None),
        headers=pa.array([None, [{"key": "h", "value": b"x"}], []], HEADERS_TYPE),
    )
    found = staged(rows)
    assert [(row.key, row.value) for row in found["orders"]] == [(b"a", b"1")]
    first, second = found[DEAD]
    assert (first.key, first.value, first.headers[0]) == (b"b", b"2", ("h", b"x"))
    assert said(first) == {
        "reason": "there is no partition 7, only 0 to 1",
        "topic": "orders",
        "partition": "7",
        "timestamp": str(NOW_MS - 1),
        "writer": "etl/3",
        "row": "5/1",
        "attempt": "1",
    }
    assert (second.key, second.value) == (b"c", None)
    assert said(second)["reason"] == "there is no partition -1, only 0 to 1"
    assert "timestamp" not in said(second)


def test_each_kind_of_wrong_row_goes_aside() -> None:
    nameless = [{"key": None, "value": b"x"}]
    rows = batch(
        key=["a", None, "c", "d", "e", "f"],
        value=["1", "2", "3", "4", "5" * 900, "6"],
        timestamp=times(NOW_MS, NOW_MS, NOW_MS + 10_000, -5, NOW_MS, NOW_MS),
        headers=pa.array([None, None, None, None, None, nameless], HEADERS_TYPE),
    )
    config = {
        "cleanup_policy": "compact",
        "message_timestamp_after_max_ms": "5000",
        "max_message_bytes": "300",
        "compression_type": "uncompressed",
    }
    found = staged(rows, 1, config=config)
    assert [row.value for row in found["orders"]] == [b"1"]
    reasons = {row.value: said(row)["reason"] for row in found[DEAD]}
    expected = {
        b"2": "it has no key, which a compacted topic asks for",
        b"3": f"the timestamp, {NOW_MS + 10_000} ms, lies further after now",
        b"4": "the timestamp, -5 ms, is before 1970",
        b"5" * 900: "max.message.bytes allows 300",
        b"6": "a header without a name",
    }
    assert reasons.keys() == expected.keys()
    for value, words in expected.items():
        assert words in reasons[value]


def test_without_a_place_for_them_the_first_is_named() -> None:
    rows = batch(value=["1", "2"], partition=[0, 9])
    with pytest.raises(KlogError, match="orders: row 1 of task 5: there is no partition 9"):
        staged(rows, aside=False)


def test_a_row_goes_to_its_topic_in_its_order() -> None:
    topics = ["orders", "bills", "orders", "bills", "orders"]
    found = staged(batch(value=list("12345"), topic=topics), 1, one_topic=False)
    assert [row.value for row in found["orders"]] == [b"1", b"3", b"5"]
    assert [row.value for row in found["bills"]] == [b"2", b"4"]


@pytest.mark.parametrize(
    ("named", "reason"),
    [(None, "its topic is null"), ("nowhere", "there is no topic nowhere")],
)
def test_a_row_without_a_topic_goes_aside(named: str | None, reason: str) -> None:
    rows = batch(value=["1", "2", "3"], topic=pa.array(["bills", named, "bills"], pa.string()))
    found = staged(rows, one_topic=False)
    assert [row.value for row in found["bills"]] == [b"1", b"3"]
    (dead,) = found[DEAD]
    assert reason in said(dead)["reason"]
    assert said(dead).get("topic") == named
    assert said(dead)["row"] == "5/1"
    with pytest.raises(KlogError, match=f"row 1 of task 5: {reason}"):
        staged(rows, one_topic=False, aside=False)


def test_all_rows_without_a_topic() -> None:
    rows = batch(value=["1", "2"], topic=pa.nulls(2, pa.string()))
    assert len(staged(rows, one_topic=False)[DEAD]) == 2


def test_a_dead_letter_that_dies_again_is_counted() -> None:
    rows = batch(value=["1"], partition=[9])
    (once,) = staged(rows)[DEAD]
    headers = [[{"key": name, "value": value} for name, value in once.headers]]
    again = batch(value=["1"], partition=[9], headers=pa.array(headers, HEADERS_TYPE))
    (twice,) = staged(again)[DEAD]
    assert said(twice) == said(once) | {"attempt": "2"}
    assert len(twice.headers) == len(once.headers)


def test_what_their_topic_cannot_take_fails_the_write() -> None:
    noise = Random(1).randbytes(2_000_000)  # It does not compress below what a message may have.
    with pytest.raises(KlogError, match="dead: row 0 of task 5: the record makes a batch of"):
        staged(batch(value=[noise], partition=[9]))


@pytest.mark.parametrize(
    ("before", "attempt"),
    [
        ([b"1"], "2"),
        ([b"999999999"], "1000000000"),
        ([b"3", b"7"], "8"),
        # What klog never writes counts for nothing.
        ([b"1000000000"], "1"),
        ([b"x"], "1"),
        ([b"-1"], "1"),
        ([b""], "1"),
        ([None], "1"),
    ],
)
def test_attempts_are_counted_on_from_a_number_alone(
    before: list[bytes | None], attempt: str
) -> None:
    headers = [[(f"{_PREFIX}attempt", value) for value in before]]
    rows = batch(value=["v"], partition=[9], headers=pa.array(headers, HEADERS_TYPE))
    (row,) = staged(rows)[DEAD]
    assert said(row)["attempt"] == attempt
