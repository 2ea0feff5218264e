"""`klog vacuum`: delete files that no reader and no writer of a klog root needs any more.

The rule: without `--execute` nothing is written and nothing deleted; what would go is told.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, BinaryIO

from klog.cli.output import labelled, write_json, write_lines
from klog.cli.roots import root_with_log
from klog.connector.log import cleaning, garbage
from klog.connector.log.author import random_uuid, this_engine
from klog.connector.log.garbage import Garbage
from klog.connector.log.leftovers import segment_of
from klog.connector.log.root import KlogRoot
from klog.connector.log.topic_log import Attempt
from klog.errors import CommitStateUnknownError, KlogError

_UNITS_MS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_DURATION = re.compile(r"(?P<number>[0-9]{1,12})(?P<unit>ms|s|m|h|d)")
_HELP = """\
What goes, of each topic:
  removed     segments that retention, compaction or a deletion took out longer ago than the grace,
              and that no pin of a reader holds
  orphan      segments that a failed or killed writer left: begun before the grace, never committed
  leftover    temporary files of killed writers, as old
  commits     older than the log's retention, where a checkpoint stands for them: they leave the
              history

A reader or writer that takes longer than the grace is told so and fails; it never loses what was
acknowledged. Deleted topics are vacuumed too."""


def add_verb(verbs: argparse._SubParsersAction[Any], common: argparse.ArgumentParser) -> None:
    """Add `vacuum` to a command line."""
    parser = verbs.add_parser(
        "vacuum",
        parents=[common],
        help="delete files that nothing needs; a dry run unless told otherwise",
        epilog=_HELP,
    )
    parser.set_defaults(run=vacuum, parser=parser)
    parser.add_argument("--topic", metavar="T", help="its whole name; without it, every topic")
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
    does = parser.add_mutually_exclusive_group()
    does.add_argument("--dry-run", action="store_true", help="only tell; what it does anyway")
    does.add_argument("--execute", action="store_true", help="delete")
    parser.add_argument("--json", action="store_true", help="one JSON object")


def vacuum(given: argparse.Namespace, out: BinaryIO) -> int:
    """Vacuum one topic or all; one that cannot be is told, and the others still are."""
    root = root_with_log(given.root)
    found: dict[str, Vacuumed | KlogError] = {}
    for topic in root.topic_names() if given.topic is None else [given.topic]:
        try:
            one = _vacuum(root, topic, given)
        except CommitStateUnknownError:
            raise
        except KlogError as exc:
            if given.topic is not None:
                raise
            found[topic] = exc
        else:
            if one is not None:
                found[topic] = one
    if given.json:
        write_json(out, _object(given, found))
    else:
        write_lines(out, _lines(given, found))
    return int(any(isinstance(one, KlogError) for one in found.values()))


def duration_ms(text: str) -> int:
    """Read `24h`, `90m`, `30s`, `500ms`, `7d`."""
    found = _DURATION.fullmatch(text.strip())
    if found is None:
        raise argparse.ArgumentTypeError(f"{text!r} is no time such as 24h, 90m, 30s or 7d")
    return int(found["number"]) * _UNITS_MS[found["unit"]]


@dataclass(frozen=True, slots=True)
class Vacuumed:
    """What of a topic goes: files, and how many commits."""

    garbage: Garbage
    commits: int


def _vacuum(root: KlogRoot, topic: str, given: argparse.Namespace) -> Vacuumed | None:
    log = root.log_to_write(topic) if given.execute else root.log_to_read(topic)
    if log.load().version < 0:
        if given.topic is not None:
            root.load(log)  # raises
        return None  # A folder without a commit: who was making the topic has not come to it.
    before = log.boundary()
    if not given.execute:
        boundary = cleaning.would_clean_log(log, given.log_retention)
        return Vacuumed(garbage.would_vacuum(log, given.grace), boundary - before)
    attempt = Attempt(random_uuid(), "vacuum", this_engine())
    done = garbage.vacuum(log, attempt, given.grace)
    return Vacuumed(done, cleaning.clean_log(log, given.log_retention) - before)


def _kinds(one: Garbage) -> dict[str, Iterable[str]]:
    return {"removed": one.removed, "orphan": one.orphans, "leftover": one.leftovers}


def _lines(given: argparse.Namespace, found: dict[str, Vacuumed | KlogError]) -> Iterable[str]:
    files = size_bytes = commits = 0
    for topic, each in found.items():
        if isinstance(each, KlogError):
            yield labelled({"Topic": topic, "Error": each})
            continue
        one, commits = each.garbage, commits + each.commits
        if each.commits:
            yield labelled({"Topic": topic, "Commits": each.commits})
        if not one.files:
            continue
        files, size_bytes = files + len(one.files), size_bytes + sum(one.files.values())
        yield labelled({"Topic": topic, "Files": len(one.files), "Bytes": sum(one.files.values())})
        kind_of = {file: kind for kind, some in _kinds(one).items() for file in some}
        for file, size in one.files.items():
            kind = kind_of.get(file) or kind_of.get(segment_of(file) or "", "")
            yield f"\t{labelled({'File': file, 'Bytes': size, 'Kind': kind})}"
    total = f"{files:,} files, {size_bytes:,} bytes"
    if commits:
        total += f", {commits:,} commits"
    if given.execute:
        yield f"Deleted {total}."
    elif files or commits:
        yield f"Would delete {total}. This was a dry run: give --execute to delete them."
    else:
        yield "There is nothing to delete."


def _object(given: argparse.Namespace, found: dict[str, Vacuumed | KlogError]) -> dict[str, Any]:
    topics: dict[str, Any] = {}
    for topic, each in found.items():
        if isinstance(each, KlogError):
            topics[topic] = {"error": str(each)}
        else:
            one = each.garbage
            kinds = {kind: list(files) for kind, files in _kinds(one).items()}
            topics[topic] = {**kinds, "files": dict(one.files), "bytes": sum(one.files.values())}
            topics[topic]["commits"] = each.commits
    return {"dryRun": not given.execute, "graceMs": given.grace, "topics": topics}
