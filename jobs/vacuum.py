"""Delete files that no reader and no writer of a klog root needs any more: a task a topic.

The rule: a dry run is what it does unless told otherwise: then nothing is written and nothing
deleted, and what would go is told. What may go, `connector/log/garbage.py` and `cleaning.py` say.
A topic that cannot be vacuumed is told, and the others still are. What was deleted before a topic
failed is in the report: on a full disk the next run goes on from there.
"""

from __future__ import annotations

if __name__ == "__main__":
    from klog.jobs.start import start

    start("vacuum")

import argparse
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from klog.connector.log import cleaning, garbage
from klog.connector.log.author import random_uuid, this_engine
from klog.connector.log.garbage import Garbage
from klog.connector.log.leftovers import segment_of
from klog.connector.log.root import KlogRoot
from klog.connector.log.topic_log import Attempt, TopicLog
from klog.connector.log.traces import find_traces, topics_without_log
from klog.connector.store.storage import NOTHING_GIVEN, Storage
from klog.errors import CommitStateUnknownError, KlogError, restated, without_passwords
from klog.jobs.choosing import open_root
from klog.jobs.command import DONE, REFUSED, Command
from klog.jobs.printing import labelled
from klog.jobs.tasks import run_tasks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_UNITS_MS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_DURATION = re.compile(r"(?P<number>[0-9]{1,12})(?P<unit>ms|s|m|h|d)")


@dataclass(frozen=True, slots=True)
class VacuumedTopic:
    """What of a topic goes: files, and how many commits; `error` says what ended it."""

    topic: str
    garbage: Garbage = field(default_factory=lambda: Garbage((), ()))
    commits: int = 0
    error: str = ""

    @property
    def size_bytes(self) -> int:
        """Give the bytes of the files."""
        return sum(self.garbage.files.values())

    @property
    def kinds(self) -> dict[str, Iterable[str]]:
        """Give the files by why they go; a segment stands for its indexes too."""
        found = self.garbage
        return {"removed": found.removed, "orphan": found.orphans, "leftover": found.leftovers}

    def total(self) -> str:
        """Say how much goes."""
        return _total(len(self.garbage.files), self.size_bytes, self.commits)

    def lines(self) -> Iterator[str]:
        """Give the topic's lines: why it failed, what goes, and what stays for a link."""
        topic, files = {"Topic": self.topic}, self.garbage.files
        if self.error:
            yield labelled({**topic, "Error": self.error})
        if self.commits:
            yield labelled({**topic, "Commits": self.commits})
        if files:
            yield labelled({**topic, "Files": len(files), "Bytes": self.size_bytes})
        kind_of = {file: kind for kind, some in self.kinds.items() for file in some}
        for file, size in files.items():
            kind = kind_of.get(file) or kind_of.get(segment_of(file) or "", "")
            yield f"\t{labelled({'File': file, 'Bytes': size, 'Kind': kind})}"
        if self.garbage.above:
            yield labelled({**topic, "AboveLastCommit": len(self.garbage.above)})
        for file, version in self.garbage.above.items():
            yield f"\t{labelled({'File': file, 'Version': version})}"
        if self.garbage.left:
            yield labelled({**topic, "Left": len(self.garbage.left)})
        for file, link in self.garbage.left.items():
            yield f"\t{labelled({'File': file, 'Link': link})}"


@dataclass(frozen=True, slots=True)
class VacuumReport:
    """What a vacuum deleted, or would delete."""

    root: str
    dry_run: bool
    grace_ms: int
    topics: tuple[VacuumedTopic, ...] = ()
    seconds: float = 0.0

    @property
    def exit_code(self) -> int:
        """Give 1 where a topic could not be vacuumed, or has lost commits."""
        return REFUSED if any(one.error or one.garbage.above for one in self.topics) else DONE

    def lines(self) -> Iterator[str]:
        """Give the table: topics, each with its files, and what goes in all."""
        files = size_bytes = commits = 0
        for one in self.topics:
            yield from one.lines()
            files, size_bytes = files + len(one.garbage.files), size_bytes + one.size_bytes
            commits += one.commits
        total = _total(files, size_bytes, commits)
        if not self.dry_run:
            yield f"Deleted {total}."
        elif files or commits:
            yield f"Would delete {total}. This was a dry run: give --execute to delete them."
        else:
            yield "There is nothing to delete."

    def as_json(self) -> dict[str, Any]:
        """Give the report for machines, in camelCase."""
        return {
            "root": without_passwords(self.root),
            "dryRun": self.dry_run,
            "graceMs": self.grace_ms,
            "topics": {one.topic: _as_json(one) for one in self.topics},
            "seconds": round(self.seconds, 3),
        }


