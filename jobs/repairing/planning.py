"""What would make a topic's log whole again, worked out and not written.

The rule (docs/commit-protocol.md, Lost commits): repair never overwrites, renumbers or deletes. A
complete checkpoint at or above lost commits stands for them, so the boundary may rise to it.
Elsewhere the offsets that are missing are between the log end before the loss and the first one
that a later commit shows: the last of the lost commits adds segments that fill them exactly, or
declares them a hole. What does not follow, or fits in two ways, is said and not put.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from klog.connector.log.author import NewId
from klog.connector.log.cleaning import whole_checkpoints
from klog.connector.log.commit import REPAIR, Actions, Commit, Hole
from klog.connector.log.entries import Entry
from klog.connector.log.garbage import files_of
from klog.connector.log.lost_commits import LostCommits, find_lost_commits
from klog.connector.log.operations import shifted
from klog.connector.log.paths import CheckpointName, segment_path
from klog.connector.log.state import State, fold
from klog.connector.log.topic_log import TopicLog
from klog.errors import KlogError
from klog.jobs.repairing.candidates import Candidates, chains, content, length


@dataclass(frozen=True, slots=True)
class Plan:
    """What to put, in order; `problem` says what cannot be repaired, and then nothing is put."""

    lost: tuple[LostCommits, ...] = ()
    checkpoint: CheckpointName | None = None
    """The boundary rises to its version."""
    commits: tuple[Commit, ...] = ()
    problem: str = ""


@dataclass(slots=True)
class Planner:
    """Plans the repair of one topic; `use` are segments that the user chose, in order."""

    log: TopicLog
    new_id: NewId
    engine: str
    use: Sequence[str] = ()
    _state: State = field(default_factory=State)
    _ends: dict[int, tuple[int, ...]] = field(default_factory=dict)
    _made: list[Commit] = field(default_factory=list)
    _is_repaired: bool = False

    def plan(self) -> Plan:
        """Return what to put."""
        lost = tuple(find_lost_commits(self.log))
        checkpoint: CheckpointName | None = None
        try:
            if not lost:
                self.log.load()
                return Plan()
            self._state = self.log.newest_checkpoint()
            checkpoint = self._resting(lost)
            self._check_checkpoint(lost)
            self._ends[self._state.version] = self._state.log_end
            for one in lost:
                if one.last > self._state.version:
                    first = max(one.first, self._state.version + 1)
                    self._fill(first, one.last, lost)
            self._fold(self._read(self._state.version + 1, lost))
        except KlogError as exc:
            return Plan(lost, problem=str(exc))
        return Plan(lost, checkpoint, tuple(self._made))

    def _resting(self, lost: Iterable[LostCommits]) -> CheckpointName | None:
        """Return the lowest complete checkpoint that stands for all lost commits that one does."""
        names = sorted(name for name, _ in whole_checkpoints(self.log))
        if not names:
            return None
        tops = [min(one.last, names[-1].version) for one in lost if one.first <= names[-1].version]
        return next((name for name in names if tops and name.version >= max(tops)), None)

    def _check_checkpoint(self, lost: Iterable[LostCommits]) -> None:
        """Refuse a checkpoint of another log: the newest commit below it has to be its own."""
        version = self._state.version
        while any(one.first <= version <= one.last for one in lost):
            version = min(one.first for one in lost if one.first <= version <= one.last) - 1
        found = self.log.read_alone(version) if version >= 0 else None
        if found is not None and self._state.remembers(version):
            written = self._state.writes.get(found.write_id)
            if written != version:
                raise KlogError(
                    f"{self.log.paths.commit(version)}: the newest checkpoint does not know this "
                    "commit, so it is of another log. Restore the topic's folder from a copy"
                )

    def _read(self, version: int, lost: Iterable[LostCommits]) -> list[Commit]:
        """Read the commits from a version on, up to the next that is lost."""
        stops = {one.first for one in lost}
        found: list[Commit] = []
        while (number := version + len(found)) not in stops:
            commit = self.log.read(number)
            if commit is None:
                break
            found.append(commit)
        return found

    def _fold(self, commits: Iterable[Commit]) -> None:
        for commit in commits:
            self._state = fold(self._state, [commit])
            # After a loss, also a repaired one, the log ends are not those that a writer saw.
            self._is_repaired |= commit.operation == REPAIR
            if not self._is_repaired:
                self._ends[commit.version] = self._state.log_end

    def _fill(self, first: int, last: int, lost: Sequence[LostCommits]) -> None:
        """Plan the commits of one range, and see that the commits after it follow."""
        self._fold(self._read(self._state.version + 1, lost))
        if self._state.version != first - 1:
            raise KlogError(f"commit {self._state.version + 1} cannot be read; run repair again")
        if first == 0:
            raise KlogError(
                f"{self.log.paths.commit(0)}: this commit made the topic, and no complete "
                "checkpoint stands for it. Restore it from a copy"
            )
        behind = self._read(last + 1, lost)
        if not behind:
            raise KlogError(f"commit {last + 1} cannot be read; run repair again")
        if behind[0].timestamp_ms - self._state.timestamp_ms <= last - first + 1:
            raise KlogError(
                f"commits {first - 1} and {last + 1} are too close in time for {last - first + 1} "
                "commits between them: restore the lost ones from a copy"
            )
        filled = self._filled(last, behind, lost)
        known = behind[0].previous_write_id
        for version in range(first, last + 1):
            is_last = version == last
            commit = Commit(
                version=version,
                write_id=known if is_last and known else self.new_id(),
                previous_write_id=self._state.last_write_id,
                timestamp_ms=self._state.timestamp_ms + 1,
                operation=REPAIR,
                engine=self.engine,
                actions=filled if is_last else Actions(),
            )
            self._made.append(commit)
            self._fold([commit])
        self._fold(behind)

    def _filled(self, last: int, behind: list[Commit], lost: Sequence[LostCommits]) -> Actions:
        """Work out what the lost commits appended."""
        candidates = Candidates(self.log, self._unreferenced(lost), self._ends)
        add: list[Entry] = []
        holes: list[Hole] = []
        for partition, end in sorted(_shown_ends(behind).items()):
            base = self._state.log_end[partition] if partition < self._state.partitions else end
            if end <= base:
                continue
            for entry in self._choice(candidates, partition, base, end, last):
                add.append(shifted(entry, base - entry["base_offset"]))
                base = add[-1]["next_offset"]
            if base < end:
                holes.append(Hole(partition, base, end))
        return Actions(add=tuple(add), holes=tuple(holes))

    def _choice(
        self, candidates: Candidates, partition: int, base: int, end: int, last: int
    ) -> list[Entry]:
        """Return the segments that fill offsets exactly, none if nothing does."""
        paths = [path for path in map(segment_path, self.use) if path is not None]
        used = [candidates.entry(path) for path in paths if path.partition == partition]
        if used:
            sound = [entry for entry in used if entry is not None]
            if len(sound) < len(used) or length(sound) != end - base:
                raise KlogError(
                    f"--use: the files of partition {partition} do not fill offsets {base} to "
                    f"{end - 1}, or are damaged. Choose others, or none"
                )
            return sound
        attempts = candidates.of_partition(partition, last - 1, base)
        fitting = [one for one in attempts if length(one) == end - base]
        fitting += chains(attempts, base, end)
        if len({content(one) for one in fitting}) == 1:
            return fitting[0]
        if fitting or sum(map(length, attempts)) == end - base > 0:
            files = ", ".join(str(e["file"]) for one in fitting or attempts for e in one)
            raise KlogError(
                f"partition {partition}: offsets {base} to {end - 1} may be those of different "
                f"files: {files}. Choose with --use FILE, repeated in the order of the log"
            )
        return []

    def _unreferenced(self, lost: Sequence[LostCommits]) -> set[str]:
        """Return the segments on the store that no commit and no checkpoint names."""
        files = files_of(self.log) - set(self._state.segments["file"].to_pylist())
        files -= set(self._state.removed["file"].to_pylist())
        starts = {one.last + 1 for one in lost if one.last >= self._state.version}
        for start in starts:
            for commit in self._read(start, lost):
                files -= {entry["file"] for entry in commit.actions.add}
                files -= {*commit.actions.remove, *commit.actions.forget}
        return files


def _shown_ends(behind: Iterable[Commit]) -> dict[int, int]:
    """Return the log ends before these commits, of those partitions of which they show it."""
    ends: dict[int, int] = {}
    for commit in behind:
        if commit.actions.delete_topic or commit.actions.create_topic is not None:
            break
        for entry in commit.actions.add:
            if entry["origin"] == "append":
                ends.setdefault(entry["partition"], entry["base_offset"])
        for partition, end in commit.actions.log_end.items():
            ends.setdefault(partition, end)
    return ends
