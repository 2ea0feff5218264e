"""What would make a topic's log whole again, worked out and not written.

The rule (docs/commit-protocol.md, Lost commits): repair never overwrites, renumbers or deletes. A
complete checkpoint at or above lost commits stands for them, so the boundary may rise to it.
Elsewhere commits are put at the lost numbers; the last one of a range has what `filling.py` works
out. What does not follow, or leaves a segment out that may have been committed, is said and not
put.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from klog.connector.log import entries
from klog.connector.log.author import NewId
from klog.connector.log.cleaning import whole_checkpoints
from klog.connector.log.commit import REPAIR, Actions, Commit, Hole
from klog.connector.log.entries import Entry
from klog.connector.log.forked_commits import find_forked_commits
from klog.connector.log.loss_errors import forked_commit_error
from klog.connector.log.lost_commits import LostCommits, find_lost_commits
from klog.connector.log.paths import CheckpointName, segment_path
from klog.connector.log.state import State, fold
from klog.connector.log.topic_log import TopicLog
from klog.connector.log.traces import find_traces_above, list_directories
from klog.errors import KlogError
from klog.jobs.repairing.candidates import Candidate, read_candidates
from klog.jobs.repairing.filling import (
    CHOOSE,
    Choices,
    Missing,
    fill,
    fill_by_choice,
    length,
    named,
    shown_ends,
)
from klog.jobs.repairing.plan import Plan
from klog.jobs.repairing.topic_changes import topic_actions

MAX_LOST = 10_000
"""So many commits of one range are put: a higher number is rather that of a bogus file."""


@dataclass(slots=True)
class Planner:
    """Plans the repair of one topic."""

    log: TopicLog
    new_id: NewId
    engine: str
    choices: Choices = field(default_factory=Choices)
    _state: State = field(default_factory=State)
    _made: list[Commit] = field(default_factory=list)
    _candidates: list[Candidate] = field(default_factory=list)
    _queue: list[Entry] = field(default_factory=list)
    _unused: set[str] = field(default_factory=set)
    _shown: dict[str, int] = field(default_factory=dict)
    _files: set[str] = field(default_factory=set)
    _last: Commit | None = None
    _repaired: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        """Note what the user chose: each choice has to be needed."""
        choices = self.choices
        flags = {"topic-id": choices.topic_id, "partitions": choices.partitions}
        flags |= {"config": bool(choices.config)}
        self._unused = {f"--{name}" for name, value in flags.items() if value}

    def plan(self) -> Plan:
        """Return what to put."""
        plan = Plan()
        try:
            self._shown = find_traces_above(self.log, -1)  # First: what comes later is no trace.
            plan = replace(plan, lost=tuple(find_lost_commits(self.log)))
            self._state = self.log.newest_checkpoint()
            plan = replace(plan, description=self._lost_description(plan.lost))
            self._check_checkpoint()
            if not plan.lost:
                self._state = replace(self.log, is_described=True).load()
                plan = self._with_traces(plan, self._state.version)
                self._unused |= set(self.choices.use) - set(
                    self._state.segments["file"].to_pylist()
                )
                self._refuse_unused_choices()
                return plan
            self._files = _list_files(self.log)
            self._fold(self._read(self._state.version + 1, plan.lost))
            top = max(plan.lost[-1].last, self._state.version)
            tip = top + len(self._read(top + 1, plan.lost))
            return self._with_commits(self._with_traces(plan, tip))
        except KlogError as exc:
            return replace(plan, problem=str(exc))

    def _with_commits(self, plan: Plan) -> Plan:
        """Add to a plan what is put for lost commits."""
        checkpoint = self._resting(plan.lost)
        ranges = [one for one in plan.lost if one.last > self._state.version]
        if ranges:
            self._read_candidates(ranges)
        for one in ranges:
            first = max(one.first, self._state.version + 1)
            self._fill(replace(one, first=first), plan.lost)
        self._fold(self._read(self._state.version + 1, plan.lost))
        left = tuple(str(candidate.path) for candidate in self._candidates)
        live = set(self._state.segments["file"].to_pylist())
        gone = tuple(sorted(live - _list_files(self.log)))  # What writers added meanwhile is there.
        self._refuse_unused_choices()
        if not self.choices.declare_holes:
            _refuse_doubts(left, gone)
        return replace(
            plan,
            fence=self._fence(),
            checkpoint=checkpoint,
            commits=tuple(self._made),
            left=left,
            gone=gone,
        )

    def _with_traces(self, plan: Plan, tip: int) -> Plan:
        """Add files that show versions above the last commit; refuse them unless told otherwise.

        What the last commits added would go as an orphan once other commits have their numbers.
        """
        above = {file: version for file, version in self._shown.items() if version > tip}
        if above and not (plan.lost and self.choices.discard_lost):
            raise KlogError(
                f"{named(list(above))}: the log ends at version {tip}, and these files show that "
                f"version {max(above.values())} was made: the last commits are lost too. Restore "
                "them from a copy. If they are not to come back, give --discard-lost, to `klog "
                "vacuum` where nothing else is lost"
            )
        return replace(plan, above=above)

    def _refuse_unused_choices(self) -> None:
        """Refuse choices that nothing needed and nothing shows to be done."""
        choices, state = self.choices, self._state
        done = {"--topic-id": choices.topic_id == state.topic_id}
        done["--partitions"] = choices.partitions == state.partitions
        done["--config"] = choices.config.items() <= state.config.items()
        unused = sorted(flag for flag in self._unused if not done.get(flag)) + [
            str(entry["file"]) for entry in self._queue
        ]
        if unused:
            raise KlogError(f"nothing that is lost needs {', '.join(unused)}: leave it out")

    def _fence(self) -> Commit | None:
        """Return the commit on top that says where each partition ends.

        A writer that has the state from before the loss, which may differ, is refused by it.
        """
        state, last = self._state, self._last
        ends = dict(enumerate(state.log_end))
        if last is not None and last.operation == REPAIR and last.actions.log_end == ends:
            return None  # A repair that was killed has put it.
        return Commit(
            version=state.version + 1,
            write_id=self.new_id(),
            previous_write_id=state.last_write_id,
            timestamp_ms=max(self.log.clock(), state.timestamp_ms + 1),
            operation=REPAIR,
            engine=self.engine,
            actions=Actions(log_end=ends),
        )

    def _lost_description(self, lost: Sequence[LostCommits]) -> str:
        """Return the path of `topic.json` if it is lost: it is there before the first commit."""
        if self.log.is_described:
            return ""
        has_commits = lost or self._state.version >= 0 or self.log.read_alone(0) is not None
        return self.log.paths.description if has_commits else ""

    def _resting(self, lost: Iterable[LostCommits]) -> CheckpointName | None:
        """Return the lowest complete checkpoint that stands for all lost commits that one does."""
        names = sorted(name for name, _ in whole_checkpoints(self.log))
        if not names:
            return None
        tops = [min(one.last, names[-1].version) for one in lost if one.first <= names[-1].version]
        return next((name for name in names if tops and name.version >= max(tops)), None)

    def _check_checkpoint(self) -> None:
        """Refuse a checkpoint that does not know a commit: what this one did would be lost."""
        for one in find_forked_commits(self.log, self._state):
            raise one if isinstance(one, KlogError) else forked_commit_error(one)

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

    def _read_candidates(self, ranges: Sequence[LostCommits]) -> None:
        """Read the segments that no commit added, and find those that the user named."""
        files = {file for file in self._files if segment_path(file) is not None}
        files -= set(self._state.segments["file"].to_pylist())
        files -= set(self._state.removed["file"].to_pylist())
        for one in ranges:
            for commit in self._read(one.last + 1, ranges):
                added = {entry["file"] for entry in commit.actions.add}
                files -= added
                self._repaired |= added if commit.operation == REPAIR else set()
        last = ranges[-1].last
        candidates = read_candidates(self.log, files)
        self._candidates = [one for one in candidates if one.is_older(last)]
        by_file = {str(candidate.path): candidate for candidate in self._candidates}
        for file in self.choices.use:
            if file in self._repaired:
                continue  # A repair that was killed has added it.
            candidate = by_file.get(file)
            if candidate is None or candidate.entry is None:
                raise KlogError(
                    f"--use: {file} is not there, is damaged, has gaps, or a commit names it. "
                    "Choose another"
                )
            self._queue.append(candidate.entry)

    def _fold(self, commits: Sequence[Commit]) -> None:
        """Apply commits to the state."""
        try:
            self._state = fold(self._state, commits)
        except KlogError as exc:
            raise KlogError(
                f"{self.log.paths.commits}: {exc}. What the lost commits did cannot be worked out: "
                "restore them from a copy"
            ) from exc
        for commit in commits:
            self._last = commit
            if commit.operation == REPAIR:
                self._repaired |= {entry["file"] for entry in commit.actions.add}

    def _fill(self, lost: LostCommits, all_lost: Sequence[LostCommits]) -> None:
        """Plan the commits of one range, and see that the commits after it follow."""
        first, last = lost.first, lost.last
        self._fold(self._read(self._state.version + 1, all_lost))
        later = self._read(last + 1, all_lost)
        if self._state.version != first - 1 or not later:
            raise KlogError("the log was changed meanwhile; run repair again")
        times = self._times(lost, later[0])
        used = max((entry["partition"] for entry in self._queue), default=-1)
        topic = topic_actions(self._state, self.choices, later, used + 1, self.new_id)
        if topic.create_topic is not None:
            self._unused.clear()
        elif topic.partitions is not None:
            self._unused.discard("--partitions")
        filled = self._filled(lost, later)
        known_id = later[0].previous_write_id
        for version, time_ms in zip(range(first, last + 1), times, strict=True):
            actions = topic if version == first else Actions()
            if version == last:
                actions = replace(
                    actions,
                    add=filled.add,
                    remove=filled.remove,
                    holes=filled.holes,
                    horizon=last,  # A lost vacuum may have raised it, and deleted what is older.
                )
            commit = Commit(
                version=version,
                write_id=known_id if version == last and known_id else self.new_id(),
                previous_write_id=self._state.last_write_id,
                timestamp_ms=time_ms,
                operation=REPAIR,
                engine=self.engine,
                actions=actions,
            )
            self._made.append(commit)
            self._fold([commit])
        self._fold(later)

    def _times(self, lost: LostCommits, later: Commit) -> range:
        """Return the times of the commits of a range: they have to rise."""
        count = lost.last - lost.first + 1
        if count > MAX_LOST:
            raise KlogError(
                f"{count:,} commits are lost, as {lost.evidence.source} shows: at most "
                f"{MAX_LOST:,} are put. Take the file away if klog did not write it"
            )
        start = later.timestamp_ms - count
        if start <= self._state.timestamp_ms and lost.first:
            raise KlogError(
                f"commits {lost.first - 1} and {later.version} are too close in time for {count:,} "
                "commits between them: restore the lost ones from a copy"
            )
        return range(start, later.timestamp_ms)

    def _filled(self, lost: LostCommits, later: Sequence[Commit]) -> Actions:
        """Return what the lost commits of a range appended, and take it from the candidates."""
        add, remove = self._replacements()
        holes: list[Hole] = []
        ends, log_end = shown_ends(later), self._state.log_end
        removed = {file for commit in later for file in commit.actions.remove}
        partitions = {candidate.path.partition for candidate in self._candidates}
        for partition in sorted(partitions | ends.keys()):
            base = log_end[partition] if partition < len(log_end) else 0
            missing = Missing(partition, base, ends.get(partition))
            if missing.end is not None and missing.end <= base:
                continue
            filled, gaps = self._fill_partition(missing, lost.last, removed)
            add += filled
            holes += gaps
        files = {entry["file"] for entry in add}
        self._candidates = [one for one in self._candidates if str(one.path) not in files]
        add.sort(key=lambda entry: (entry["partition"], entry["base_offset"]))
        return Actions(add=tuple(add), remove=tuple(remove), holes=tuple(holes))

    def _replacements(self) -> tuple[list[Entry], list[str]]:
        """Return the segments that the user named in place of live ones, and these.

        A lost merge put such a segment in the place of others, which vacuum deleted since.
        """
        add: list[Entry] = []
        remove: list[str] = []
        for entry in list(self._queue):
            rows = entries.of_partition(self._state.segments, entry["partition"]).to_pylist()
            start, end = entry["base_offset"], entry["next_offset"]
            same = [one for one in rows if start <= one["base_offset"] < end]
            files = {one["file"] for one in same}
            if length(same) == end - start and not files & self._files:
                self._queue.remove(entry)
                add.append({**entry, "origin": "merge"})
                remove += files
        return add, remove

    def _fill_partition(
        self, missing: Missing, last: int, removed: set[str]
    ) -> tuple[list[Entry], list[Hole]]:
        """Fill the missing offsets of a partition: by what the user chose, if they chose."""
        is_chosen = self.choices.declare_holes
        own = [entry for entry in self._queue if entry["partition"] == missing.partition]
        if own or is_chosen:
            rest = list(own)
            filled = fill_by_choice(missing, rest, declare_holes=is_chosen)
            used = [entry for entry in own if entry not in rest]
            self._queue = [entry for entry in self._queue if entry not in used]
            return filled
        candidates = [
            one
            for one in self._candidates
            if one.path.partition == missing.partition and one.is_older(last)
        ]
        return fill(missing, candidates, removed)


def _list_files(log: TopicLog) -> set[str]:
    """List the files in the topic's directories, relative to the root."""
    return {
        f"{directory}/{entry.name}"
        for directory, entries in list_directories(log)
        for entry in entries
    }


def _refuse_doubts(left: Sequence[str], gone: Sequence[str]) -> None:
    """Refuse to leave segments out, and to put a log whose segments are not there."""
    if left:
        raise KlogError(f"{named(left)} may be of a lost commit. {CHOOSE}")
    if gone:
        raise KlogError(
            f"{named(gone)}: the repaired topic would have these segments, and they are not there: "
            "a lost commit may have removed them. Restore it from a copy, or name a merged segment "
            "with the same offsets with --use, or give --declare-holes to repair the log as it is; "
            "reads of these offsets then fail"
        )
