"""Commits that hide what was committed, or show what was aborted, by the markers of the log."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from klog.jobs import merge, verify
from tests.jobs.partition_bytes import entries_of
from tests.jobs.verified_roots import replaced, rewritten
from tests.jobs.written_root import WrittenRoot
from tests.support.batch_bytes import ABORT, COMMIT, marker, transactional

LOG = [
    transactional(0, 5) + transactional(1, 6) + marker(2, 5, ABORT),
    transactional(3, 5),
    marker(4, 6, COMMIT) + marker(5, 5, ABORT) + transactional(6, 7),
]
"""Of producer 5 two transactions were aborted, that of 6 committed; that of 7 is open."""
SOUND = [[5, 0, 2], [5, 3, 5], []]


HURT = [
    transactional(0, 5),
    marker(1, 5, COMMIT),
    transactional(2, 5),
    marker(3, 5, ABORT),
    transactional(4, 5),
    marker(5, 5, COMMIT),
    transactional(6, 7),
]
"""The batches of one segment; in the ABORT, and others, a test flips a bit."""


def root_of(path: Path, aborted: Sequence[list[int]]) -> Path:
    """Adopt the log with entries that say this of its three segments."""
    root = WrittenRoot(str(path / "root"))
    root.create("t", 1)
    root.adopt("t", 0, {0: LOG[0], 3: LOG[1], 4: LOG[2]})
    root_path = Path(root.location)
    before = entries_of(root_path)
    records = [2 - bool(aborted[0]), 1 - bool(aborted[1]), 1]
    after = []
    for number, (entry, data, transactions_) in enumerate(zip(before, LOG, aborted, strict=True)):
        change = {"aborted": transactions_, "record_count": records[number], "origin": "merge"}
        after.append(rewritten(root_path, entry, data, f"{number:016x}", **change))
    replaced(root_path, before, after)
    return root_path


def aborted_findings(path: Path) -> list[tuple[int | None, str]]:
    return [
        (finding.offset, finding.reason)
        for finding in verify.run(None, str(path)).findings
        if finding.kind == "aborted"
    ]


def test_what_the_markers_say_is_not_told(tmp_path: Path) -> None:
    path = root_of(tmp_path, SOUND)
    assert aborted_findings(path) == []
    merge.run(None, str(path))
    assert len(entries_of(path)) == 1
    assert aborted_findings(path) == []


@pytest.mark.parametrize("merged", [False, True])
@pytest.mark.parametrize(
    ("aborted", "offset", "words"),
    [
        ([[], SOUND[1], []], 0, "shows 1 batches of a transaction of producer 5, and the ABORT"),
        ([SOUND[0], [], []], 3, "marker at offset 5 ends it"),
        ([[*SOUND[0], 6, 1, 4], SOUND[1], []], 1, "hides 1 batches of a transaction of producer 6"),
    ],
)
def test_what_they_do_not_say_is_told(
    tmp_path: Path, aborted: Sequence[list[int]], offset: int, words: str, merged: bool
) -> None:
    """The marker may be in the data's own segment or in a later one."""
    path = root_of(tmp_path, aborted)
    if merged:
        merge.run(None, str(path))
    ((actual_offset, reason),) = aborted_findings(path)
    assert actual_offset == offset
    assert words in reason


def test_a_marker_may_have_been_where_nothing_can_be_read(tmp_path: Path) -> None:
    path = root_of(tmp_path, [SOUND[0], [], []])
    file = path / entries_of(path)[2]["file"]
    data = bytearray(file.read_bytes())
    data[60] ^= 1
    file.write_bytes(data)
    assert aborted_findings(path) == []
    assert "crc" in [finding.kind for finding in verify.run(None, str(path)).findings]


def hurt_root(path: Path, aborted: list[int], hurt: Sequence[int]) -> Path:
    """Adopt these batches and a COMMIT after them; in some a bit is flipped."""
    root = WrittenRoot(str(path / "root"))
    root.create("t", 1)
    root.adopt("t", 0, {0: b"".join(HURT), 7: marker(7, 5, COMMIT)})
    root_path = Path(root.location)
    before = entries_of(root_path)[:1]
    change = {"aborted": aborted, "origin": "merge"}
    after = [rewritten(root_path, before[0], b"".join(HURT), "f" * 16, **change)]
    replaced(root_path, before, after)
    parts = [bytearray(batch) for batch in HURT]
    for number in hurt:
        parts[number][-1] ^= 1
    (root_path / after[0]["file"]).write_bytes(b"".join(parts))
    return root_path


@pytest.mark.parametrize(
    ("aborted", "hurt", "offsets"),
    [
        ([5, 2, 3], [], []),
        # The marker after the damage does not end the data before it.
        ([5, 2, 3], [3], []),
        ([5, 2, 3], [3, 4], []),
        # Data and marker on one side of the damage are checked as always.
        ([5, 0, 3], [3], [0]),
        ([5, 2, 5], [3], [4]),
        ([5, 0, 5], [3], [0, 4]),
        ([5, 0, 5], [3, 5], [0]),
        # Nor is it what a marker in the next segment ends.
        ([5, 2, 3, 5, 4, 7], [5], []),
        ([5, 2, 3, 5, 4, 7], [5, 6], []),
    ],
)
def test_damage_amid_a_segment_parts_what_lies_on_its_sides(
    tmp_path: Path, aborted: list[int], hurt: Sequence[int], offsets: Sequence[int]
) -> None:
    path = hurt_root(tmp_path, aborted, hurt)
    assert [offset for offset, _ in aborted_findings(path)] == offsets
    crc = [finding for finding in verify.run(None, str(path)).findings if finding.kind == "crc"]
    assert len(crc) == len(hurt)
