"""`klog delete-records`: raise the log start offset of partitions, as kafka-delete-records does.

The rule is Kafka's (docs/format.md; `DeleteRecordsCommand`, `Partition.deleteRecordsOnLeader`): a
topic without `delete` in its `cleanup.policy` is refused; -1 means the log end offset; an offset
above that is out of range; one at or below the log start changes nothing. One commit changes all
partitions of a topic.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO

from klog.connector.commit_log.commit_builders import delete_records
from klog.connector.commit_log.commit_info import CommitInfo, random_uuid, this_engine
from klog.connector.commit_log.commit_log import CommitLog
from klog.connector.commit_log.klog_root import KlogRoot
from klog.connector.commit_log.topic_state import TopicState
from klog.errors import OffsetOutOfRangeError, OptionError
from klog.logformat.broker_files.file_names import is_topic
from klog.logformat.topic_config import parse_topic_config
from klog.text_output import write_json, write_lines
from klog.tools.root_arguments import root_with_log
from klog.tools.stdin_reader import read_input

LOG_END = -1
_MAX_FILE_BYTES = 16 << 20

Starts = dict[str, dict[int, int]]
"""The first offset to keep, by topic and partition."""


def delete(args: argparse.Namespace, out: BinaryIO) -> int:
    """Raise log starts and print the new ones, topic by topic.

    It checks all topics before it changes the first.
    """
    starts_by_topic = _starts_to_set(args)
    root = root_with_log(args.root)
    plans = [
        _load_log_starts(root, topic, starts, dry_run=args.dry_run)
        for topic, starts in starts_by_topic.items()
    ]
    log_starts: Starts = {}
    try:
        for log, state, starts in plans:
            if args.dry_run:
                log_starts[log.paths.topic] = starts
                continue
            commit_info = CommitInfo(random_uuid(), "delete-records", this_engine())
            build = delete_records(state.topic_id, starts, state.version)
            new_state = log.commit(state, build, commit_info)
            log_starts[log.paths.topic] = {
                partition: new_state.log_start[partition] for partition in starts
            }
    finally:
        _print_log_starts(args, log_starts, out)
    return 0


def _print_log_starts(args: argparse.Namespace, log_starts: Starts, out: BinaryIO) -> None:
    if args.json:
        write_json(out, {"dryRun": args.dry_run, "lowWatermarks": log_starts})
        return
    for topic, offsets in log_starts.items():
        write_lines(
            out,
            (
                f"partition: {topic}-{partition}\tlow_watermark: {start}"
                for partition, start in offsets.items()
            ),
        )


def _load_log_starts(
    root: KlogRoot, topic: str, starts: Mapping[int, int], *, dry_run: bool
) -> tuple[CommitLog, TopicState, dict[int, int]]:
    """Load a topic and compute the new log starts of its partitions."""
    log = root.log_to_read(topic) if dry_run else root.log_to_write(topic)
    state = root.load(log)
    if not parse_topic_config(state.config).has_delete_policy:
        raise OptionError(
            f"topic {topic}: its cleanup.policy has no delete, so only compaction removes records. "
            f"Change it with `klog configs --topic {topic} --config cleanup.policy=...`"
        )
    log_starts: dict[int, int] = {}
    for partition, offset in starts.items():
        if not 0 <= partition < state.partitions:
            raise OptionError(
                f"there is no partition {topic}-{partition}. The topic has {state.partitions}, "
                "from 0"
            )
        end = state.log_end[partition]
        if not LOG_END <= offset <= end:
            raise OffsetOutOfRangeError(
                f"{topic}-{partition}: offset {offset} is out of range; the log ends at {end}. "
                "Use -1 for its end"
            )
        start = end if offset == LOG_END else offset
        log_starts[partition] = max(start, state.log_start[partition])
    return log, state, log_starts


def _starts_to_set(args: argparse.Namespace) -> Starts:
    """Return the requested offsets; raises `argparse.ArgumentError` for neither form, or both."""
    options = (args.topic, args.partition, args.offset)
    if args.offset_json_file is not None:
        if any(value is not None for value in options):
            raise argparse.ArgumentError(
                None, "give --offset-json-file, or --topic, --partition and --offset: not both"
            )
        return _read(args.offset_json_file)
    if any(value is None for value in options):
        raise argparse.ArgumentError(
            None, "give --topic, --partition and --offset, or --offset-json-file"
        )
    return {args.topic: {args.partition: args.offset}}


def _read(path: Path) -> Starts:
    """Read a file of kafka-delete-records; raises `OptionError` that names its fault."""
    where = f"--offset-json-file: {path}"
    try:
        document = json.loads(read_input("--offset-json-file", path, _MAX_FILE_BYTES))
    except (ValueError, RecursionError) as exc:
        raise OptionError(f"{where}: not valid JSON: {exc}") from exc
    rows = document.get("partitions") if isinstance(document, dict) else None
    if not isinstance(rows, list) or not rows or document.get("version", 1) != 1:
        raise OptionError(f'{where}: must be {{"partitions": [...], "version": 1}}')
    starts: Starts = {}
    for row in rows:
        match row:
            case {"topic": str(topic), "partition": int(partition), "offset": int(offset)} if (
                type(partition) is type(offset) is int  # Not a bool, which is an int too.
            ):
                pass
            case _:
                raise OptionError(
                    f"{where}: must have topic, partition and offset, got {str(row)[:100]}"
                )
        if not is_topic(topic) or partition in starts.get(topic, {}):
            raise OptionError(
                f"{where}: {topic[:300]}-{partition} is not a partition, or is listed twice. Name "
                "each partition of a topic once"
            )
        starts.setdefault(topic, {})[partition] = offset
    return starts
