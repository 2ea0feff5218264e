"""Fill the offsets of a partition that lost commits appended.

The rule (docs/commit-protocol.md, Lost commits): the missing offsets are between the log end before
the loss and the first offset that a later commit shows. Segments with exactly these offsets are
added again. So are the segments of a single attempt with as many offsets. If there is no candidate,
the offsets become a hole. The user decides about anything else: a hole is for good, and vacuum
deletes what is not added.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from klog.connector.commit_log.append_commit import with_offset_shift
from klog.connector.commit_log.commit import Commit, Hole
from klog.connector.commit_log.lost_commit_errors import summarize_files
from klog.connector.commit_log.segment_entries import SegmentEntry
from klog.errors import KlogError
from klog.jobs.repairing.candidate_segments import CandidateSegment

CHOOSE = (
    "Name those that were committed with --use FILE, repeated in the order of the log, and add "
    "--declare-holes if the others were not: vacuum deletes them then"
)
"""The next step if the user must choose."""


@dataclass(frozen=True, slots=True)
class MissingOffsets:
    """Offsets of a partition that lost commits appended; `end` is None if nothing shows it."""

    partition: int
    start: int
    end: int | None


@dataclass(frozen=True, slots=True)
class FilledOffsets:
    """What fills missing offsets."""

    segments: Sequence[SegmentEntry]
    holes: Sequence[Hole] = ()


def fill_as_named(
    missing: MissingOffsets, named: Sequence[SegmentEntry], *, declare_holes: bool
) -> FilledOffsets:
    """Fill offsets with the segments that the user named.

    Args:
        missing: The offsets.
        named: The segments in the order of the log; the first that fit are used.
        declare_holes: Whether the other offsets become holes.

    Raises:
        KlogError: The segments do not fit the offsets.
    """
    start = missing.start
    end = start + offset_count(named) if missing.end is None else missing.end
    used: list[SegmentEntry] = []
    for entry in named:
        if offset_count(used) + offset_count([entry]) > end - start:
            break
        used.append(entry)
    if offset_count(used) == end - start:
        return FilledOffsets(_consecutive(used, start))
    if declare_holes:
        return FilledOffsets(used, _holes_between(missing.partition, used, start, end))
    raise KlogError(
        f"--use: the files of partition {missing.partition} have {offset_count(used)} offsets of "
        f"{start} to {end - 1}. Name all of them in the order of the log, or add --declare-holes"
    )


def fill_with_candidates(
    missing: MissingOffsets, candidates: Sequence[CandidateSegment], removed: set[str]
) -> FilledOffsets:
    """Fill offsets with the candidates of a partition, if there is only one way.

    Args:
        missing: The offsets.
        candidates: The candidates of the partition.
        removed: The files that later commits removed, so lost ones had added them.

    Raises:
        KlogError: The user must choose.
    """
    start, end = missing.start, missing.end
    intact = [candidate.entry for candidate in candidates if candidate.entry is not None]
    if end is None:
        return FilledOffsets(
            _following([entry for entry in intact if entry["file"] in removed], start)
        )
    within = [entry for entry in intact if start <= entry["base_offset"] < end]
    is_exact = _are_contiguous(within) and (
        within[0]["base_offset"] == start and within[-1]["next_offset"] == end
    )
    if is_exact:
        return FilledOffsets(within)
    attempts = {(candidate.path.base_version, candidate.path.attempt) for candidate in candidates}
    are_intact = len(intact) == len(candidates) and _are_contiguous(intact)
    if len(attempts) == 1 and are_intact and offset_count(intact) == end - start:
        return FilledOffsets(_consecutive(intact, start))
    if not candidates:
        return FilledOffsets([], [Hole(missing.partition, start, end)])
    files = summarize_files([str(candidate.path) for candidate in candidates])
    raise KlogError(
        f"partition {missing.partition}: offsets {start} to {end - 1} are missing, and may be "
        f"those of {files}. {CHOOSE}"
    )


def offset_count(entries: Iterable[SegmentEntry]) -> int:
    """Return how many offsets segments have.

    Args:
        entries: The entries of the segments.
    """
    return sum(entry["next_offset"] - entry["base_offset"] for entry in entries)


def shown_log_ends(later: Iterable[Commit]) -> dict[int, int]:
    """Return the log ends that later commits show, by partition.

    An adopted segment need not begin at the log end, so it shows nothing.

    Args:
        later: The commits after the lost ones, in order.
    """
    log_ends: dict[int, int] = {}
    unknown: set[int] = set()
    for commit in later:
        actions = commit.actions
        if actions.delete_topic or actions.created_topic is not None:
            break
        starts = [(hole.partition, hole.base_offset) for hole in actions.holes]
        # What a restore adds is older than the log end.
        for entry in actions.add if actions.restore is None else ():
            if entry["origin"] == "append":
                starts.append((entry["partition"], entry["base_offset"]))
            elif entry["origin"] == "adopt":
                unknown.add(entry["partition"])
        for partition, start in sorted(starts):
            log_ends.setdefault(partition, start)
        unknown.update(actions.explicit_log_end)
        for partition, log_end in actions.asserted_log_end.items():
            if partition not in unknown:
                log_ends.setdefault(partition, log_end)
    return {
        partition: log_end for partition, log_end in log_ends.items() if partition not in unknown
    }


def _consecutive(entries: Iterable[SegmentEntry], start: int) -> list[SegmentEntry]:
    """Return segments with their offsets shifted, so that they follow each other from `start`."""
    shifted: list[SegmentEntry] = []
    for entry in entries:
        shifted.append(with_offset_shift(entry, start - entry["base_offset"]))
        start = shifted[-1]["next_offset"]
    return shifted


def _holes_between(
    partition: int, entries: Iterable[SegmentEntry], start: int, end: int
) -> list[Hole]:
    """Return the offsets from `start` to before `end` that segments at their own offsets lack."""
    holes: list[Hole] = []
    for entry in entries:
        if not start <= entry["base_offset"] < entry["next_offset"] <= end:
            raise KlogError(
                f"--use: {entry['file']} has offsets {entry['base_offset']} to "
                f"{entry['next_offset'] - 1}, and {start} to {end - 1} are missing there. Name the "
                "files in the order of the log"
            )
        if entry["base_offset"] > start:
            holes.append(Hole(partition, start, entry["base_offset"]))
        start = entry["next_offset"]
    return [*holes, Hole(partition, start, end)] if start < end else holes


def _following(entries: Iterable[SegmentEntry], start: int) -> list[SegmentEntry]:
    """Return the segments that follow each other from an offset on."""
    following: list[SegmentEntry] = []
    for entry in entries:
        if entry["base_offset"] == start:
            following.append(entry)
            start = entry["next_offset"]
    return following


def _are_contiguous(entries: Sequence[SegmentEntry]) -> bool:
    pairs = pairwise(entries)
    return bool(entries) and all(
        entry["next_offset"] == after["base_offset"] for entry, after in pairs
    )
