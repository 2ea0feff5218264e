"""Listings to segments, as a starting broker arranges them (docs/format.md, 14, steps 1 and 2)."""

from __future__ import annotations

import pytest

from klog.connector.kafka_dir.partition_directory import PartitionDirectory, read_directory
from klog.connector.store.readable_store import DirectoryEntry


def entry(name: str, size: int = 1, *, is_directory: bool = False) -> DirectoryEntry:
    return DirectoryEntry(name, f"/p/{name}", size, is_directory)


def listed(*names: str, ends: dict[str, int] | None = None) -> PartitionDirectory:
    """Arrange a listing; `ends` are the next offsets of `.swap` logs, by name."""

    def next_offset(swap: DirectoryEntry) -> int:
        assert ends is not None, "there is no .swap log to read"
        return ends[swap.name]

    return read_directory("/p", [entry(name) for name in names], next_offset)


def n(base: int, suffix: str) -> str:
    return f"{base:020d}.{suffix}"


def logs(directory: PartitionDirectory) -> list[tuple[int, str]]:
    return [(segment.base_offset, segment.log.name) for segment in directory.segments]


def test_segments_in_order_with_their_indexes() -> None:
    names = [n(5, "log"), n(0, "index"), n(0, "log"), n(0, "timeindex"), n(5, "txnindex")]
    directory = listed(*names)
    assert directory.path == "/p"
    assert logs(directory) == [(0, n(0, "log")), (5, n(5, "log"))]
    assert [sorted(segment.indexes) for segment in directory.segments] == [
        ["index", "timeindex"],
        ["txnindex"],
    ]
    assert directory.segments[1].indexes["txnindex"].name == n(5, "txnindex")


def test_snapshots() -> None:
    directory = listed(n(0, "log"), n(5, "snapshot"), n(9, "snapshot"), n(7, "snapshot.deleted"))
    assert {offset: e.name for offset, e in directory.snapshots.items()} == {
        5: n(5, "snapshot"),
        9: n(9, "snapshot"),
    }


@pytest.mark.parametrize(
    "name",
    [
        "leader-epoch-checkpoint",
        "partition.metadata",
        ".hidden",
        "0.log",
        n(7, "log.deleted"),
        n(7, "index.deleted"),
        n(7, "log.cleaned"),
        n(7, "log.tmp"),
        n(7, "index"),
        "99999999999999999999.log",
    ],
)
def test_what_is_no_segment(name: str) -> None:
    assert logs(listed(n(0, "log"), name)) == [(0, n(0, "log"))]


def test_a_directory_of_a_segments_name_is_none() -> None:
    inside = [entry(n(0, "log")), entry(n(5, "log"), is_directory=True)]
    assert logs(read_directory("/p", inside, lambda swap: 0)) == [(0, n(0, "log"))]


def test_nothing() -> None:
    assert listed() == PartitionDirectory("/p", (), {})


def test_an_index_without_a_log_is_left_out() -> None:
    assert listed(n(3, "index"), n(3, "timeindex")).segments == ()


def test_a_swap_takes_the_place_of_what_it_covers() -> None:
    directory = listed(
        *(n(base, suffix) for base in (0, 10, 20, 30) for suffix in ("log", "index")),
        n(0, "log.swap"),
        n(0, "index.swap"),
        ends={n(0, "log.swap"): 20},
    )
    assert logs(directory) == [
        (0, n(0, "log.swap")),
        (20, n(20, "log")),
        (30, n(30, "log")),
    ]
    assert [{k: e.name for k, e in s.indexes.items()} for s in directory.segments] == [
        {"index": n(0, "index.swap")},
        {"index": n(20, "index")},
        {"index": n(30, "index")},
    ]


def test_old_indexes_do_not_belong_to_a_swap_log() -> None:
    directory = listed(
        n(0, "log"), n(0, "index"), n(0, "txnindex"), n(0, "log.swap"), ends={n(0, "log.swap"): 9}
    )
    assert logs(directory) == [(0, n(0, "log.swap"))]
    assert directory.segments[0].indexes == {}


def test_several_swaps_are_one_split() -> None:
    # Step 3: from the smallest base to the largest next offset, all at once.
    directory = listed(
        n(0, "log"), n(5, "log"), n(9, "log"), n(0, "log.swap"), n(6, "log.swap"),
        ends={n(0, "log.swap"): 3, n(6, "log.swap"): 9},
    )  # fmt: skip
    assert logs(directory) == [(0, n(0, "log.swap")), (6, n(6, "log.swap")), (9, n(9, "log"))]


def test_an_empty_swap_still_takes_its_own_place() -> None:
    directory = listed(n(0, "log"), n(5, "log"), n(0, "log.swap"), ends={n(0, "log.swap"): 0})
    assert logs(directory) == [(0, n(0, "log.swap")), (5, n(5, "log"))]


def test_a_swap_alone_is_a_segment() -> None:
    directory = listed(n(0, "log.swap"), ends={n(0, "log.swap"): 4})
    assert logs(directory) == [(0, n(0, "log.swap"))]


@pytest.mark.parametrize(
    ("cleaned", "expected"),
    [
        (0, [(0, "log"), (10, "log")]),
        (5, [(0, "log.swap"), (10, "log")]),
        (10, [(0, "log.swap"), (10, "log")]),
    ],
)
def test_a_swap_at_or_above_a_cleaned_file_is_unfinished(
    cleaned: int, expected: list[tuple[int, str]]
) -> None:
    # Step 2.
    directory = listed(
        n(0, "log"), n(10, "log"), n(0, "log.swap"), n(cleaned, "log.cleaned"),
        ends={n(0, "log.swap"): 10},
    )  # fmt: skip
    assert logs(directory) == [(base, n(base, suffix)) for base, suffix in expected]


def test_a_swap_index_without_a_swap_log() -> None:
    # The log was renamed, and then the broker died.
    directory = listed(n(0, "log"), n(0, "index"), n(0, "timeindex.swap"), n(5, "index.swap"))
    assert logs(directory) == [(0, n(0, "log"))]
    assert {k: e.name for k, e in directory.segments[0].indexes.items()} == {
        "index": n(0, "index"),
        "timeindex": n(0, "timeindex.swap"),
    }
