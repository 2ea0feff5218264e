"""What a copy has: all of the query's micro-batches, and where an unfinished first one starts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from klog.connector.source.stream_offsets import StreamOffsets
from klog.connector.spark_checkpoint.checkpoint_copy import UNFINISHED
from klog.connector.spark_checkpoint.checkpoint_directory import list_checkpoint
from klog.connector.spark_checkpoint.copy_plan import CopyPlan, plan_copy
from klog.connector.store.local_store import LocalStore
from klog.errors import InvalidFileError, KlogError, OptionError
from tests.connector.spark_checkpoint.written_checkpoint import (
    BATCH_METADATA,
    QUERY_ID,
    write_checkpoint,
    write_named,
)

ENDS: list[Any] = [{"t": {"0": 5, "1": 2}}, {"t": {"0": 9, "1": 4}}, {"t": {"0": 12, "1": 4}}]


def plan(root: Path) -> CopyPlan:
    return plan_copy(list_checkpoint(LocalStore(root=str(root)), str(root)))


def offsets(values: dict[str, Any]) -> StreamOffsets:
    return StreamOffsets.from_json(values)


def test_a_query_that_was_stopped_between_batches(tmp_path: Path) -> None:
    result = plan(write_checkpoint(tmp_path, ENDS))
    assert (result.query_id, result.last_committed, result.unfinished) == (QUERY_ID, 2, None)
    assert result.next_offsets == {"0": offsets(ENDS[2])}
    assert result.rewritten == {}
    assert result.unchanged == [
        *(f"commits/{batch}" for batch in range(3)),
        *(f"offsets/{batch}" for batch in range(3)),
        *(f"state/0/0/{batch + 1}.delta" for batch in range(3)),
    ]


def test_an_unfinished_batch_runs_again_from_the_end_of_the_one_before(tmp_path: Path) -> None:
    result = plan(write_checkpoint(tmp_path, ENDS, committed=2))
    assert (result.last_committed, result.unfinished) == (1, 2)
    assert result.next_offsets == {"0": offsets(ENDS[1])}
    assert (result.rewritten, "offsets/2" in result.unchanged) == ({}, True)


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_an_unfinished_first_batch_gets_its_start(tmp_path: Path, version: str) -> None:
    """Partition 1 was found after the query had started: the Kafka source reads it from 0 on."""
    root = write_checkpoint(
        tmp_path, ENDS[:1], committed=0, initial={"t": {"0": 3, "7": 9}}, version=version
    )
    (root / "offsets/0.crc").write_text("a checksum of Spark's own")
    result = plan(root)
    assert (result.last_committed, result.unfinished) == (None, 0)
    assert result.next_offsets == {"0": offsets({"t": {"0": 3, "1": 0}})}
    assert not [name for name in result.unchanged if name.startswith("offsets")]
    lines = result.rewritten["offsets/0"].decode().split("\n")
    assert lines[:2] == [version, BATCH_METADATA]
    assert json.loads(lines[2].removeprefix("0:" if version == "v2" else "")) == {
        "#start": {"t": {"0": 3, "1": 0}},
        **ENDS[0],
    }


def test_several_sources_of_kafka(tmp_path: Path) -> None:
    ends = [[{"a": {"0": 4}}, {"b": {"0": 8}}]]
    initial = [{"a": {"0": 1}}, {"b": {"0": 2}}]
    finished = plan(write_checkpoint(tmp_path / "finished", ends, initial=initial))
    assert finished.next_offsets == {"0": offsets(ends[0][0]), "1": offsets(ends[0][1])}
    first = plan(write_checkpoint(tmp_path / "first", ends, committed=0, initial=initial))
    assert first.next_offsets == {"0": offsets(initial[0]), "1": offsets(initial[1])}


def test_a_checkpoint_that_klog_has_gone_on_with(tmp_path: Path) -> None:
    """It can be copied to another store; the keys of klog stay."""
    end = {"#ids": {"t": "oLU2KAuJTQu3f_SSptKlOA"}, "#restored": {}, "t": {"0": 9}}
    result = plan(write_checkpoint(tmp_path, [ENDS[0], end]))
    assert result.next_offsets == {"0": offsets(end)}


@pytest.mark.parametrize(
    "end", ["7", '{"logOffset":3}', '{"t":{"0":-1}}', '{"t":{"x":1}}', '{"t":{"0":true}}', "no",
            '{"sourceVersion":1,"reservoirId":"x"}', "[1]", '{"#ids":{"t":"x"},"t":3}',
            '{"#start":7,"t":{"0":1}}'],
)  # fmt: skip
def test_another_source(tmp_path: Path, end: str) -> None:
    write_checkpoint(tmp_path, [[{"t": {"0": 1}}, end]])
    with pytest.raises(
        OptionError, match=r'offsets/0: source 1 of the query is not format\("kafka"'
    ):
        plan(tmp_path)


def test_no_checkpoint(tmp_path: Path) -> None:
    for root in (tmp_path, tmp_path / "missing"):
        with pytest.raises(OptionError, match="not a checkpoint of a streaming query"):
            plan(root)


def test_a_query_without_a_batch(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, [], initial={"t": {"0": 7}})
    with pytest.raises(
        OptionError, match=r'no micro-batch yet. .*startingOffsets set to {"t":{"0":7}}'
    ):
        plan(tmp_path)


def test_batches_that_would_be_left_out(tmp_path: Path) -> None:
    """Spark runs only the last one again."""
    write_checkpoint(tmp_path, ENDS, committed=1)
    with pytest.raises(KlogError, match="micro-batches 1 to 2 are not committed"):
        plan(tmp_path)


def test_a_first_batch_whose_start_is_missing(tmp_path: Path) -> None:
    root = write_checkpoint(tmp_path, ENDS[:1], committed=0)
    (root / "sources/0/0").unlink()
    with pytest.raises(KlogError, match="sources/0/0, which has where it starts, is missing"):
        plan(root)


def test_a_source_without_an_offset(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, [[{"t": {"0": 1}}, "-"]])
    with pytest.raises(KlogError, match="source 1 of the query has no offset yet"):
        plan(tmp_path)


@pytest.mark.parametrize(
    ("name", "text"),
    [("metadata", "{}"), ("metadata", "7"), ("metadata", UNFINISHED.decode()),
     ("sources/0/0", "v1\n{}"), ("sources/0/0", "\0v1\n7"),
     ("offsets/0", "v1"), ("commits/5", "v1\n{}")],
)  # fmt: skip
def test_damage(tmp_path: Path, name: str, text: str) -> None:
    root = write_checkpoint(tmp_path, ENDS[:1], committed=0)
    write_named(root / name, text)
    with pytest.raises(InvalidFileError, match=name.split("/")[0]):
        plan(root)
