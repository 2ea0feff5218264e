"""A topic that gets a commit each second stays small; `each_second.py` shows it of ten thousand."""

from __future__ import annotations

import pytest

from klog.connector.commit_log.checkpoint_schedule import MIN_COMMITS
from tests.soak.each_second import MERGE_EACH, costs

MERGED = 20
"""Segments that a merge leaves at most: each is twice as large as the one behind it, or full."""


@pytest.mark.slow
def test_segments_and_loads_are_bounded() -> None:
    grace_ms = 1000 * MERGE_EACH // 2
    *_, middle, last = costs(2 * MERGE_EACH, MERGE_EACH, grace_ms)
    assert middle.live == MERGE_EACH
    for cost in (middle, last):
        assert cost.live <= MERGE_EACH + MERGED
        assert 0 < cost.merged <= MERGED
        # The format, a listing, a checkpoint and its parts, and a tail that is shorter than due.
        assert 0 < cost.load_requests <= MIN_COMMITS + 10
    # Vacuum leaves what the last merge took out; what the one before did is gone.
    assert last.files <= MERGE_EACH + 2 * MERGED < last.commits
