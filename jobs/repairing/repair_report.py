"""What a repair put, or would put, by topic: for people and for machines."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from klog.connector.commit_log.commit import Commit
from klog.connector.commit_log.restore_json import hole_to_json
from klog.connector.commit_log.segment_entries import SegmentEntry
from klog.jobs.repairing.repair_plan import RepairPlan
from klog.jobs.shared.exit_codes import DONE, REFUSED
from klog.text_output import labelled
from klog.url_secrets import without_passwords


@dataclass(frozen=True, slots=True)
class RepairReport:
    """What a repair put, or would put, by topic.

    Attributes:
        root: The root, as the caller gave it.
        dry_run: Whether nothing was written.
        topics: By topic what was put, or would be.
        format_file: The path of the root's `format.json` if it was lost; else empty.
        seconds: How long the job took.
    """

    root: str
    dry_run: bool
    topics: dict[str, RepairPlan]
    format_file: str = ""
    seconds: float = 0.0

    @property
    def exit_code(self) -> int:
        """Return 1 if a topic cannot be repaired, or if a dry run found something lost."""
        has_problem = any(plan.problem for plan in self.topics.values())
        return REFUSED if has_problem or (self.dry_run and self._is_needed) else DONE

    @property
    def _is_needed(self) -> bool:
        return bool(self.format_file) or any(plan.is_needed for plan in self.topics.values())

    @property
    def _has_puts(self) -> bool:
        plans = self.topics.values()
        return bool(self.format_file) or any(plan.is_needed and not plan.problem for plan in plans)

    def lines(self) -> Iterator[str]:
        """Yield the lines of each topic, and one that sums up."""
        if self.format_file:
            yield labelled({"Put": self.format_file})
        for topic, plan in self.topics.items():
            yield from _lines(topic, plan)
        if any(plan.commits for plan in self.topics.values()):
            yield (
                "Not restored: what lost commits set (configs, log starts, a named writer's last "
                "batch) and what lost merges, compactions and restores replaced."
            )
        if not self._is_needed and not self.exit_code:
            yield "Nothing is lost below the last commits."
        elif self.dry_run and self._has_puts:
            yield "This was a dry run: give --execute to put these files."

    def as_json(self) -> dict[str, Any]:
        """Return the report for machines, in camelCase."""
        return {
            "root": without_passwords(self.root),
            "dryRun": self.dry_run,
            "formatFile": self.format_file or None,
            "topics": {topic: _as_json(plan) for topic, plan in self.topics.items()},
            "seconds": round(self.seconds, 3),
        }


def _lines(topic: str, plan: RepairPlan) -> Iterator[str]:
    for lost in plan.lost:
        yield labelled({"Topic": topic, "Lost": str(lost)})
    if plan.problem:
        yield labelled({"Topic": topic, "Error": plan.problem})
        return
    if plan.topic_file:
        yield labelled({"Topic": topic, "Put": plan.topic_file})
    if plan.checkpoint is not None:
        yield labelled({"Topic": topic, "LastExpiredVersion": plan.checkpoint.version})
    for commit in plan.commits:
        yield from _commit_lines(topic, commit)
    if plan.fence is not None:
        yield labelled({"Topic": topic, "Fence": plan.fence.version})
    for file in plan.not_added:
        yield labelled({"Topic": topic, "Not added": file})
    for file, version in plan.above_last_commit.items():
        yield labelled({"Topic": topic, "Discarded": file, "Version": version})
    for file in plan.missing:
        yield labelled({"Topic": topic, "Missing": file})


def _commit_lines(topic: str, commit: Commit) -> Iterator[str]:
    yield labelled({"Topic": topic, "Commit": commit.version})
    for entry in commit.actions.add:
        yield f"\t{labelled({'Added': entry['file'], 'Offsets': _offsets(entry)})}"
    for file in commit.actions.remove:
        yield f"\t{labelled({'Removed': file})}"
    for hole in commit.actions.holes:
        offsets = f"{hole.base_offset} to {hole.next_offset - 1}"
        yield f"\t{labelled({'Hole': hole.partition, 'Offsets': offsets})}"


def _offsets(entry: SegmentEntry) -> str:
    return f"{entry['base_offset']} to {entry['next_offset'] - 1}"


def _as_json(plan: RepairPlan) -> dict[str, Any]:
    commits = [
        {
            "version": commit.version,
            "added": [entry["file"] for entry in commit.actions.add],
            "removed": list(commit.actions.remove),
            "holes": [hole_to_json(hole) for hole in commit.actions.holes],
        }
        for commit in plan.commits
    ]
    return {
        "lost": [{"first": lost.first_version, "last": lost.last_version} for lost in plan.lost],
        "topicFile": plan.topic_file or None,
        "boundary": None if plan.checkpoint is None else plan.checkpoint.version,
        "commits": commits,
        "fence": None if plan.fence is None else plan.fence.version,
        "notAdded": list(plan.not_added),
        "missing": list(plan.missing),
        "aboveLastCommit": dict(plan.above_last_commit),
        "error": plan.problem or None,
    }