def run(
    spark: SparkSession | None,
    root: str,
    topic: str | Sequence[str] | None = None,
    *,
    grace_ms: int = garbage.READER_GRACE_MS,
    log_retention_ms: int = cleaning.LOG_RETENTION_MS,
    storage: Storage = NOTHING_GIVEN,
    dry_run: bool = True,
    discard_lost: bool = False,
) -> VacuumReport:
    """Vacuum one topic, several, or all, deleted ones too.

    `spark` may be None: then all is done in this process. `grace_ms` is how long readers and
    writers may take, `log_retention_ms` how long commits are kept for the history. Where files show
    that the last commits of a topic were lost, `discard_lost` goes on without them. Raises
    `OptionError` for a root without commit logs and a topic that was named and never was,
    `CommitStateUnknownError` where the store does not say whether the horizon was raised.
    """
    begun = time.monotonic()
    found = open_root(root, storage)
    named = [topic] if isinstance(topic, str) else topic
    without_log = topics_without_log(found)
    known = [*found.topic_names(), *without_log]
    names = dict.fromkeys(known if named is None else named)
    for name in names.keys() - set(known):
        found.load(found.log_to_read(name))  # raises
    tasks = [
        VacuumTask(
            found.given,
            storage,
            name,
            grace_ms,
            log_retention_ms,
            dry_run,
            named is not None,
            discard_lost,
        )
        for name in names
    ]
    done = [one for one in run_tasks(spark, vacuum_topic, tasks, "vacuum") if one is not None]
    return VacuumReport(found.given, dry_run, grace_ms, tuple(done), time.monotonic() - begun)


@dataclass(frozen=True, slots=True)
class VacuumTask:
    """A topic to be vacuumed."""

    root: str
    storage: Storage
    topic: str
    grace_ms: int
    log_retention_ms: int
    dry_run: bool
    is_named: bool
    discard_lost: bool


def vacuum_topic(task: VacuumTask) -> VacuumedTopic | None:
    """Vacuum a topic; None where there is a folder without a commit: who makes it is not there yet.

    Of one among all what goes wrong is told, and of any after which something was deleted; raised
    is it of one that was named, and always `CommitStateUnknownError`.
    """
    try:
        root = open_root(task.root, task.storage)
        done = _vacuum(root, task)
        if done is None and task.is_named:
            root.load(root.log_to_read(task.topic))  # raises
        return done
    except CommitStateUnknownError:
        raise
    except KlogError as exc:
        if task.is_named:
            raise
        return VacuumedTopic(task.topic, error=str(exc))


def _vacuum(root: KlogRoot, task: VacuumTask) -> VacuumedTopic | None:
    log = root.log_to_read(task.topic) if task.dry_run else root.log_to_write(task.topic)
    if log.load().version < 0:
        return _without_commits(log)
    if task.dry_run:
        commits = len(cleaning.cleaned_versions(log)) - log.boundary()
        commits += cleaning.would_clean_log(log, task.log_retention_ms)
        found = garbage.would_vacuum(log, task.grace_ms, discard_lost=task.discard_lost)
        return VacuumedTopic(task.topic, found, commits)
    return _deleted(log, task)


def _without_commits(log: TopicLog) -> VacuumedTopic | None:
    """Tell of a topic all of whose commits are lost; None if there never was one."""
    above = find_traces(log)
    if not above:
        return None
    error = (
        f"{log.paths.commits}: there is no commit, and files show that version "
        f"{max(above.values())} was made: the commits are lost, and nothing was deleted. Restore "
        "them from a copy. If they are not to come back: `klog topics create`, then `klog vacuum "
        "--discard-lost`"
    )
    return VacuumedTopic(log.paths.topic, Garbage((), (), above=above), error=error)


