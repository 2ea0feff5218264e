"""A row goes to its partition, else by its key, else to the task's sticky partition."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from klog.logformat.partitioner import key_partitions
from tests.connector.sink.staged_tasks import StagedTask, stage_rows, topic_state

PARTITIONS = 5
KEYS = pa.array(["a", None, "b", "c", None, "", "a"])


def partition_by_value(task: StagedTask) -> dict[bytes, int]:
    return {
        row.value or b"": partition
        for partition in range(PARTITIONS)
        for row in task.rows(partition)
    }


def write(
    rows: pa.Table, partitioner: str = "murmur2", index: int = 0, base_version: int = 0
) -> dict[bytes, int]:
    """Stage numbered rows; return the partition of each value."""
    values = pa.array([str(i) for i in range(len(rows))])
    state = replace(topic_state(PARTITIONS), version=base_version)
    options = {"partitioner": partitioner}
    return partition_by_value(
        stage_rows(state, rows.append_column("value", values), options, index)
    )


def test_key_goes_to_kafkas_partition() -> None:
    partitions = write(pa.table({"key": KEYS}))
    expected = key_partitions(KEYS, PARTITIONS).fill_null(0).to_pylist()
    assert [partitions[str(i).encode()] for i in range(len(KEYS))] == expected
    assert len(set(expected)) > 1


@pytest.mark.parametrize(("index", "base_version", "partition"), [(0, 0, 0), (3, 0, 3), (3, 4, 2)])
def test_rows_without_a_key_go_to_the_sticky_partition(
    index: int, base_version: int, partition: int
) -> None:
    rows = pa.table({"partition": pa.nulls(4)})
    assert set(write(rows, index=index, base_version=base_version).values()) == {partition}
    keyed = pa.table({"key": KEYS})
    assert set(write(keyed, "sticky", index, base_version).values()) == {partition}


def test_round_robin_moves_on_row_by_row() -> None:
    partitions = write(pa.table({"key": KEYS}), "round-robin", index=2)
    assert [partitions[str(i).encode()] for i in range(7)] == [2, 3, 4, 0, 1, 2, 3]


def test_partition_column_wins_and_null_leaves_it_to_the_partitioner() -> None:
    """As with Spark's Kafka connector."""
    rows = pa.table({"key": ["a", "a", "b"], "partition": pa.array([3, None, 3], pa.int16())})
    partitions = write(rows)
    by_key = key_partitions(pa.array(["a"]), PARTITIONS)[0].as_py()
    assert [partitions[b"0"], partitions[b"1"], partitions[b"2"]] == [3, by_key, 3]
    assert by_key != 3


@settings(deadline=None)
@given(st.lists(st.integers(0, PARTITIONS - 1)), st.integers(1, 5))
def test_rows_of_a_partition_keep_their_order(partitions: list[int], chunk_rows: int) -> None:
    rows = pa.table(
        {
            "value": pa.array([str(i) for i in range(len(partitions))], pa.string()),
            "partition": pa.array(partitions, pa.int64()),
        }
    )
    task = stage_rows(topic_state(PARTITIONS), rows.to_batches(max_chunksize=chunk_rows))
    for partition in range(PARTITIONS):
        indices = np.flatnonzero(np.array(partitions, np.int64) == partition)
        assert [row.value for row in task.rows(partition)] == [str(i).encode() for i in indices]


def test_more_than_65536_partitions_are_kept_apart() -> None:
    """Their numbers do not fit into two bytes."""
    rows = pa.table({"value": ["a", "b", "c", "d"], "partition": [70_000, 4464, 70_000, 0]})
    task = stage_rows(topic_state(70_001), rows)
    assert [row.value for row in task.rows(70_000)] == [b"a", b"c"]
    assert [row.value for row in task.rows(4464)] == [b"b"]
