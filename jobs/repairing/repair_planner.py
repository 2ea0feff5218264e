"""Plan the repair of a topic's commit log; nothing is written.

The rule (docs/commit-protocol.md, Lost commits): repair never overwrites, renumbers or deletes. If
a complete checkpoint is at or above lost commits, it stands for them: the last expired version
rises to it. Else commits are put at the lost numbers (`lost_range_commits.py`). A plan whose
commits do not follow, or that leaves out a segment that may have been committed, is an error.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from klog.connector.commit_log.checkpoint_store import complete_checkpoints
from klog.connector.commit_log.commit import REPAIR, Actions, Commit
from klog.connector.commit_log.commit_info import NewId
from klog.connector.commit_log.commit_log import CommitLog
from klog.connector.commit_log.commit_log_paths import CheckpointName
from klog.connector.commit_log.forked_commits import find_forked_commits
from klog.connector.commit_log.lost_commit_errors import forked_commit_error, summarize_files
from klog.connector.commit_log.lost_commit_traces import (
    PartitionDirectories,
    list_partition_directories,
    traces_above,
)
from klog.connector.commit_log.lost_commits import LostCommits, find_lost_commits
from klog.connector.commit_log.segment_path import parse_segment_path
from klog.connector.commit_log.snapshot_leases import leased_versions
from klog.connector.commit_log.temporary_files import list_folders
from klog.connector.commit_log.topic_state import TopicState
from klog.errors import KlogError
from klog.jobs.repairing.candidate_segments import CandidateSegments, read_candidates
from klog.jobs.repairing.lost_range_commits import LostRangePlanner
from klog.jobs.repairing.missing_offsets import CHOOSE
from klog.jobs.repairing.repair_choices import RepairChoices
from klog.jobs.repairing.repair_plan import RepairPlan
from klog.jobs.repairing.repaired_log import RepairedLog
from klog.jobs.shared.job_failures import discarding_step


@dataclass(frozen=True, slots=True)
class _Listing:
    """The files in the topic's directories, relative to the root, and the versions that they show.

    `traces` has by file the version that it shows.
    """

    files: set[str]
    traces: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class RepairPlanner:
    """Plans the repair of one topic."""

    log: CommitLog
    new_id: NewId
    engine: str
    choices: RepairChoices = field(default_factory=RepairChoices)

    def read_plan(self) -> RepairPlan:
        """Read the log and return what to put; `problem` says why a topic cannot be repaired."""
        plan = RepairPlan()
        try:
            listing = self._list_files()  # First: a later file is no trace and no candidate.
            plan = replace(plan, lost=tuple(find_lost_commits(self.log)))
            state = self.log.newest_checkpoint()
            plan = replace(plan, topic_file=self._lost_topic_file(plan.lost, state))
            self._refuse_forks(state)
            if not plan.lost:
                return self._without_lost_commits(plan, listing)
            repaired = RepairedLog(self.log, state, plan.lost)
            repaired.replay_until_lost()
            top = max(plan.lost[-1].last_version, repaired.state.version)
            last_version = top + len(repaired.read_until_lost(top + 1))
            plan = self._with_traces(plan, last_version, listing)
            return self._with_commits(plan, repaired, listing)
        except KlogError as exc:
            return replace(plan, problem=str(exc))

    def _list_files(self) -> _Listing:
        directories, folders = list_partition_directories(self.log), list_folders(self.log)
        leases = leased_versions(self.log)
        traces = traces_above(-1, self.log.paths, directories, folders, leases)
        return _Listing(_files_in(directories), traces)

    def _without_lost_commits(self, plan: RepairPlan, listing: _Listing) -> RepairPlan:
        """Check the choices for a topic that has lost no commit below its last one."""
        state = replace(self.log, has_description=True).load()
        plan = self._with_traces(plan, state.version, listing)
        live_files = set(state.segments["file"].to_pylist())
        unused = [file for file in self.choices.use if file not in live_files]
        self._refuse_unneeded_choices(unused, state, [])
        return plan

    def _with_commits(
        self, plan: RepairPlan, repaired: RepairedLog, listing: _Listing
    ) -> RepairPlan:
        """Add to a plan what is put for lost commits."""
        checkpoint = self._checkpoint_above(plan.lost)
        ranges = [lost for lost in plan.lost if lost.last_version > repaired.state.version]
        candidates = CandidateSegments()
        if ranges:
            candidates = self._read_candidates(ranges, repaired, listing)
        # Listed again, as a live segment that a writer added meanwhile is not a missing one.
        files = _files_in(list_partition_directories(self.log))
        planner = LostRangePlanner(
            repaired, candidates, self.choices, files, self.new_id, self.engine
        )
        for lost in ranges:
            first_version = max(lost.first_version, repaired.state.version + 1)
            planner.replace_range(replace(lost, first_version=first_version))
        repaired.replay_until_lost()
        named_files = [entry["file"] for entry in candidates.named()]
        live_files = set(repaired.state.segments["file"].to_pylist())
        missing = tuple(sorted(live_files - _files_in(list_partition_directories(self.log))))
        self._refuse_unneeded_choices(named_files, repaired.state, repaired.new_commits)
        if not self.choices.declare_holes:
            _refuse_doubts(candidates.files, missing)
        return replace(
            plan,
            fence=self._fence(repaired),
            checkpoint=checkpoint,
            commits=tuple(repaired.new_commits),
            not_added=candidates.files,
            missing=missing,
        )

    def _with_traces(self, plan: RepairPlan, last_version: int, listing: _Listing) -> RepairPlan:
        """Add files that show versions above the last commit; refuse them unless discarded.

        Vacuum would delete what the last commits added, once other commits have their numbers.
        """
        above = {
            file: version for file, version in listing.traces.items() if version > last_version
        }
        if above and not (plan.lost and self.choices.discard_lost):
            raise KlogError(
                f"{summarize_files(list(above))}: {_log_end(last_version)}, and these files show "
                f"that version {max(above.values())} was made: the last commits are lost. Restore "
                "them from a copy. To go on without them, "
                + (
                    "give --discard-lost"
                    if plan.lost
                    else discarding_step(self.log.paths.topic, last_version)
                )
            )
        return replace(plan, above_last_commit=above)

    def _refuse_unneeded_choices(
        self, files: Sequence[str], state: TopicState, new_commits: Sequence[Commit]
    ) -> None:
        """Refuse choices that nothing needs and that the state does not already have.

        Args:
            files: Segments that the user named and no commit adds.
            state: The state after the repair.
            new_commits: The commits that are put.
        """
        choices = self.choices
        creates_topic = any(commit.actions.create_topic is not None for commit in new_commits)
        partitions = {commit.actions.partitions for commit in new_commits} | {0, state.partitions}
        is_needed = {
            "--config": choices.config.items() <= state.config.items() or creates_topic,
            "--partitions": choices.partitions in partitions or creates_topic,
            "--topic-id": choices.topic_id in ("", state.topic_id) or creates_topic,
        }
        unneeded = [choice for choice, needed in is_needed.items() if not needed] + sorted(files)
        if unneeded:
            raise KlogError(f"nothing that is lost needs {', '.join(unneeded)}: leave it out")

    def _fence(self, repaired: RepairedLog) -> Commit | None:
        """Return the commit on top that has each partition's log end; None if it is there.

        A writer whose state is from before the loss, and may differ, reads it and loads again.
        """
        state, last = repaired.state, repaired.last_commit
        log_ends = dict(enumerate(state.log_end))
        is_repair = last is not None and last.operation == REPAIR
        if last is not None and is_repair and last.actions.asserted_log_end == log_ends:
            return None  # A killed repair has put it.
        return Commit(
            version=state.version + 1,
            write_id=self.new_id(),
            previous_write_id=state.last_write_id,
            timestamp_ms=max(self.log.clock(), state.timestamp_ms + 1),
            operation=REPAIR,
            engine=self.engine,
            actions=Actions(asserted_log_end=log_ends),
        )

    def _lost_topic_file(self, lost: Sequence[LostCommits], state: TopicState) -> str:
        """Return the path of `topic.json` if it is lost: it is put before the first commit."""
        if self.log.has_description:
            return ""
        has_commits = lost or state.version >= 0 or self.log.read_without_sidecar(0) is not None
        return self.log.paths.description if has_commits else ""

    def _checkpoint_above(self, lost: Iterable[LostCommits]) -> CheckpointName | None:
        """Return the lowest complete checkpoint that stands for all commits that any stands for."""
        names = sorted(name for name, _ in complete_checkpoints(self.log))
        if not names:
            return None
        newest = names[-1].version
        last_versions = [
            min(commits.last_version, newest) for commits in lost if commits.first_version <= newest
        ]
        if not last_versions:
            return None
        return next((name for name in names if name.version >= max(last_versions)), None)

    def _refuse_forks(self, state: TopicState) -> None:
        """Refuse a commit that a checkpoint stands for with another: it would be lost for good."""
        for fork in find_forked_commits(self.log, state):
            raise fork if isinstance(fork, KlogError) else forked_commit_error(fork)

    def _read_candidates(
        self, ranges: Sequence[LostCommits], repaired: RepairedLog, listing: _Listing
    ) -> CandidateSegments:
        """Read the segments that no commit added, and note those that the user named."""
        files = {file for file in listing.files if parse_segment_path(file) is not None}
        files -= set(repaired.state.segments["file"].to_pylist())
        files -= set(repaired.state.removed["file"].to_pylist())
        for lost in ranges:
            for commit in repaired.read_until_lost(lost.last_version + 1):
                if not commit.actions.adds_removed_segments:  # Earlier commits had added them.
                    files -= {entry["file"] for entry in commit.actions.add}
                repaired.note_repair(commit)
        last_version = ranges[-1].last_version
        candidates = CandidateSegments(
            [
                candidate
                for candidate in read_candidates(self.log, files)
                if candidate.is_older_than(last_version)
            ]
        )
        for file in self.choices.use:
            if file not in repaired.repaired_files:  # Else a killed repair has added it.
                candidates.name(file)
        return candidates


def _files_in(directories: PartitionDirectories) -> set[str]:
    """Return the files in the topic's directories, relative to the root."""
    return {f"{directory}/{entry.name}" for directory, listed in directories for entry in listed}


def _refuse_doubts(not_added: Sequence[str], missing: Sequence[str]) -> None:
    """Refuse to leave segments out, and to put a log whose segments are missing."""
    if not_added:
        raise KlogError(f"{summarize_files(not_added)} may be from a lost commit. {CHOOSE}")
    if missing:
        raise KlogError(
            f"{summarize_files(missing)}: the repaired topic would have these segments, and they "
            "are missing: a lost commit may have removed them. Restore it from a copy, or name a "
            "merged segment with the same offsets with --use, or give --declare-holes to repair "
            "the log without them; reads of these offsets then fail"
        )


def _log_end(last_version: int) -> str:
    return f"the log ends at version {last_version}" if last_version >= 0 else "there is no commit"
