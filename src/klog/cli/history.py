"""`klog history`: what happened to a topic, newest first: who, when, what, how much.

A line a commit, each field with its label. Where older commits were cleaned, a last line says so.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any, BinaryIO

from klog.connector.commit_log.commit import Actions, Amount, Commit
from klog.connector.commit_log.segment_path import parse_segment_path
from klog.connector.commit_log.topic_admin import TopicAdmin
from klog.jobs.shared.text_output import configs_text, labelled, time_text, write_json, write_lines
from klog.tools.root_arguments import root_with_log

_HELP = """\
For each commit, newest first, what of this there is:
  Version, Time, Operation   its number, when, and what kind of change it is
  TopicId, PartitionCount    of a topic that was made; the new number of partitions
  Configs                    as they were set; `unset` is back at the default
  Added, Removed             segments that came in or were taken out, with their records and bytes
  Partitions                 those whose segments changed
  LogStart                   a partition's new first offset
  CleanedTo                  up to which offset a partition is compacted
  Horizon                    what was begun before this version can no longer be committed
  Writer, Batch              the transactional id, and the number of its batch
  By                         which klog, and who

Files that were removed lie there until `klog vacuum` takes them."""


def add_verb(verbs: argparse._SubParsersAction[Any], common: argparse.ArgumentParser) -> None:
    """Add `history` to a command line."""
    parser = verbs.add_parser(
        "history", parents=[common], help="who changed a topic, when and how", epilog=_HELP
    )
    parser.set_defaults(run=history, parser=parser)
    parser.add_argument("--topic", required=True, metavar="T", help="deleted ones have one too")
    parser.add_argument("--limit", type=_count, metavar="N", help="the newest N only")
    parser.add_argument("--json", action="store_true", help="an object a line")


def history(args: argparse.Namespace, out: BinaryIO) -> int:
    """Print commits as they are read."""
    found = TopicAdmin(root_with_log(args.root)).history(args.topic)
    version, shown = 0, 0
    for commit in islice(found, args.limit):
        version, shown = commit.version, shown + 1
        if args.json:
            write_json(out, _object(commit))
        else:
            write_lines(out, [labelled(_fields(commit))])
    if version > 0 and shown != args.limit and not args.json:
        write_lines(out, [f"Commits before version {version} were cleaned: a checkpoint has them."])
    return 0


def _fields(commit: Commit) -> dict[str, object]:
    actions, made = commit.actions, commit.actions.create_topic
    progress = actions.writer_transaction
    return {
        "Version": commit.version,
        "Time": time_text(commit.timestamp_ms),
        "Operation": commit.operation,
        "TopicId": made.topic_id if made else None,
        "PartitionCount": made.partitions if made else actions.partitions,
        "Configs": configs_text(actions.config),
        "Added": _amount_text(len(actions.add), _added(actions)) if actions.add else None,
        "Removed": _removed_text(actions),
        "Partitions": _listed(_partitions(actions)),
        "LogStart": _by_partition(actions.log_start),
        "LogEnd": _by_partition(actions.explicit_log_end),
        "CleanedTo": _by_partition(actions.cleaned_to),
        "Horizon": actions.vacuum_version,
        "Writer": progress.name if progress else None,
        "Batch": progress.batch_id if progress else None,
        "By": commit.engine,
    }


def _object(commit: Commit) -> dict[str, Any]:
    """Give a commit for machines: numbers in place of the lists of segments."""
    actions, made, progress = (
        commit.actions,
        commit.actions.create_topic,
        commit.actions.writer_transaction,
    )
    said: dict[str, Any] = {
        "version": commit.version,
        "timestampMs": commit.timestamp_ms,
        "operation": commit.operation,
        "engine": commit.engine,
        "writeId": commit.write_id,
        "topicId": made.topic_id if made else None,
        "partitionCount": made.partitions if made else actions.partitions,
        "configs": dict(actions.config) or None,
        "added": _amount(len(actions.add), _added(actions)) if actions.add else None,
        "removed": _amount(len(actions.remove) or None, actions.removed)
        if actions.remove or actions.removed
        else None,
        "partitions": _partitions(actions) or None,
        "logStart": _text_keys(actions.log_start),
        "logEnd": _text_keys(actions.explicit_log_end),
        "cleanedTo": _text_keys(actions.cleaned_to),
        "horizon": actions.vacuum_version,
        "transactionalId": progress.name if progress else None,
        "batchId": progress.batch_id if progress else None,
        "queryId": progress.query_id if progress else None,
        "runId": progress.run_id if progress else None,
    }
    return {name: value for name, value in said.items() if value is not None}


def _added(actions: Actions) -> Amount:
    return Amount(
        sum(entry["record_count"] for entry in actions.add),
        sum(entry["size_bytes"] for entry in actions.add),
    )


def _amount(segments: int | None, held: Amount | None) -> dict[str, int]:
    said = {} if segments is None else {"segments": segments}
    return said if held is None else {**said, "records": held.records, "bytes": held.size_bytes}


def _amount_text(segments: int | None, held: Amount | None) -> str:
    said = _amount(segments, held).items()
    return ", ".join(f"{number:,} {name if number != 1 else name[:-1]}" for name, number in said)


def _removed_text(actions: Actions) -> str | None:
    if not (actions.remove or actions.removed):
        return None
    # A deleted topic's segments are not named one by one.
    return _amount_text(len(actions.remove) or None, actions.removed)


def _partitions(actions: Actions) -> list[int]:
    """Name the partitions whose segments changed."""
    removed = Counter(
        path.partition for name in actions.remove if (path := parse_segment_path(name))
    )
    return sorted({entry["partition"] for entry in actions.add} | removed.keys())


def _listed(partitions: Iterable[int]) -> str | None:
    """Give numbers as ranges: 0-3,7."""
    ranges: list[list[int]] = []
    for one in partitions:
        if ranges and one == ranges[-1][1] + 1:
            ranges[-1][1] = one
        else:
            ranges.append([one, one])
    texts = (str(low) if low == high else f"{low}-{high}" for low, high in ranges)
    return ",".join(texts) or None


def _by_partition(offsets: Mapping[int, int]) -> str | None:
    return (
        ",".join(f"{partition}={offset}" for partition, offset in sorted(offsets.items())) or None
    )


def _text_keys(offsets: Mapping[int, int]) -> dict[str, int] | None:
    return {str(partition): offset for partition, offset in sorted(offsets.items())} or None


def _count(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) < 16 and int(text) > 0):
        raise argparse.ArgumentTypeError(f"{text!r} is no number above 0")
    return int(text)
