"""`klog delete-records`: what kafka-delete-records does, and its file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.command_root import Root

TOPIC = ("--topic", "orders")


@pytest.fixture
def orders(on_root: Root) -> Root:
    """Give a topic of two partitions with four segments of two records in the first."""
    on_root.does("topics", "create", *TOPIC, "--partitions", "2")
    for _ in range(4):
        on_root.append("orders", 0, 2)
    return on_root


def test_a_partition_begins_later(orders: Root) -> None:
    given = ("delete-records", *TOPIC, "--partition", "0", "--offset", "3")
    assert orders.does(*given, "--dry-run") == "partition: orders-0\tlow_watermark: 3\n"
    assert orders.state("orders").log_start == (0, 0)
    assert orders.does(*given) == "partition: orders-0\tlow_watermark: 3\n"
    state = orders.state("orders")
    assert state.log_start == (3, 0)
    assert state.segments["base_offset"].to_pylist() == [2, 4, 6]
    assert "\tOperation: delete-records\t" in orders.does("history", *TOPIC)
    # What has gone does not come back, and is no error.
    again = orders.does("delete-records", *TOPIC, "--partition", "0", "--offset", "1")
    assert again == "partition: orders-0\tlow_watermark: 3\n"
    assert orders.state("orders").version == state.version


def test_kafkas_file(orders: Root, tmp_path: Path) -> None:
    rows = [
        {"topic": "orders", "partition": 0, "offset": -1},
        {"topic": "orders", "partition": 1, "offset": 0},
    ]
    file = tmp_path / "offsets.json"
    file.write_text(json.dumps({"partitions": rows, "version": 1}))
    said = json.loads(orders.does("delete-records", "--offset-json-file", str(file), "--json"))
    assert said == {"dryRun": False, "lowWatermarks": {"orders": {"0": 8, "1": 0}}}
    assert orders.state("orders").log_start == (8, 0)
    assert orders.state("orders").segments.num_rows == 0


def test_nothing_is_done_where_one_of_them_is_wrong(orders: Root, tmp_path: Path) -> None:
    orders.does("topics", "create", "--topic", "zebras")
    rows = [
        {"topic": "orders", "partition": 0, "offset": -1},
        {"topic": "zebras", "partition": 0, "offset": 999},
    ]
    file = tmp_path / "offsets.json"
    file.write_text(json.dumps({"partitions": rows}))
    said = orders.refuses("delete-records", "--offset-json-file", str(file))
    assert "zebras-0: offset 999 is out of range" in said
    assert orders.state("orders").log_start == (0, 0)


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("{", "it is no JSON"),
        pytest.param("[" * 1_000_000, "it is no JSON", id="deep"),
        pytest.param(" " * (17 << 20), "it has more than 16,777,216 bytes", id="large"),
        ("[]", "it is no {"),
        ('{"partitions": []}', "it is no {"),
        ('{"partitions": [{}], "version": 2}', "it is no {"),
        ('{"partitions": [{"topic": "t", "partition": 0}]}', "has no topic, partition and offset"),
        ('{"partitions": [{"topic": "..", "partition": 0, "offset": 1}]}', "is no partition"),
        ('{"partitions": [{"topic": "t", "partition": true, "offset": 1}]}', "has no topic, part"),
    ],
)
def test_a_file_that_says_something_else(
    orders: Root, tmp_path: Path, said: str, words: str
) -> None:
    file = tmp_path / "offsets.json"
    file.write_text(said)
    assert words in orders.refuses("delete-records", "--offset-json-file", str(file))


@pytest.mark.parametrize(
    ("more", "words", "code"),
    [
        (("--partition", "2", "--offset", "0"), "there is no partition orders-2", 1),
        (("--partition", "0", "--offset", "9"), "orders-0: offset 9 is out of range", 1),
        (("--partition", "0", "--offset", "-2"), "offset -2 is out of range", 1),
        (("--partition", "0"), "give --topic, --partition and --offset", 2),
        (("--offset-json-file", "f"), "not both", 2),
    ],
)
def test_what_is_refused(orders: Root, more: tuple[str, ...], words: str, code: int) -> None:
    assert words in orders.refuses("delete-records", *TOPIC, *more, code=code)
    assert orders.state("orders").log_start == (0, 0)


def test_a_topic_that_is_only_compacted(orders: Root) -> None:
    orders.does("configs", *TOPIC, "--config", "cleanup.policy=compact")
    said = orders.refuses("delete-records", *TOPIC, "--partition", "0", "--offset", "1")
    assert "cleanup.policy has no delete" in said
