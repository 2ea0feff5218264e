"""What the lost commits of one range appended, as far as the store still shows it.

The rule (docs/commit-protocol.md, Lost commits): the offsets that are missing are between the log
end before the loss and the first one that a later commit shows. Segments that fill them exactly are
added again. If none is left the offsets are a hole. Where segments are left that may belong there
and do not fit in just one way, the user chooses: a hole is for good, and vacuum would delete them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from klog.connector.log.commit import Commit, Hole
from klog.connector.log.entries import Entry
from klog.connector.log.operations import shifted
from klog.connector.log.paths import segment_path
from klog.errors import KlogError
from klog.jobs.repairing.candidates import Attempts, Candidates, Found, chains, content, length


@dataclass(frozen=True, slots=True)
class Choices:
    """What only the user knows.

    `use` are segments to add, in the order of the log; `declare_holes` says that nothing else is to
    be added. `topic_id`, `partitions` and `config` are those of a topic whose first commit is lost;
    `partitions` also is what a later lost commit set.
    """

    use: Sequence[str] = ()
    declare_holes: bool = False
    topic_id: str = ""
    partitions: int = 0
    config: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Filling:
    """What one range of lost commits is taken to have appended.

    `left` are segments that may have been added too and are not, as nothing shows it.
    """

    add: tuple[Entry, ...]
    holes: tuple[Hole, ...]
    left: tuple[Entry, ...]


def fill(
    candidates: Candidates,
    choices: Choices,
    log_end: Sequence[int],
    behind: Iterable[Commit],
    last: int,
) -> Filling:
    """Work out what lost commits up to version `last` appended.

    `log_end` is by partition before the loss, `behind` are the commits that follow it. Raises
    `KlogError` where the user has to choose.
    """
    behind = list(behind)
    shown = shown_ends(behind)
    removed = {file for commit in behind for file in commit.actions.remove}
    add: list[Entry] = []
    holes: list[Hole] = []
    left: list[Entry] = []
    for partition in range(max(len(log_end), max(shown, default=-1) + 1)):
        base = log_end[partition] if partition < len(log_end) else 0
        end = shown.get(partition)
        if end is not None and end <= base:
            continue
        used = _used(candidates, choices, partition)
        found = Found([], []) if used else candidates.of_partition(partition, last - 1)
        if end is None:
            unsure = [entry for one in found.appends + found.doubtful for entry in one]
            used = used or _following([one for one in unsure if one["file"] in removed], base)
            left += [one for one in unsure if one not in used]
            end = base + length(used)
        chosen = _choice(found, choices, used, (partition, base, end))
        for entry in chosen:
            add.append(shifted(entry, base - entry["base_offset"]))
            base = add[-1]["next_offset"]
        if base < end:
            holes.append(Hole(partition, base, end))
    return Filling(tuple(add), tuple(holes), tuple(left))


def _following(entries: list[Entry], base: int) -> list[Entry]:
    """Return the segments that follow each other from an offset on.

    A later commit removed them, so a lost one had added them.
    """
    following: list[Entry] = []
    for entry in sorted(entries, key=lambda entry: int(entry["base_offset"])):
        if entry["base_offset"] == base:
            following.append(entry)
            base = entry["next_offset"]
    return following


def _used(candidates: Candidates, choices: Choices, partition: int) -> list[Entry]:
    """Read the segments of a partition that the user chose."""
    paths = [path for path in map(segment_path, choices.use) if path is not None]
    used: list[Entry] = []
    for path in paths:
        if path.partition == partition:
            entry = candidates.entry(path) if str(path) in candidates.files else None
            if entry is None:
                raise KlogError(
                    f"--use: {path} is not there, is damaged, or a commit names it. Choose another"
                )
            used.append(entry)
    return used


def _choice(
    found: Found, choices: Choices, used: list[Entry], missing: tuple[int, int, int]
) -> list[Entry]:
    """Return the segments that fill a partition's offsets, none if they are a hole."""
    partition, base, end = missing
    if used:
        fits = length(used) == end - base
        begins = used[0]["base_offset"] == base and length(used) < end - base
        if not fits and not (begins and choices.declare_holes):
            raise KlogError(
                f"--use: the files of partition {partition} have {length(used)} offsets, and "
                f"{base} to {end - 1} are missing. Choose others, or --declare-holes for the rest"
            )
        return used
    fitting = [one for one in found.appends if length(one) == end - base]
    fitting += chains(found.appends, base, end)
    if len({content(one) for one in fitting}) == 1:
        return fitting[0]
    left = fitting or [one for one in found.appends + found.doubtful if length(one) <= end - base]
    if left and not choices.declare_holes:
        raise KlogError(
            f"partition {partition}: offsets {base} to {end - 1} are missing, and may be those of "
            f"{_named(left)}. Choose with --use FILE, repeated in the order of the log, or "
            "--declare-holes if none of them was committed"
        )
    return []


def _named(attempts: Attempts) -> str:
    return ", ".join(dict.fromkeys(str(entry["file"]) for one in attempts for entry in one))


def shown_ends(behind: Iterable[Commit]) -> dict[int, int]:
    """Return the log ends before these commits, of those partitions of which they show it.

    What a broker's log brought in need not begin at the log end, so it shows nothing.
    """
    ends: dict[int, int] = {}
    unknown: set[int] = set()
    for commit in behind:
        actions = commit.actions
        if actions.delete_topic or actions.create_topic is not None:
            break
        for entry in actions.add:
            if entry["origin"] == "append":
                ends.setdefault(entry["partition"], entry["base_offset"])
            elif entry["origin"] == "adopt":
                unknown.add(entry["partition"])
        unknown.update(actions.ends_at)
        for partition, end in actions.log_end.items():
            if partition not in unknown:
                ends.setdefault(partition, end)
    return {partition: end for partition, end in ends.items() if partition not in unknown}
