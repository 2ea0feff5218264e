"""Lost commits of a whole log: found as ranges, with a bounded number of reads."""

from __future__ import annotations

import pytest

from klog.connector.commit_log import checkpoint_writer
from klog.connector.commit_log.commit_log import CommitLog
from klog.connector.commit_log.commit_log_paths import MAX_VERSION
from klog.connector.commit_log.lost_commits import MAX_READS, find_lost_commits
from tests.connector.commit_log.memory_logs import CountingStore, appended, created, topic_log


def _log(store: CountingStore) -> CommitLog:
    """Make versions 0 to 8, with a checkpoint at 5."""
    log = topic_log(store)
    state = appended(log, created(log), 5)
    checkpoint_writer.write_checkpoint(log, state)
    appended(log, state, 3)
    return log


def _ranges(log: CommitLog) -> list[tuple[int, int]]:
    return [(lost.first_version, lost.last_version) for lost in find_lost_commits(log)]


@pytest.mark.parametrize(
    ("lost", "ranges"),
    [
        ([], []),
        ([0], [(0, 0)]),
        ([2, 3, 7], [(2, 3), (7, 7)]),
        ([5], [(5, 5)]),
        (range(8), [(0, 7)]),
        ([4, 5, 6, 7, 8], [(4, 5)]),
        (range(9), [(0, 5)]),
    ],
)
def test_lost_commits_are_found_as_ranges(lost: list[int], ranges: list[tuple[int, int]]) -> None:
    store = CountingStore()
    log = _log(store)
    for version in lost:
        del store.files[log.paths.commit(version)]
    assert _ranges(log) == ranges


def test_what_the_boundary_covers_is_not_lost() -> None:
    store = CountingStore()
    log = _log(store)
    for version in (0, 1, 2, 4):
        del store.files[log.paths.commit(version)]
    store.files[log.paths.expiration(3)] = b""
    assert _ranges(log) == [(4, 4)]
    del store.files[log.paths.expiration(3)]
    assert _ranges(log) == [(0, 2), (4, 4)]


def test_what_a_listing_leaves_out_is_not_lost() -> None:
    class Late(CountingStore):
        def names_after(self, directory: str, name: str) -> list[str]:
            return [file for file in super().names_after(directory, name) if "03.json" not in file]

    store = Late()
    log = _log(store)
    del store.files[log.paths.commit(4)]
    assert _ranges(log) == [(4, 4)]


def test_a_bogus_number_is_a_range_and_few_reads() -> None:
    store = CountingStore()
    log = _log(store)
    store.files[log.paths.commit(MAX_VERSION)] = b"{}"
    store.requests.clear()
    assert _ranges(log) == [(9, MAX_VERSION - 1)]
    assert store.requests["read"] <= 2 * MAX_READS + 2
