"""Which files count (docs/format.md, 14): what goes and what gets its final name."""

from __future__ import annotations

import pytest

from klog.logformat.listing import arrange
from klog.logformat.names import segment_name as n

ENDS = {n(0, "log.swap"): 10, n(5, "log.swap"): 10, n(20, "log.swap"): 20}


@pytest.mark.parametrize(
    ("names", "deleted", "renamed", "segments"),
    [
        pytest.param([], [], [], [], id="nothing"),
        pytest.param([n(0, "log"), "notes.txt", "_SUCCESS"], [], [], [0], id="others are left"),
        pytest.param(
            [n(0, "log"), n(7, "log.deleted"), n(9, "snapshot.deleted")],
            [n(7, "log.deleted"), n(9, "snapshot.deleted")],
            [],
            [0],
            id="deleted",
        ),
        pytest.param(
            [n(0, "log"), n(0, "log.cleaned"), n(0, "index.cleaned")],
            [n(0, "index.cleaned"), n(0, "log.cleaned")],
            [],
            [0],
            id="cleaned",
        ),
        pytest.param(
            [n(0, "log"), n(4, "log"), n(4, "index"), n(12, "log"), n(0, "log.swap")],
            [n(0, "log"), n(4, "index"), n(4, "log")],
            [(n(0, "log.swap"), n(0, "log"))],
            [0, 12],
            id="a cleaning",
        ),
        pytest.param(
            [n(0, "log"), n(0, "log.cleaned"), n(5, "log.swap"), n(5, "index.swap")],
            [n(0, "log.cleaned"), n(5, "index.swap"), n(5, "log.swap")],
            [],
            [0],
            id="half of a split",
        ),
        pytest.param(
            [n(0, "log"), n(0, "index"), n(0, "index.swap")],
            [],
            [(n(0, "index.swap"), n(0, "index"))],
            [0],
            id="an index behind its log",
        ),
        pytest.param(
            [n(0, "log"), n(3, "index"), n(4, "index.swap")],
            [n(3, "index"), n(4, "index.swap")],
            [],
            [0],
            id="indexes without a log",
        ),
        pytest.param(
            [n(20, "log"), n(20, "txnindex"), n(20, "log.swap")],
            [n(20, "log"), n(20, "txnindex")],
            [(n(20, "log.swap"), n(20, "log"))],
            [20],
            id="an empty log takes its own base alone",
        ),
    ],
)
def test_a_listing(
    names: list[str], deleted: list[str], renamed: list[tuple[str, str]], segments: list[int]
) -> None:
    found = arrange(names, lambda name: ENDS[name])
    assert (list(found.deleted), list(found.renamed)) == (deleted, renamed)
    assert list(found.segments) == segments


def test_snapshots_in_a_cleaning_go() -> None:
    names = [
        n(0, "log"),
        n(20, "log"),
        *(n(at, "snapshot") for at in (5, 9, 10, 30)),
        n(0, "log.swap"),
    ]
    found = arrange(names, lambda name: ENDS[name])
    assert sorted(found.snapshots) == [10, 30]
    assert found.segments[0] == {"log": n(0, "log.swap")}
