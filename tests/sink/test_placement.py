"""Which partition rows go to: the column, else the key, else where the task's others go."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from klog.logformat.partitioner import key_partitions
from tests.sink.staging import Done, staged, topic

PARTITIONS = 5
KEYS = pa.array(["a", None, "b", "c", None, "", "a"])


def places(done: Done) -> dict[bytes, int]:
    """Give the partition of each value."""
    return {row.value or b"": p for p in range(PARTITIONS) for row in done.rows(p)}


def write(
    rows: pa.Table, partitioner: str = "murmur2", task: int = 0, birth: int = 0
) -> dict[bytes, int]:
    """Stage numbered rows and give where they went."""
    values = pa.array([str(i) for i in range(len(rows))])
    state = replace(topic(PARTITIONS), version=birth)
    options = {"partitioner": partitioner}
    return places(staged(state, rows.append_column("value", values), options, task))


def test_a_key_goes_where_kafka_puts_it() -> None:
    found = write(pa.table({"key": KEYS}))
    expected = key_partitions(KEYS, PARTITIONS).fill_null(0).to_pylist()
    assert [found[str(i).encode()] for i in range(len(KEYS))] == expected
    assert len(set(expected)) > 1


@pytest.mark.parametrize(("task", "birth", "partition"), [(0, 0, 0), (3, 0, 3), (3, 4, 2)])
def test_rows_without_a_key_stick_together(task: int, birth: int, partition: int) -> None:
    rows = pa.table({"partition": pa.nulls(4)})
    assert set(write(rows, task=task, birth=birth).values()) == {partition}
    keyed = pa.table({"key": KEYS})
    assert set(write(keyed, "sticky", task, birth).values()) == {partition}


def test_round_robin_goes_on_row_by_row() -> None:
    found = write(pa.table({"key": KEYS}), "round-robin", task=2)
    assert [found[str(i).encode()] for i in range(7)] == [2, 3, 4, 0, 1, 2, 3]


def test_the_column_wins_and_null_leaves_the_choice() -> None:
    """As with Spark's Kafka connector."""
    rows = pa.table({"key": ["a", "a", "b"], "partition": pa.array([3, None, 3], pa.int16())})
    found = write(rows)
    by_key = key_partitions(pa.array(["a"]), PARTITIONS)[0].as_py()
    assert [found[b"0"], found[b"1"], found[b"2"]] == [3, by_key, 3]
    assert by_key != 3


@settings(deadline=None)
@given(st.lists(st.integers(0, PARTITIONS - 1)), st.integers(1, 5))
def test_rows_of_a_partition_keep_their_order(partitions: list[int], cuts: int) -> None:
    rows = pa.table(
        {
            "value": pa.array([str(i) for i in range(len(partitions))], pa.string()),
            "partition": pa.array(partitions, pa.int64()),
        }
    )
    done = staged(topic(PARTITIONS), rows.to_batches(max_chunksize=cuts))
    for partition in range(PARTITIONS):
        own = np.flatnonzero(np.array(partitions, np.int64) == partition)
        assert [row.value for row in done.rows(partition)] == [str(i).encode() for i in own]


def test_many_partitions_are_told_apart() -> None:
    """More than 65,536, whose numbers do not fit into two bytes."""
    rows = pa.table({"value": ["a", "b", "c", "d"], "partition": [70_000, 4464, 70_000, 0]})
    done = staged(topic(70_001), rows)
    assert [row.value for row in done.rows(70_000)] == [b"a", b"c"]
    assert [row.value for row in done.rows(4464)] == [b"b"]