def _deleted(log: TopicLog, task: VacuumTask) -> VacuumedTopic:
    """Delete what needs no commit, then commit, then delete the rest."""
    run = garbage.Vacuum(log, task.grace_ms, discard_lost=task.discard_lost)
    commits, before = 0, log.boundary()
    try:
        run.free()
        versions = cleaning.cleaned_versions(log)
        cleaning.delete_commits(log, versions)
        commits = len(versions)
        run.finish(Attempt(random_uuid(), "vacuum", this_engine()))
        commits += cleaning.clean_log(log, task.log_retention_ms) - before
    except KlogError as exc:
        done = VacuumedTopic(task.topic, run.deleted, commits)
        if run.deleted.above and not (commits or run.deleted.files):
            return replace(done, error=str(exc))
        if not (commits or run.deleted.files):
            raise
        error = restated(
            exc,
            f"{exc}. Before that, this vacuum deleted {done.total()}: run it again to delete "
            "the rest",
        )
        if isinstance(exc, CommitStateUnknownError):
            raise error from exc
        return replace(done, error=str(error))
    return VacuumedTopic(task.topic, run.deleted, commits)


def _total(files: int, size_bytes: int, commits: int) -> str:
    total = f"{files:,} files, {size_bytes:,} bytes"
    return f"{total}, {commits:,} commits" if commits else total


def _as_json(one: VacuumedTopic) -> dict[str, Any]:
    kinds = {kind: list(files) for kind, files in one.kinds.items()}
    return {
        **({"error": one.error} if one.error else {}),
        **kinds,
        "files": dict(one.garbage.files),
        "bytes": one.size_bytes,
        "commits": one.commits,
        "aboveLastCommit": dict(one.garbage.above),
        "left": dict(one.garbage.left),
    }


def duration_ms(text: str) -> int:
    """Read `24h`, `90m`, `30s`, `500ms`, `7d`."""
    found = _DURATION.fullmatch(text.strip())
    if found is None:
        raise argparse.ArgumentTypeError(f"{text!r} is no time such as 24h, 90m, 30s or 7d")
    return int(found["number"]) * _UNITS_MS[found["unit"]]


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--grace",
        type=duration_ms,
        default=garbage.READER_GRACE_MS,
        metavar="TIME",
        help="how long readers and writers may take: 24h (the default), 90m, 7d",
    )
    parser.add_argument(
        "--log-retention",
        type=duration_ms,
        default=cleaning.LOG_RETENTION_MS,
        metavar="TIME",
        help="how long commits are kept for the history: 30d (the default)",
    )
    parser.add_argument(
        "--discard-lost",
        action="store_true",
        help="go on where the last commits of a topic were lost, which are not to come back",
    )
    parser.add_argument("--execute", action="store_true", help="delete; without it, only tell")


def _run(spark: SparkSession | None, given: argparse.Namespace) -> VacuumReport:
    if given.execute and given.dry_run:
        raise argparse.ArgumentError(
            None, "argument --dry-run: not allowed with argument --execute"
        )
    return run(
        spark,
        given.root,
        given.topic,
        grace_ms=given.grace,
        log_retention_ms=given.log_retention,
        dry_run=not given.execute,
        discard_lost=given.discard_lost,
    )


COMMAND = Command(
    "vacuum",
    "delete files that nothing needs; a dry run unless told otherwise",
    """\
What goes, of each topic:
  removed     segments that retention, compaction or a deletion took out longer ago than the grace,
              and that no pin of a reader holds
  orphan      segments that a failed or killed writer left: begun before the grace, never committed
  leftover    temporary files of killed writers, as old
  commits     older than the log's retention, where a checkpoint stands for them: they leave the
              history

What is a link below the root, or is reached through one, stays, and the report says so. What needs
no commit goes first, so that a full disk has room for the commit that the rest needs.

If a file is of a later version than the last commit, commits were lost. Then such files and all
that no commit names stay, and nothing is committed, until --discard-lost is given. The exit code is
1 as long as such a file is there.

A reader or writer that takes longer than the grace is told so and fails; it never loses what was
acknowledged. Deleted topics are vacuumed too.""",
    _add_options,
    _run,
)
