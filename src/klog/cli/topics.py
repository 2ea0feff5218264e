"""`klog topics list` and `klog topics describe`, after kafka-topics.

A partition whose log cannot be read, or in a klog root a topic, is shown with its error, and the
others are still shown; the exit code is 1 then.
"""

from __future__ import annotations

import argparse
import logging
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO, TypeAlias

from klog.cli import alter_topics
from klog.connector.commit_log.klog_root import KlogRoot
from klog.connector.commit_log.topic_admin import describe_state
from klog.connector.kafka_dir.raw_root import RawRoot
from klog.connector.kafka_dir.stale_listings import retry_stale_listing
from klog.connector.snapshot import PartitionSnapshot, Snapshot
from klog.connector.topic_partition import TopicPartition
from klog.errors import KlogError, OptionError
from klog.jobs.shared.text_output import configs_text, labelled, write_json, write_lines
from klog.logformat.broker_files.file_names import INTERNAL_TOPICS
from klog.tools.root_arguments import directories, klog_root, states

Facts: TypeAlias = dict[str, int | str]
"""What is known of one partition, by the names that `--json` prints."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Shown:
    """What `describe` prints of a topic; of one that cannot be read only the error."""

    topic_id: str | None
    partitions: list[Facts]
    config: Mapping[str, str] | None = None
    """None in a broker's directory, which does not say."""
    error: str | None = None


_LABELS = {
    "partition": "Partition",
    "logStartOffset": "LogStartOffset",
    "logEndOffset": "LogEndOffset",
    "lastStableOffset": "LastStableOffset",
    "segments": "Segments",
    "bytes": "Bytes",
    "error": "Error",
}
_COLUMNS = """\
For each partition:
  LogStartOffset     the first offset that is kept
  LogEndOffset       the offset behind the last record; the high watermark while a broker runs
  LastStableOffset   where read_committed stops: the first open transaction, else LogEndOffset
  Segments, Bytes    the .log files with records in them, and their readable bytes
In a klog root, Configs are those that were given; `klog configs --all` shows the defaults too."""


def add_verbs(verbs: argparse._SubParsersAction[Any], common: argparse.ArgumentParser) -> None:
    """Add `topics` and its actions to a command line."""
    topics = verbs.add_parser("topics", help="the topics in a root: list, describe, make, change")
    actions = topics.add_subparsers(required=True, metavar="ACTION")
    alter_topics.add_actions(actions, common)
    listing = actions.add_parser("list", parents=[common], help="the names of the topics")
    listing.set_defaults(run=list_topics, parser=listing)
    describing = actions.add_parser(
        "describe",
        parents=[common],
        help="partitions, offsets, segments and bytes of each topic",
        epilog=_COLUMNS,
    )
    describing.set_defaults(run=describe_topics, parser=describing)
    for action in (listing, describing):
        action.add_argument(
            "--topic",
            type=_pattern,
            metavar="REGEX",
            help="only topics whose whole name matches; several with commas",
        )
        action.add_argument(
            "--exclude-internal", action="store_true", help="leave Kafka's own topics out"
        )
        action.add_argument("--json", action="store_true", help="one JSON array")


def list_topics(args: argparse.Namespace, out: BinaryIO) -> int:
    """Print the names of the topics, or with `--json` their ids and partitions too."""
    root = klog_root(args.root)
    rows, code = _listed_raw(args) if root is None else _listed(args, root)
    if args.json:
        write_json(out, rows)
    else:
        write_lines(out, [str(row["topic"]) for row in rows])
    return code


def describe_topics(args: argparse.Namespace, out: BinaryIO) -> int:
    """Print what each partition holds. Raises `OptionError` if `--topic` matches nothing."""
    root = klog_root(args.root)
    shown = _shown_raw(args) if root is None else _shown(args, root)
    if args.json:
        write_json(out, [_object(topic, one) for topic, one in shown.items()])
    else:
        write_lines(out, _table(shown))
    return int(
        any(
            one.error or any("error" in facts for facts in one.partitions) for one in shown.values()
        )
    )


def _listed_raw(args: argparse.Namespace) -> tuple[list[dict[str, Any]], int]:
    look = RawRoot(directories(args.root)).snapshot()
    chosen = _chosen(args, look)
    ids = look.topic_ids(chosen) if args.json else {}
    rows = [
        _row_of_list(topic, ids.get(topic), [name.partition for name in names])
        for topic, names in chosen.items()
    ]
    return rows, 0


def _listed(args: argparse.Namespace, root: KlogRoot) -> tuple[list[dict[str, Any]], int]:
    """List the topics of a klog root; one whose log cannot be read is there, with a warning."""
    rows, code = [], 0
    for topic, state in states(root, _names(args, root)).items():
        if isinstance(state, KlogError):
            logger.warning("topic %s: %s", topic, state)
            rows.append(_row_of_list(topic, None, []))
            code = 1
        else:
            rows.append(_row_of_list(topic, state.topic_id, list(range(state.partitions))))
    return rows, code


