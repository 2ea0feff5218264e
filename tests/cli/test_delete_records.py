"""`klog delete-records`: as kafka-delete-records does it, and its file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.command_root import Root

TOPIC = ("--topic", "orders")


@pytest.fixture
def orders(on_root: Root) -> Root:
    """Return a root with a topic of two partitions; the first has four segments of two records."""
    on_root.does("topics", "create", *TOPIC, "--partitions", "2")
    for _ in range(4):
        on_root.append("orders", 0, 2)
    return on_root


def test_a_partition_starts_later(orders: Root) -> None:
    arguments = ("delete-records", *TOPIC, "--partition", "0", "--offset", "3")
    assert orders.does(*arguments, "--dry-run") == "partition: orders-0\tlow_watermark: 3\n"
    assert orders.state("orders").log_start == (0, 0)
    assert orders.does(*arguments) == "partition: orders-0\tlow_watermark: 3\n"
    state = orders.state("orders")
    assert state.log_start == (3, 0)
    assert state.segments["base_offset"].to_pylist() == [2, 4, 6]
    assert "\tOperation: delete-records\t" in orders.does("history", *TOPIC)
    # A lower offset changes nothing and is not an error.
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
    result = json.loads(orders.does("delete-records", "--offset-json-file", str(file), "--json"))
    assert result == {"dryRun": False, "lowWatermarks": {"orders": {"0": 8, "1": 0}}}
    assert orders.state("orders").log_start == (8, 0)
    assert orders.state("orders").segments.num_rows == 0


def test_one_wrong_offset_changes_nothing(orders: Root, tmp_path: Path) -> None:
    orders.does("topics", "create", "--topic", "zebras")
    rows = [
        {"topic": "orders", "partition": 0, "offset": -1},
        {"topic": "zebras", "partition": 0, "offset": 999},
    ]
    file = tmp_path / "offsets.json"
    file.write_text(json.dumps({"partitions": rows}))
    result = orders.refuses("delete-records", "--offset-json-file", str(file))
    assert "zebras-0: offset 999 is out of range" in result
    assert orders.state("orders").log_start == (0, 0)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{", "not valid JSON"),
        pytest.param("[" * 1_000_000, "not valid JSON", id="deep"),
        pytest.param(" " * (17 << 20), "it has more than 16,777,216 bytes", id="large"),
        ("[]", "must be {"),
        ('{"partitions": []}', "must be {"),
        ('{"partitions": [{}], "version": 2}', "must be {"),
        (
            '{"partitions": [{"topic": "t", "partition": 0}]}',
            "must have topic, partition and offset",
        ),
        ('{"partitions": [{"topic": "..", "partition": 0, "offset": 1}]}', "is not a partition"),
        (
            '{"partitions": [{"topic": "t", "partition": true, "offset": 1}]}',
            "must have topic, part",
        ),
    ],
)
def test_a_file_that_is_wrong(orders: Root, tmp_path: Path, content: str, words: str) -> None:
    file = tmp_path / "offsets.json"
    file.write_text(content)
    error = orders.refuses("delete-records", "--offset-json-file", str(file))
    assert error.startswith(f"klog: --offset-json-file: {file}: ")
    assert words in error


@pytest.mark.parametrize(
    ("arguments", "words", "code"),
    [
        (("--partition", "2", "--offset", "0"), "there is no partition orders-2", 1),
        (("--partition", "0", "--offset", "9"), "orders-0: offset 9 is out of range", 1),
        (("--partition", "0", "--offset", "-2"), "must be an offset from -1, got '-2'", 2),
        (("--partition", "0"), "give --topic, --partition and --offset", 2),
        (("--offset-json-file", "f"), "not both", 2),
    ],
)
def test_what_is_refused(orders: Root, arguments: tuple[str, ...], words: str, code: int) -> None:
    assert words in orders.refuses("delete-records", *TOPIC, *arguments, code=code)
    assert orders.state("orders").log_start == (0, 0)


def test_a_topic_that_is_only_compacted(orders: Root) -> None:
    orders.does("configs", *TOPIC, "--config", "cleanup.policy=compact")
    result = orders.refuses("delete-records", *TOPIC, "--partition", "0", "--offset", "1")
    assert "cleanup.policy has no delete" in result
