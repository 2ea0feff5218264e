"""Rejected rows become dead letters with the reason; the other rows are written."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from klog.connector.commit_log.append_commit import Writer
from klog.connector.options.write_options import WriteOptions
from klog.connector.sink.task_writer import stage_task
from klog.connector.sink.write_plan import TopicPlan, WritePlan, plan_topic
from klog.errors import KlogError, OptionError
from klog.logformat.batches.record_headers import HEADERS_TYPE
from tests.connector.commit_log.memory_logs import ROOT, CountingStore
from tests.connector.sink.staged_rows import Row, read_segment
from tests.connector.sink.staged_tasks import NOW_MS, topic_state

DEAD = "dead"
PREFIX = "klog.dead-letter."


def stage_records(
    rows: pa.RecordBatch,
    partitions: int = 2,
    *,
    is_topic_named: bool = True,
    has_dead_letters: bool = True,
    config: Mapping[str, str] | None = None,
) -> dict[str, list[Row]]:
    """Stage rows for `orders`, or for the topics of their column; return the records by topic."""
    store = CountingStore()
    states = {
        "orders": topic_state(partitions, **(config or {})),
        "bills": topic_state(),
        DEAD: topic_state(),
    }

    def topic_plan(_: WritePlan, name: str) -> TopicPlan:
        if name not in states:
            raise OptionError(f"there is no topic {name}")
        return plan_topic(name, states[name], {})

    write_options = WriteOptions(
        ROOT,
        topic="orders" if is_topic_named else None,
        dead_letter_topic=DEAD if has_dead_letters else None,
    )
    plan = WritePlan(write_options, "a write", 1, {}, {})
    writer = Writer("etl", 3, "a query", "a run")
    task = plan.task_attempt(writer, 5, 0, NOW_MS, "task 5")
    message = stage_task(plan, writer, task, rows, store, ROOT, load_plan=topic_plan)
    return {
        name: [
            row
            for entry in topic.segments
            for row in read_segment(store.files[f"{ROOT}/{entry['file']}"], entry)
        ]
        for name, topic in message.topics.items()
    }


def facts(row: Row) -> dict[str, str]:
    """Return the headers that a dead letter has besides those of its row, without their prefix."""
    return {
        name.removeprefix(PREFIX): (value or b"").decode()
        for name, value in row.headers
        if name.startswith(PREFIX)
    }


def batch(**columns: Any) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(columns)


def timestamps(*milliseconds: int | None) -> pa.Array:
    return pa.array(milliseconds, pa.timestamp("ms"))


def test_dead_letter_has_the_row_and_the_reason() -> None:
    rows = batch(
        key=["a", "b", "c"],
        value=["1", "2", None],
        partition=[0, 7, -1],
        timestamp=timestamps(NOW_MS, NOW_MS - 1, None),
        headers=pa.array([None, [{"key": "h", "value": b"x"}], []], HEADERS_TYPE),
    )
    records = stage_records(rows)
    assert [(row.key, row.value) for row in records["orders"]] == [(b"a", b"1")]
    first, second = records[DEAD]
    assert (first.key, first.value, first.headers[0]) == (b"b", b"2", ("h", b"x"))
    assert facts(first) == {
        "reason": "there is no partition 7, only 0 to 1",
        "topic": "orders",
        "partition": "7",
        "timestamp": str(NOW_MS - 1),
        "writer": "etl/3",
        "row": "5/1",
        "attempt": "1",
    }
    assert (second.key, second.value) == (b"c", None)
    assert facts(second)["reason"] == "there is no partition -1, only 0 to 1"
    assert "timestamp" not in facts(second)


def test_each_kind_of_rejected_row_is_a_dead_letter() -> None:
    nameless = [{"key": None, "value": b"x"}]
    rows = batch(
        key=["a", None, "c", "d", "e", "f"],
        value=["1", "2", "3", "4", "5" * 900, "6"],
        timestamp=timestamps(NOW_MS, NOW_MS, NOW_MS + 10_000, -5, NOW_MS, NOW_MS),
        headers=pa.array([None, None, None, None, None, nameless], HEADERS_TYPE),
    )
    config = {
        "cleanup_policy": "compact",
        "message_timestamp_after_max_ms": "5000",
        "max_message_bytes": "300",
        "compression_type": "uncompressed",
    }
    records = stage_records(rows, 1, config=config)
    assert [row.value for row in records["orders"]] == [b"1"]
    reasons = {row.value: facts(row)["reason"] for row in records[DEAD]}
    expected = {
        b"2": "it has no key, which a compacted topic needs",
        b"3": f"the timestamp, {NOW_MS + 10_000} ms, lies further after now",
        b"4": "the timestamp, -5 ms, is before 1970",
        b"5" * 900: "max.message.bytes allows 300",
        b"6": "a header without a key",
    }
    assert reasons.keys() == expected.keys()
    for value, reason in expected.items():
        assert reason in reasons[value]


def test_without_a_dead_letter_topic_the_first_rejected_row_is_named() -> None:
    rows = batch(value=["1", "2"], partition=[0, 9])
    with pytest.raises(KlogError, match="orders: row 1 of task 5: there is no partition 9"):
        stage_records(rows, has_dead_letters=False)


def test_rows_keep_their_order_in_their_topics() -> None:
    topics = ["orders", "bills", "orders", "bills", "orders"]
    records = stage_records(batch(value=list("12345"), topic=topics), 1, is_topic_named=False)
    assert [row.value for row in records["orders"]] == [b"1", b"3", b"5"]
    assert [row.value for row in records["bills"]] == [b"2", b"4"]


@pytest.mark.parametrize(
    ("named", "reason"),
    [(None, "its topic is null"), ("nowhere", "there is no topic nowhere")],
)
def test_row_without_a_topic_is_a_dead_letter(named: str | None, reason: str) -> None:
    rows = batch(value=["1", "2", "3"], topic=pa.array(["bills", named, "bills"], pa.string()))
    records = stage_records(rows, is_topic_named=False)
    assert [row.value for row in records["bills"]] == [b"1", b"3"]
    (dead,) = records[DEAD]
    assert reason in facts(dead)["reason"]
    assert facts(dead).get("topic") == named
    assert facts(dead)["row"] == "5/1"
    with pytest.raises(KlogError, match=f"row 1 of task 5: {reason}"):
        stage_records(rows, is_topic_named=False, has_dead_letters=False)


def test_rows_may_all_be_without_a_topic() -> None:
    rows = batch(value=["1", "2"], topic=pa.nulls(2, pa.string()))
    assert len(stage_records(rows, is_topic_named=False)[DEAD]) == 2


def test_rejected_dead_letter_counts_its_attempts() -> None:
    rows = batch(value=["1"], partition=[9])
    (first,) = stage_records(rows)[DEAD]
    headers = [[{"key": name, "value": value} for name, value in first.headers]]
    again = batch(value=["1"], partition=[9], headers=pa.array(headers, HEADERS_TYPE))
    (second,) = stage_records(again)[DEAD]
    assert facts(second) == facts(first) | {"attempt": "2"}
    assert len(second.headers) == len(first.headers)


def test_dead_letter_that_its_topic_rejects_fails_the_write() -> None:
    noise = Random(1).randbytes(2_000_000)  # It does not compress below max.message.bytes.
    with pytest.raises(KlogError, match="dead: row 0 of task 5: the record makes a batch of"):
        stage_records(batch(value=[noise], partition=[9]))


@pytest.mark.parametrize(
    ("earlier", "attempt"),
    [
        ([b"1"], "2"),
        ([b"999999999"], "1000000000"),
        ([b"3", b"7"], "8"),
        # klog never writes these, so they do not count.
        ([b"1000000000"], "1"),
        ([b"x"], "1"),
        ([b"-1"], "1"),
        ([b""], "1"),
        ([None], "1"),
    ],
)
def test_attempt_header_that_is_no_number_counts_as_none(
    earlier: list[bytes | None], attempt: str
) -> None:
    headers = [[(f"{PREFIX}attempt", value) for value in earlier]]
    rows = batch(value=["v"], partition=[9], headers=pa.array(headers, HEADERS_TYPE))
    (row,) = stage_records(rows)[DEAD]
    assert facts(row)["attempt"] == attempt
