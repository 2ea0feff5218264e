"""A number of partitions that the topic does not have is an error that says both numbers."""

from __future__ import annotations

from pathlib import Path

import pytest

import klog
from klog.connector.sink.write_plan import load_write_plan
from klog.errors import KlogError, OptionError
from tests.connector.sink.multi_task_writes import (
    forget_topics,
    rows,
    stage,
    values,
    write,
    write_options,
)


@pytest.fixture(autouse=True)
def _new_process(monkeypatch: pytest.MonkeyPatch) -> None:
    forget_topics(monkeypatch)


def test_number_of_an_existing_topic(tmp_path: Path) -> None:
    klog.open(tmp_path).create_topic("t", 4)
    write(write_options(tmp_path, topic="t", numPartitions=4), rows(1))
    with pytest.raises(OptionError) as error:
        load_write_plan(write_options(tmp_path, topic="t", numPartitions=8))
    assert str(error.value) == (
        "numPartitions: topic t has 4 partitions, got 8. Set 4 or leave it out; "
        "klog topics alter --partitions raises the number"
    )
    assert values(tmp_path) == ["1"]


def test_number_of_a_topic_that_a_row_names_makes_no_dead_letters(tmp_path: Path) -> None:
    klog.open(tmp_path).create_topic("t", 4)
    options = write_options(tmp_path, deadLetterTopic="dead", numPartitions=8)
    with pytest.raises(KlogError, match="numPartitions: topic t has 4 partitions, got 8"):
        write(options, rows(1, topic=["t"]))
    assert klog.open(tmp_path).topics() == ["t"]


def test_number_is_not_that_of_the_dead_letter_topic(tmp_path: Path) -> None:
    klog.open(tmp_path).create_topic("dead", 1)
    options = write_options(tmp_path, topic="t", deadLetterTopic="dead", numPartitions=2)
    write(options, rows(1, 2, partition=[1, 7]))
    assert values(tmp_path) == ["1"]
    assert values(tmp_path, "dead") == ["2"]


@pytest.mark.parametrize("is_named", [True, False], ids=["option", "column"])
def test_rows_with_partitions_of_another_topic(tmp_path: Path, is_named: bool) -> None:
    options = write_options(tmp_path, **({"topic": "copy"} if is_named else {}))
    topic = {} if is_named else {"topic": ["copy", "copy"]}
    with pytest.raises(KlogError) as error:
        stage(load_write_plan(options), rows(1, 2, partition=[0, 3], **topic))
    assert str(error.value) == (
        "copy: row 1 of task 0: there is no partition 3, because the topic does not exist yet and "
        "gets 1. Set numPartitions to the number that the rows need, or drop the column partition"
    )
    write(write_options(tmp_path, topic="copy", numPartitions=4), rows(1, 2, partition=[0, 3]))
    assert values(tmp_path, "copy") == ["1", "2"]


def test_negative_partition_of_a_new_topic(tmp_path: Path) -> None:
    options = write_options(tmp_path, topic="t")
    with pytest.raises(KlogError, match="there is no partition -1, only 0 to 0"):
        stage(load_write_plan(options), rows(1, partition=[-1]))
