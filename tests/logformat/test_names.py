"""Names in a log directory (docs/format.md, 7, seen 9)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klog.logformat.names import (
    deleted_directory,
    is_topic,
    partition_of_directory,
    segment_file,
    segment_name,
    snapshot_file,
    transitional_file,
)

HEX = "0123456789abcdef0123456789abcdef"
ZERO = "0" * 20
LARGEST = "09223372036854775807"

TOPICS = ["x", "x-0", "x-0-1", "-dash.first", "...", "9", "__hidden.like", "n" * 249, "a.b_c-D"]
NO_TOPICS = ["", ".", "..", "n" * 250, "a b", "a/b", "é", "a\n", "a\0"]


@pytest.mark.parametrize("name", TOPICS)
def test_topics(name: str) -> None:
    assert is_topic(name)
    for partition in (0, 7, 10, 2147483647):
        assert partition_of_directory(f"{name}-{partition}") == (name, partition)


@pytest.mark.parametrize("name", NO_TOPICS)
def test_no_topics(name: str) -> None:
    assert not is_topic(name)
    assert partition_of_directory(f"{name}-0") is None


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
def test_directories_of_no_partition(name: str) -> None:
    assert partition_of_directory(name) is None


@pytest.mark.parametrize("suffix", ["log", "index", "timeindex", "txnindex"])
def test_segment_files(suffix: str) -> None:
    assert segment_file(f"{ZERO}.{suffix}") == (0, suffix)
    assert segment_file(f"{LARGEST}.{suffix}") == ((1 << 63) - 1, suffix)
    assert segment_name(71, suffix) == f"00000000000000000071.{suffix}"
    assert segment_file(segment_name(71, suffix)) == (71, suffix)


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
def test_no_segment_files(name: str) -> None:
    assert segment_file(name) is None


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
    assert transitional_file(name) == parts
    assert segment_file(name) is None


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
def test_no_transitional_files(name: str) -> None:
    assert transitional_file(name) is None


def test_snapshots() -> None:
    assert snapshot_file("00000000000000000011.snapshot") == 11
    assert snapshot_file(f"{LARGEST}.snapshot") == (1 << 63) - 1
    for name in ("11.snapshot", f"{ZERO}.snapshot.deleted", "09223372036854775808.snapshot", "x"):
        assert snapshot_file(name) is None


def test_directories_that_a_broker_deletes() -> None:
    assert deleted_directory("a.b", 12, HEX) == f"a.b-12.{HEX}-delete"
    long = deleted_directory("t" * 249, 12, HEX)
    assert (len(long), long[-43:]) == (255, f"-12.{HEX}-delete")
    for name in (deleted_directory("a-1", 0, HEX), long):
        assert partition_of_directory(name) is None


@given(st.text(max_size=40))
def test_any_name_means_something_or_nothing(name: str) -> None:
    found = partition_of_directory(name)
    if found is not None:
        assert f"{found[0]}-{found[1]}" == name
    segment = segment_file(name)
    if segment is not None:
        assert segment_name(*segment) == name
    assert transitional_file(name) is None or name.rsplit(".", 1)[1] in {
        "deleted",
        "cleaned",
        "swap",
    }