def _row_of_list(topic: str, topic_id: str | None, partitions: list[int]) -> dict[str, Any]:
    return {
        "topic": topic,
        "topicId": topic_id,
        "partitions": partitions,
        "internal": topic in INTERNAL_TOPICS,
    }


def _shown_raw(args: argparse.Namespace) -> dict[str, Shown]:
    root = RawRoot(directories(args.root))
    look = root.snapshot()
    chosen = _chosen(args, look)
    if not chosen:
        _refuse_nothing(args, sorted(look.topics))
    ids = look.topic_ids(chosen)
    return {
        topic: Shown(ids.get(topic), _partitions(root, names)) for topic, names in chosen.items()
    }


def _shown(args: argparse.Namespace, root: KlogRoot) -> dict[str, Shown]:
    shown: dict[str, Shown] = {}
    chosen = _names(args, root)
    for topic, state in states(root, chosen).items():
        if isinstance(state, KlogError):
            shown[topic] = Shown(None, [], error=str(state))
            continue
        found = describe_state(topic, state)
        partitions: list[Facts] = [
            {
                "partition": one.partition,
                "logStartOffset": one.log_start,
                "logEndOffset": one.log_end,
                "lastStableOffset": one.log_end,
                "segments": one.segments,
                "bytes": one.size_bytes,
            }
            for one in found.partitions
        ]
        shown[topic] = Shown(found.topic_id, partitions, found.config)
    if not shown:
        if args.topic is not None and len(chosen) == 1:
            root.load(root.log_to_read(chosen[0]))  # raises: it was deleted
        _refuse_nothing(args, list(states(root, root.topic_names())))
    return shown


def _names(args: argparse.Namespace, root: KlogRoot) -> list[str]:
    return [topic for topic in root.topic_names() if _is_chosen(args, topic)]


def _refuse_nothing(args: argparse.Namespace, topics: list[str]) -> None:
    """Raise `OptionError` where a pattern was given; no topics at all are just none."""
    if args.topic is not None:
        raise OptionError(
            f"--topic: no topic matches {args.topic.pattern}; "
            + (
                f"the topics here are {', '.join(topics)}"
                if topics
                else "the root has no topics. Create one with `klog topics create`"
            )
        )


def _pattern(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text.strip().replace(",", "|"))
    except re.error as exc:
        raise argparse.ArgumentTypeError(f"{text!r} is no regular expression: {exc}") from exc


def _chosen(args: argparse.Namespace, look: Snapshot) -> dict[str, list[TopicPartition]]:
    """Give the partitions of the topics asked for, by topic."""
    return {
        topic: [TopicPartition(topic, number) for number in numbers]
        for topic, numbers in look.topics.items()
        if _is_chosen(args, topic)
    }


def _is_chosen(args: argparse.Namespace, topic: str) -> bool:
    if args.topic is not None and not args.topic.fullmatch(topic):
        return False
    return not (args.exclude_internal and topic in INTERNAL_TOPICS)


def _partitions(root: RawRoot, names: list[TopicPartition]) -> list[Facts]:
    """Describe partitions together, or one by one where one of them cannot be read."""
    try:
        return retry_stale_listing(
            lambda: [_facts(log) for log in root.snapshot().open(names).values()]
        )
    except KlogError as exc:
        if len(names) == 1:
            return [{"partition": names[0].partition, "error": str(exc)}]
        return [one for name in names for one in _partitions(root, [name])]


def _facts(log: PartitionSnapshot) -> Facts:
    return {
        "partition": log.name.partition,
        "logStartOffset": log.log_start,
        "logEndOffset": log.log_end,
        "lastStableOffset": log.last_stable_offset(),
        "segments": log.segment_count,
        "bytes": log.size_bytes,
    }


def _object(topic: str, shown: Shown) -> dict[str, Any]:
    said: dict[str, Any] = {"topic": topic, "topicId": shown.topic_id}
    if shown.config is not None:
        said["configs"] = dict(shown.config)
    said["partitions"] = shown.partitions
    return said if shown.error is None else said | {"error": shown.error}


def _table(described: Mapping[str, Shown]) -> Iterable[str]:
    for topic, shown in described.items():
        count = None if shown.error else len(shown.partitions)
        head = {
            "Topic": topic,
            "TopicId": shown.topic_id,
            "PartitionCount": count,
            "Configs": configs_text(shown.config or {}),
            "Error": shown.error,
        }
        yield labelled(head)
        for facts in shown.partitions:
            yield "\t" + labelled({label: facts.get(key) for key, label in _LABELS.items()})
