"""What a vacuum deleted, or would delete, by topic: for people and for machines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from klog.connector.commit_log.orphan_files import OrphanFiles, WaitingFiles
from klog.connector.commit_log.segment_path import segment_of_file
from klog.jobs.shared.exit_codes import DONE, REFUSED
from klog.jobs.vacuuming.file_kind_names import TEMPORARY
from klog.text_output import labelled, time_text
from klog.url_secrets import without_passwords


@dataclass(frozen=True, slots=True)
class VacuumedTopic:
    """The files and commits of a topic that are deleted.

    Attributes:
        topic: The topic.
        orphan_files: The files.
        commits: How many commits.
        error: What ended the vacuum of the topic; empty if nothing did.
    """

    topic: str
    orphan_files: OrphanFiles = field(default_factory=lambda: OrphanFiles((), ()))
    commits: int = 0
    error: str = ""

    @property
    def size_bytes(self) -> int:
        """Return the bytes of the files that are deleted."""
        return sum(self.orphan_files.files.values())

    @property
    def files_by_kind(self) -> dict[str, Iterable[str]]:
        """Return the files by why they are deleted; a segment stands for its indexes too."""
        files = self.orphan_files
        return {
            "removed": files.removed,
            "orphan": files.uncommitted,
            TEMPORARY: files.temporary_files,
        }

    def total(self) -> str:
        """Return as text how much is deleted."""
        return _total(len(self.orphan_files.files), self.size_bytes, self.commits)

    def lines(self) -> Iterator[str]:
        """Yield the topic's lines: its error, what is deleted, what waits, and what stays."""
        topic, files = {"Topic": self.topic}, self.orphan_files.files
        if self.error:
            yield labelled({**topic, "Error": self.error})
        if self.commits:
            yield labelled({**topic, "Commits": self.commits})
        if files:
            yield labelled({**topic, "Files": len(files), "Bytes": self.size_bytes})
        kinds = {file: kind for kind, files in self.files_by_kind.items() for file in files}
        for file, size_bytes in files.items():
            kind = kinds.get(file) or kinds.get(segment_of_file(file) or "", "")
            yield f"\t{labelled({'File': file, 'Bytes': size_bytes, 'Kind': kind})}"
        waiting = self.orphan_files.waiting
        if waiting.files:
            yield labelled({**topic, **_waiting_labels(waiting)})
        above = self.orphan_files.traces
        if above:
            yield labelled({**topic, "AboveLastCommit": len(above)})
        for file, version in above.items():
            yield f"\t{labelled({'File': file, 'Version': version})}"
        linked = self.orphan_files.linked
        if linked:
            yield labelled({**topic, "Left": len(linked)})
        for file, link in linked.items():
            yield f"\t{labelled({'File': file, 'Link': link})}"

    def as_json(self) -> dict[str, Any]:
        """Return the topic for machines, in camelCase."""
        kinds = {kind: list(files) for kind, files in self.files_by_kind.items()}
        return {
            **({"error": self.error} if self.error else {}),
            **kinds,
            "files": dict(self.orphan_files.files),
            "bytes": self.size_bytes,
            "commits": self.commits,
            "waiting": {
                "files": self.orphan_files.waiting.files,
                "bytes": self.orphan_files.waiting.size_bytes,
                "firstMs": self.orphan_files.waiting.first_ms,
                "lastMs": self.orphan_files.waiting.last_ms,
            },
            "aboveLastCommit": dict(self.orphan_files.traces),
            "left": dict(self.orphan_files.linked),
        }


@dataclass(frozen=True, slots=True)
class VacuumReport:
    """What a vacuum deleted, or would delete.

    Attributes:
        root: The root, as the caller gave it.
        dry_run: Whether nothing was deleted.
        grace_ms: The grace period of writers, in ms.
        topics: What happened to each topic.
        seconds: How long the job took.
    """

    root: str
    dry_run: bool
    grace_ms: int
    topics: tuple[VacuumedTopic, ...] = ()
    seconds: float = 0.0

    @property
    def exit_code(self) -> int:
        """Return 1 if a topic could not be vacuumed or has lost commits, else 0."""
        has_problem = any(topic.error or topic.orphan_files.traces for topic in self.topics)
        return REFUSED if has_problem else DONE

    def lines(self) -> Iterator[str]:
        """Yield the lines of each topic, and one with the totals."""
        files = size_bytes = commits = 0
        for topic in self.topics:
            yield from topic.lines()
            files += len(topic.orphan_files.files)
            size_bytes += topic.size_bytes
            commits += topic.commits
        total = _total(files, size_bytes, commits)
        if not self.dry_run:
            yield f"Deleted {total}."
        elif files or commits:
            yield f"Would delete {total}. This was a dry run: give --execute to delete them."
        else:
            yield "There is nothing to delete."

    def as_json(self) -> dict[str, Any]:
        """Return the report for machines, in camelCase."""
        return {
            "root": without_passwords(self.root),
            "dryRun": self.dry_run,
            "graceMs": self.grace_ms,
            "topics": {topic.topic: topic.as_json() for topic in self.topics},
            "seconds": round(self.seconds, 3),
        }


def _waiting_labels(waiting: WaitingFiles) -> dict[str, object]:
    """Return what waits for its grace period, and when the first and the last of it may go."""
    first_ms, last_ms = waiting.first_ms, waiting.last_ms
    return {
        "Waiting": waiting.files,
        "Bytes": waiting.size_bytes,
        "From": None if first_ms is None else time_text(first_ms),
        "Until": "a lease is deleted" if last_ms is None else time_text(last_ms),
    }


def _total(files: int, size_bytes: int, commits: int) -> str:
    total = f"{files:,} files, {size_bytes:,} bytes"
    return f"{total}, {commits:,} commits" if commits else total
