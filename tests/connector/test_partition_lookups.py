"""Look-ups of `klog.open` and SQL in all partitions of a topic: one clock, and no step too many."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import klog
from klog.connector import topic_rows
from klog.connector.embedded_lookups import snapshot_as_of
from klog.connector.open_root import open_root
from klog.connector.options.as_of import AsOfVersion
from klog.connector.scan_bounds import resolve_bounds
from klog.connector.snapshot import Snapshot

COUNT = 300


@pytest.fixture
def snapshot(tmp_path: Path) -> Snapshot:
    """Return a snapshot of a root with an empty topic of many partitions."""
    path = str(tmp_path / "root")
    klog.open(path).create_topic("t", COUNT)
    return open_root([path]).snapshot()


def test_an_age_counts_from_one_time_in_all_partitions(
    snapshot: Snapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    times = iter([1_700_000_000_000])
    monkeypatch.setattr(topic_rows, "now_ms", lambda: next(times))
    assert len(topic_rows.offset_rows(lambda: snapshot, "t", "now-10m")) == COUNT


class ComparedNumber(int):
    """A number of a partition that counts how often it is compared."""

    comparisons = 0

    def __eq__(self, other: Any) -> bool:
        """Compare, and count."""
        type(self).comparisons += 1
        return bool(int(self) == other)

    __hash__ = int.__hash__


def test_each_partition_of_a_bound_is_looked_up_once(snapshot: Snapshot) -> None:
    bounds: dict[int, int] = {ComparedNumber(number): 0 for number in range(COUNT)}
    resolve_bounds(snapshot, "t", bounds, None)
    assert ComparedNumber.comparisons < 20 * COUNT


def test_a_read_of_the_past_without_its_root_is_not_one_of_now(snapshot: Snapshot) -> None:
    with pytest.raises(AssertionError, match="root"):
        snapshot_as_of(snapshot, None, "t", AsOfVersion(0, "as_of_version"))
