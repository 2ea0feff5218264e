"""What the lost commits of one range appended to a partition.

The rule (docs/commit-protocol.md, Lost commits): the offsets that are missing are between the log
end before the loss and the first one that a later commit shows. Segments that have just these
offsets are added again, and so is the one attempt that has as many. Where nothing is left the
offsets are a hole. Anything else the user decides: a hole is for good, and vacuum deletes what is
not added.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from klog.connector.log.commit import Commit, Hole
from klog.connector.log.entries import Entry
from klog.connector.log.operations import shifted
from klog.errors import KlogError
from klog.jobs.repairing.candidates import Candidate

MAX_NAMED = 10
"""So many files are named in an error, and the others counted."""


@dataclass(frozen=True, slots=True)
class Choices:
    """What only the user knows.

    `use` are segments to add, in the order of the log. With `declare_holes` nothing else is added,
    and the other missing offsets become holes. With `discard_lost` the last commits, if files show
    that they are lost too, are not to come back. `topic_id`, `partitions` and `config` are those of
    a topic whose first commit is lost; `partitions` is also what another lost commit set.
    """

    use: Sequence[str] = ()
    declare_holes: bool = False
    discard_lost: bool = False
    topic_id: str = ""
    partitions: int = 0
    config: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Missing:
    """Offsets of a partition that lost commits appended; `end` is None if nothing shows it."""

    partition: int
    base: int
    end: int | None


Filling = tuple[list[Entry], list[Hole]]


def fill_by_choice(missing: Missing, queue: list[Entry], *, declare_holes: bool) -> Filling:
    """Fill offsets with the segments that the user named, and take these from the queue.

    Raises `KlogError` if they do not fit.
    """
    base, end = missing.base, missing.end
    end = base + length(queue) if end is None else end
    used: list[Entry] = []
    while queue and length(used) + length(queue[:1]) <= end - base:
        used.append(queue.pop(0))
    if length(used) == end - base:
        return _consecutive(used, base), []
    if declare_holes:
        return used, _gaps(missing.partition, used, base, end)
    raise KlogError(
        f"--use: the files of partition {missing.partition} have {length(used)} offsets of "
        f"{base} to {end - 1}. Name all of them in the order of the log, or add --declare-holes"
    )


def fill(missing: Missing, candidates: Sequence[Candidate], removed: set[str]) -> Filling:
    """Fill offsets with the candidates of a partition, if there is one way.

    `removed` are files that later commits took out, so lost ones had added them. Raises `KlogError`
    where the user has to choose.
    """
    base, end = missing.base, missing.end
    sound = [candidate.entry for candidate in candidates if candidate.entry is not None]
    if end is None:
        return _following([entry for entry in sound if entry["file"] in removed], base), []
    tile = [entry for entry in sound if base <= entry["base_offset"] < end]
    if _are_contiguous(tile) and tile[0]["base_offset"] == base and tile[-1]["next_offset"] == end:
        return tile, []
    attempts = {(candidate.path.birth, candidate.path.attempt) for candidate in candidates}
    is_whole = len(sound) == len(candidates) and _are_contiguous(sound)
    if len(attempts) == 1 and is_whole and length(sound) == end - base:
        return _consecutive(sound, base), []
    if not candidates:
        return [], [Hole(missing.partition, base, end)]
    raise KlogError(
        f"partition {missing.partition}: offsets {base} to {end - 1} are missing, and may be those "
        f"of {named([str(candidate.path) for candidate in candidates])}. {CHOOSE}"
    )


CHOOSE = (
    "Name those that were committed with --use FILE, repeated in the order of the log, and add "
    "--declare-holes if the others were not: vacuum deletes them then"
)


def named(files: Sequence[str]) -> str:
    """Return the first files by name, and how many more there are."""
    more = len(files) - MAX_NAMED
    return ", ".join(files[:MAX_NAMED]) + (f" and {more:,} more" if more > 0 else "")


def length(entries: Iterable[Entry]) -> int:
    """Return how many offsets segments have."""
    return sum(entry["next_offset"] - entry["base_offset"] for entry in entries)


def _consecutive(entries: Iterable[Entry], base: int) -> list[Entry]:
    """Return segments with offsets from `base` on, one after the other."""
    moved: list[Entry] = []
    for entry in entries:
        moved.append(shifted(entry, base - entry["base_offset"]))
        base = moved[-1]["next_offset"]
    return moved


def _gaps(partition: int, entries: Iterable[Entry], base: int, end: int) -> list[Hole]:
    """Return the offsets from `base` to before `end` that segments at their own offsets lack."""
    holes: list[Hole] = []
    for entry in entries:
        if not base <= entry["base_offset"] < entry["next_offset"] <= end:
            raise KlogError(
                f"--use: {entry['file']} has offsets {entry['base_offset']} to "
                f"{entry['next_offset'] - 1}, and {base} to {end - 1} are missing there. Name the "
                "files in the order of the log"
            )
        if entry["base_offset"] > base:
            holes.append(Hole(partition, base, entry["base_offset"]))
        base = entry["next_offset"]
    return [*holes, Hole(partition, base, end)] if base < end else holes


def _following(entries: Iterable[Entry], base: int) -> list[Entry]:
    """Return the segments that follow each other from an offset on."""
    following: list[Entry] = []
    for entry in entries:
        if entry["base_offset"] == base:
            following.append(entry)
            base = entry["next_offset"]
    return following


def _are_contiguous(entries: Sequence[Entry]) -> bool:
    pairs = pairwise(entries)
    return bool(entries) and all(one["next_offset"] == two["base_offset"] for one, two in pairs)


def shown_ends(later: Iterable[Commit]) -> dict[int, int]:
    """Return the log ends before these commits, of those partitions of which they show it.

    What a broker's log brought in need not begin at the log end, so it shows nothing.
    """
    ends: dict[int, int] = {}
    unknown: set[int] = set()
    for commit in later:
        actions = commit.actions
        if actions.delete_topic or actions.create_topic is not None:
            break
        starts = [(one.partition, one.base_offset) for one in actions.holes]
        for entry in actions.add:
            if entry["origin"] == "append":
                starts.append((entry["partition"], entry["base_offset"]))
            elif entry["origin"] == "adopt":
                unknown.add(entry["partition"])
        for partition, start in sorted(starts):
            ends.setdefault(partition, start)
        unknown.update(actions.ends_at)
        for partition, end in actions.log_end.items():
            if partition not in unknown:
                ends.setdefault(partition, end)
    return {partition: end for partition, end in ends.items() if partition not in unknown}
