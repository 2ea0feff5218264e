"""Names in a broker's log directory (docs/format.md, 7, seen 9)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klog.logformat.broker_files.file_names import (
    deleted_directory_name,
    is_topic,
    parse_partition_directory,
    parse_segment_file,
    parse_snapshot_file,
    parse_transitional_file,
    segment_file_name,
)
from klog.logformat.topic_partition import TopicPartition

HEX = "0123456789abcdef0123456789abcdef"
ZERO = "0" * 20
LARGEST = "09223372036854775807"

TOPICS = ["x", "x-0", "x-0-1", "-dash.first", "...", "9", "__hidden.like", "n" * 249, "a.b_c-D"]
NOT_TOPICS = ["", ".", "..", "n" * 250, "a b", "a/b", "é", "a\n", "a\0"]


@pytest.mark.parametrize("name", TOPICS)
def test_topic_names(name: str) -> None:
    assert is_topic(name)
    for partition in (0, 7, 10, 2147483647):
        assert parse_partition_directory(f"{name}-{partition}") == (name, partition)


@pytest.mark.parametrize("name", NOT_TOPICS)
def test_names_that_are_not_topics(name: str) -> None:
    assert not is_topic(name)
    assert parse_partition_directory(f"{name}-0") is None


@pytest.mark.parametrize(
    "name",
    [
        "_klog",
        "x",
        "x-",
        "x-a",
        "x-00",
        "x-01",
        "x-+1",
        "x-2147483648",
        "x-1" + "0" * 5000,
        "x-0\n",
        "x-\u0663",
        f"x-0.{HEX}-delete",
        f"x-0.{HEX}-future",
        f"x-0.{HEX}-stray",
        "-0",
    ],
)
def test_directories_that_are_not_partitions(name: str) -> None:
    assert parse_partition_directory(name) is None


@pytest.mark.parametrize("suffix", ["log", "index", "timeindex", "txnindex"])
def test_segment_files(suffix: str) -> None:
    assert parse_segment_file(f"{ZERO}.{suffix}") == (0, suffix)
    assert parse_segment_file(f"{LARGEST}.{suffix}") == ((1 << 63) - 1, suffix)
    assert segment_file_name(71, suffix) == f"00000000000000000071.{suffix}"
    assert parse_segment_file(segment_file_name(71, suffix)) == (71, suffix)


@pytest.mark.parametrize(
    "name",
    [
        "0.log",
        f"0{ZERO}.log",
        f"{ZERO[1:]}.log",
        f"{ZERO}.log.deleted",
        f"{ZERO}.snapshot",
        f"{ZERO}log",
        f"{ZERO}.LOG",
        f"{ZERO}.log\n",
        "09223372036854775808.log",
        "99999999999999999999.log",
        "leader-epoch-checkpoint",
        "partition.metadata",
        "",
    ],
)
def test_names_that_are_not_segment_files(name: str) -> None:
    assert parse_segment_file(name) is None


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        (f"{ZERO}.log.swap", (0, "log", "swap")),
        ("00000000000000000010.index.cleaned", (10, "index", "cleaned")),
        ("10.txnindex.deleted", (10, "txnindex", "deleted")),
        (f"{ZERO}.snapshot.deleted", (0, "snapshot", "deleted")),
        ("00000000000000000010.log.cleaned.deleted", (10, "log.cleaned", "deleted")),
    ],
)
def test_transitional_files(name: str, parts: tuple[int, str, str]) -> None:
    assert parse_transitional_file(name) == parts
    assert parse_segment_file(name) is None


@pytest.mark.parametrize(
    "name",
    [
        f"{ZERO}.log",
        f"{ZERO}.swap",
        "x.log.swap",
        "99999999999999999999.log.swap",
        "9" * 5000 + ".log.deleted",
        ".log.swap",
    ],
)
def test_names_that_are_not_transitional_files(name: str) -> None:
    assert parse_transitional_file(name) is None


def test_snapshot_files() -> None:
    assert parse_snapshot_file("00000000000000000011.snapshot") == 11
    assert parse_snapshot_file(f"{LARGEST}.snapshot") == (1 << 63) - 1
    for name in ("11.snapshot", f"{ZERO}.snapshot.deleted", "09223372036854775808.snapshot", "x"):
        assert parse_snapshot_file(name) is None


def test_deleted_directory_name_fits_the_file_system() -> None:
    assert deleted_directory_name(TopicPartition("a.b", 12), HEX) == f"a.b-12.{HEX}-delete"
    long = deleted_directory_name(TopicPartition("t" * 249, 12), HEX)
    assert (len(long), long[-43:]) == (255, f"-12.{HEX}-delete")
    for name in (deleted_directory_name(TopicPartition("a-1", 0), HEX), long):
        assert parse_partition_directory(name) is None


@given(st.text(max_size=40))
def test_any_name_is_parsed_or_none(name: str) -> None:
    partition = parse_partition_directory(name)
    if partition is not None:
        assert f"{partition[0]}-{partition[1]}" == name
    segment = parse_segment_file(name)
    if segment is not None:
        assert segment_file_name(*segment) == name
    assert parse_transitional_file(name) is None or name.rsplit(".", 1)[1] in {
        "deleted",
        "cleaned",
        "swap",
    }
