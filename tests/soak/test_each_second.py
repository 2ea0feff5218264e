"""A topic with a commit each second stays small; `each_second.py` shows it for ten thousand."""

from __future__ import annotations

import pytest

from klog.connector.commit_log.checkpoint_schedule import MIN_COMMITS
from tests.soak.each_second import MERGE_EACH, costs

MERGED = 20
"""The most segments after a merge: each is twice as large as the next one, or full."""


@pytest.mark.slow
def test_segments_and_loads_are_bounded() -> None:
    grace_ms = 1000 * MERGE_EACH // 2
    *_, middle, last = costs(2 * MERGE_EACH, MERGE_EACH, grace_ms)
    assert middle.live == MERGE_EACH
    for cost in (middle, last):
        assert cost.live <= MERGE_EACH + MERGED
        assert 0 < cost.merged <= MERGED
        # The format, a listing, a checkpoint and its parts, and fewer commits than a checkpoint's.
        assert 0 < cost.load_requests <= MIN_COMMITS + 10
    # Vacuum keeps the segments that the last merge removed, and deletes earlier ones.
    assert last.files <= MERGE_EACH + 2 * MERGED < last.commits
