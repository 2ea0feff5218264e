"""`klog delete-records`: let a partition begin at a higher offset, as kafka-delete-records does.

The rule is Kafka's (docs/format.md; `DeleteRecordsCommand`, `Partition.deleteRecordsOnLeader`): a
topic whose `cleanup.policy` has no `delete` is refused; -1 means the log's end; an offset above it
is out of range, one at or below the log start changes nothing. All partitions of a topic in one
commit, or none of them.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

from klog.connector.commit_log.commit_builders import delete_records
from klog.connector.commit_log.commit_info import CommitInfo, random_uuid, this_engine
from klog.connector.commit_log.commit_log import CommitLog
from klog.connector.commit_log.klog_root import KlogRoot
from klog.connector.commit_log.topic_state import TopicState
from klog.errors import OffsetOutOfRangeError, OptionError
from klog.jobs.shared.text_output import write_json, write_lines
from klog.logformat.broker_files.file_names import is_topic
from klog.logformat.topic_config import parse_topic_config
from klog.tools.root_arguments import root_with_log
from klog.tools.stdin_reader import read_input

LOG_END = -1
_MOST_FILE_BYTES = 16 << 20
_HELP = """\
Readers see nothing below the offset any more, whether it is the first of a batch or not. Segments
that lie wholly below go with the next vacuum after its grace. The file is that of
kafka-delete-records:

  {"partitions": [{"topic": "orders", "partition": 0, "offset": 1000}], "version": 1}"""

Starts = dict[str, dict[int, int]]
"""By topic and partition the first offset to keep."""


def add_verb(verbs: argparse._SubParsersAction[Any], common: argparse.ArgumentParser) -> None:
    """Add `delete-records` to a command line."""
    parser = verbs.add_parser(
        "delete-records",
        parents=[common],
        help="let partitions begin at a higher offset",
        epilog=_HELP,
    )
    parser.set_defaults(run=delete, parser=parser)
    parser.add_argument("--offset-json-file", type=Path, metavar="F", help="partitions and offsets")
    parser.add_argument("--topic", metavar="T", help="its whole name; with --partition, --offset")
    parser.add_argument("--partition", type=int, metavar="N")
    parser.add_argument("--offset", type=int, metavar="O", help="the first to keep; -1 for none")
    parser.add_argument("--dry-run", action="store_true", help="only tell where they would begin")
    parser.add_argument("--json", action="store_true", help="one JSON object")


def delete(args: argparse.Namespace, out: BinaryIO) -> int:
    """Raise log starts and tell where partitions begin then, topic by topic.

    What is wrong with any of them is told before anything is done.
    """
    asked = _asked(args)
    root = root_with_log(args.root)
    found = [_found(root, topic, starts, dry_run=args.dry_run) for topic, starts in asked.items()]
    begins: Starts = {}
    try:
        for log, state, wanted in found:
            if args.dry_run:
                begins[log.paths.topic] = wanted
                continue
            attempt = CommitInfo(random_uuid(), "delete-records", this_engine())
            after = log.commit(state, delete_records(state.topic_id, wanted), attempt)
            now = {partition: after.log_start[partition] for partition in wanted}
            begins[log.paths.topic] = now
    finally:
        _tell(args, begins, out)
    return 0


def _tell(args: argparse.Namespace, begins: Starts, out: BinaryIO) -> None:
    if args.json:
        write_json(out, {"dryRun": args.dry_run, "lowWatermarks": begins})
        return
    for topic, each in begins.items():
        write_lines(
            out,
            (f"partition: {topic}-{one}\tlow_watermark: {start}" for one, start in each.items()),
        )


def _found(
    root: KlogRoot, topic: str, starts: Mapping[int, int], *, dry_run: bool
) -> tuple[CommitLog, TopicState, dict[int, int]]:
    """Load a topic and say where its partitions would begin."""
    log = root.log_to_read(topic) if dry_run else root.log_to_write(topic)
    state = root.load(log)
    if not parse_topic_config(state.config).has_delete_policy:
        raise OptionError(
            f"topic {topic}: its cleanup.policy has no delete, so only compaction takes records "
            f"out; `klog configs --topic {topic} --config cleanup.policy=...` changes that"
        )
    begins: dict[int, int] = {}
    for partition, offset in starts.items():
        if not 0 <= partition < state.partitions:
            raise OptionError(
                f"there is no partition {topic}-{partition}; it has {state.partitions}, from 0"
            )
        end = state.log_end[partition]
        if not LOG_END <= offset <= end:
            raise OffsetOutOfRangeError(
                f"{topic}-{partition}: offset {offset} is out of range; the log ends at {end}, "
                "which is -1 too"
            )
        wanted = end if offset == LOG_END else offset
        begins[partition] = max(wanted, state.log_start[partition])
    return log, state, begins


def _asked(args: argparse.Namespace) -> Starts:
    """Read what is to be deleted; raises `argparse.ArgumentError` for neither form, or both."""
    one = (args.topic, args.partition, args.offset)
    if args.offset_json_file is not None:
        if any(value is not None for value in one):
            raise argparse.ArgumentError(
                None, "give --offset-json-file, or --topic, --partition and --offset: not both"
            )
        return _read(args.offset_json_file)
    if any(value is None for value in one):
        raise argparse.ArgumentError(
            None, "give --topic, --partition and --offset, or --offset-json-file"
        )
    return {args.topic: {args.partition: args.offset}}


def _read(path: Path) -> Starts:
    """Read the file of kafka-delete-records; raises `OptionError` that says what of it is wrong."""
    try:
        said = json.loads(read_input(path, _MOST_FILE_BYTES))
    except (ValueError, RecursionError) as exc:
        raise OptionError(f"{path}: it is no JSON: {exc}") from exc
    rows = said.get("partitions") if isinstance(said, dict) else None
    if not isinstance(rows, list) or not rows or said.get("version", 1) != 1:
        raise OptionError(f'{path}: it is no {{"partitions": [...], "version": 1}}')
    found: Starts = {}
    for row in rows:
        match row:
            case {"topic": str(topic), "partition": int(partition), "offset": int(offset)} if (
                type(partition) is type(offset) is int  # A truth value is none.
            ):
                pass
            case _:
                raise OptionError(f"{path}: {str(row)[:100]} has no topic, partition and offset")
        if not is_topic(topic) or partition in found.get(topic, {}):
            raise OptionError(f"{path}: {topic[:300]}-{partition} is no partition, or there twice")
        found.setdefault(topic, {})[partition] = offset
    return found
