"""Plan the commits that are put at the numbers of one range of lost commits.

The rule: the first commit of a range has what was done to the topic, the last one the segments and
holes of the missing offsets; those between are empty. Their times rise, and end before that of the
next commit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from klog.connector.commit_log import segment_entries
from klog.connector.commit_log.commit import REPAIR, Actions, Commit, Hole
from klog.connector.commit_log.commit_info import NewId
from klog.connector.commit_log.lost_commits import LostCommits
from klog.connector.commit_log.segment_entries import SegmentEntry
from klog.errors import KlogError
from klog.jobs.repairing.candidate_segments import CandidateSegments
from klog.jobs.repairing.lost_topic_changes import topic_actions
from klog.jobs.repairing.missing_offsets import (
    FilledOffsets,
    MissingOffsets,
    fill_as_named,
    fill_with_candidates,
    offset_count,
    shown_log_ends,
)
from klog.jobs.repairing.repair_choices import RepairChoices
from klog.jobs.repairing.repaired_log import RepairedLog

MAX_LOST = 10_000
"""At most so many commits of one range are put: a higher number is rather from a bogus file."""


@dataclass(frozen=True, slots=True)
class LostRangePlanner:
    """Plans the commits of lost ranges; the lowest range comes first.

    `files` are those in the topic's directories, relative to the root.
    """

    repaired: RepairedLog
    candidates: CandidateSegments
    choices: RepairChoices
    files: set[str]
    new_id: NewId
    engine: str

    def replace_range(self, lost: LostCommits) -> None:
        """Add the commits of one range to the repaired log, and then the commits after it.

        Args:
            lost: The range.

        Raises:
            KlogError: The user must choose, or the commits after it do not follow.
        """
        first, last = lost.first_version, lost.last_version
        self.repaired.replay_until_lost()
        later = self.repaired.read_until_lost(last + 1)
        if self.repaired.state.version != first - 1 or not later:
            raise KlogError("the log was changed meanwhile; run repair again")
        timestamps = self._timestamps(lost, later[0])
        named = [entry["partition"] for entry in self.candidates.named()]
        named_partitions = max(named, default=-1) + 1
        topic = topic_actions(
            self.repaired.state, self.choices, later, named_partitions, self.new_id
        )
        filled = self._fill(lost, later)
        write_id = later[0].previous_write_id
        for version, timestamp_ms in zip(range(first, last + 1), timestamps, strict=True):
            actions = topic if version == first else Actions()
            if version == last:
                actions = replace(
                    actions,
                    add=filled.add,
                    remove=filled.remove,
                    holes=filled.holes,
                    vacuum_version=last,  # A lost vacuum may have deleted older files.
                )
            commit = Commit(
                version=version,
                write_id=write_id if version == last and write_id else self.new_id(),
                previous_write_id=self.repaired.state.last_write_id,
                timestamp_ms=timestamp_ms,
                operation=REPAIR,
                engine=self.engine,
                actions=actions,
            )
            self.repaired.append(commit)
        self.repaired.replay(later)

    def _timestamps(self, lost: LostCommits, later: Commit) -> range:
        """Return the timestamps of the commits of a range: they have to rise."""
        count = lost.last_version - lost.first_version + 1
        if count > MAX_LOST:
            raise KlogError(
                f"{count:,} commits are lost, as {lost.evidence.source} shows: at most "
                f"{MAX_LOST:,} are put. Move the file away if klog did not write it"
            )
        start_ms = later.timestamp_ms - count
        if start_ms <= self.repaired.state.timestamp_ms and lost.first_version:
            raise KlogError(
                f"commits {lost.first_version - 1} and {later.version} are too close in time for "
                f"{count:,} commits between them: restore the lost ones from a copy"
            )
        return range(start_ms, later.timestamp_ms)

    def _fill(self, lost: LostCommits, later: Sequence[Commit]) -> Actions:
        """Return what the lost commits of a range appended, and remove it from the candidates."""
        add, remove = self._replacements()
        holes: list[Hole] = []
        shown_ends, log_ends = shown_log_ends(later), self.repaired.state.log_end
        removed = {file for commit in later for file in commit.actions.remove}
        for partition in sorted(self.candidates.partitions | shown_ends.keys()):
            start = log_ends[partition] if partition < len(log_ends) else 0
            missing = MissingOffsets(partition, start, shown_ends.get(partition))
            if missing.end is not None and missing.end <= start:
                continue
            filled = self._fill_partition(missing, lost.last_version, removed)
            self.candidates.remove_named(filled.segments)
            add += filled.segments
            holes += filled.holes
        self.candidates.remove(add)
        add.sort(key=lambda entry: (entry["partition"], entry["base_offset"]))
        return Actions(add=tuple(add), remove=tuple(remove), holes=tuple(holes))

    def _fill_partition(
        self, missing: MissingOffsets, version: int, removed: set[str]
    ) -> FilledOffsets:
        """Fill the missing offsets of a partition, as the user chose if they did."""
        named = self.candidates.named(missing.partition)
        declare_holes = self.choices.declare_holes
        if named or declare_holes:
            return fill_as_named(missing, named, declare_holes=declare_holes)
        candidates = self.candidates.of_partition(missing.partition, version)
        return fill_with_candidates(missing, candidates, removed)

    def _replacements(self) -> tuple[list[SegmentEntry], list[str]]:
        """Return segments that the user named, and the files of the live ones that they replace.

        A lost merge replaced live segments with such a segment, and vacuum deleted them since.
        """
        add: list[SegmentEntry] = []
        remove: list[str] = []
        for entry in self.candidates.named():
            live = segment_entries.rows_of_partition(
                self.repaired.state.segments, entry["partition"]
            ).to_pylist()
            start, end = entry["base_offset"], entry["next_offset"]
            replaced = [segment for segment in live if start <= segment["base_offset"] < end]
            files = {segment["file"] for segment in replaced}
            if offset_count(replaced) == end - start and not files & self.files:
                self.candidates.remove_named([entry])
                add.append({**entry, "origin": "merge"})
                remove += files
        return add, remove
