"""Which files of a directory count (docs/format.md, 14): what is deleted, and what is renamed."""

from __future__ import annotations

import pytest

from klog.logformat.broker_files.file_names import segment_file_name as file_name
from klog.logformat.broker_files.partition_listing import resolve_files

ENDS = {file_name(0, "log.swap"): 10, file_name(5, "log.swap"): 10, file_name(20, "log.swap"): 20}


@pytest.mark.parametrize(
    ("names", "deleted", "renamed", "segments"),
    [
        pytest.param([], [], [], [], id="nothing"),
        pytest.param(
            [file_name(0, "log"), "notes.txt", "_SUCCESS"],
            [],
            [],
            [0],
            id="unknown names are left alone",
        ),
        pytest.param(
            [file_name(0, "log"), file_name(7, "log.deleted"), file_name(9, "snapshot.deleted")],
            [file_name(7, "log.deleted"), file_name(9, "snapshot.deleted")],
            [],
            [0],
            id="deleted",
        ),
        pytest.param(
            [file_name(0, "log"), file_name(0, "log.cleaned"), file_name(0, "index.cleaned")],
            [file_name(0, "index.cleaned"), file_name(0, "log.cleaned")],
            [],
            [0],
            id="cleaned",
        ),
        pytest.param(
            [
                file_name(0, "log"),
                file_name(4, "log"),
                file_name(4, "index"),
                file_name(12, "log"),
                file_name(0, "log.swap"),
            ],
            [file_name(0, "log"), file_name(4, "index"), file_name(4, "log")],
            [(file_name(0, "log.swap"), file_name(0, "log"))],
            [0, 12],
            id="a cleaning",
        ),
        pytest.param(
            [
                file_name(0, "log"),
                file_name(0, "log.cleaned"),
                file_name(5, "log.swap"),
                file_name(5, "index.swap"),
            ],
            [file_name(0, "log.cleaned"), file_name(5, "index.swap"), file_name(5, "log.swap")],
            [],
            [0],
            id="half of a split",
        ),
        pytest.param(
            [file_name(0, "log"), file_name(0, "index"), file_name(0, "index.swap")],
            [],
            [(file_name(0, "index.swap"), file_name(0, "index"))],
            [0],
            id="an index renamed after its log",
        ),
        pytest.param(
            [file_name(0, "log"), file_name(3, "index"), file_name(4, "index.swap")],
            [file_name(3, "index"), file_name(4, "index.swap")],
            [],
            [0],
            id="indexes without a log",
        ),
        pytest.param(
            [file_name(20, "log"), file_name(20, "txnindex"), file_name(20, "log.swap")],
            [file_name(20, "log"), file_name(20, "txnindex")],
            [(file_name(20, "log.swap"), file_name(20, "log"))],
            [20],
            id="an empty log covers its base offset alone",
        ),
    ],
)
def test_resolved_files(
    names: list[str], deleted: list[str], renamed: list[tuple[str, str]], segments: list[int]
) -> None:
    listing = resolve_files(names, lambda name: ENDS[name])
    assert (list(listing.deleted), list(listing.renamed)) == (deleted, renamed)
    assert list(listing.segments) == segments


def test_snapshots_in_a_cleaned_range_are_deleted() -> None:
    names = [
        file_name(0, "log"),
        file_name(20, "log"),
        *(file_name(offset, "snapshot") for offset in (5, 9, 10, 30)),
        file_name(0, "log.swap"),
    ]
    listing = resolve_files(names, lambda name: ENDS[name])
    assert sorted(listing.snapshots) == [10, 30]
    assert listing.segments[0] == {"log": file_name(0, "log.swap")}
