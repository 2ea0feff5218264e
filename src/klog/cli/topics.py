"""`klog topics list` and `klog topics describe`, after kafka-topics.

A partition whose log cannot be read is shown with its error; in a klog root, a topic. The others
are still shown, and the exit code is 1.
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
from klog.errors import KlogError, OptionError
from klog.logformat.broker_files.file_names import INTERNAL_TOPICS
from klog.logformat.topic_partition import TopicPartition
from klog.text_output import configs_text, labelled, write_json, write_lines
from klog.tools.root_arguments import directories, klog_root, states

Facts: TypeAlias = dict[str, int | str]
"""What `describe` prints of one partition, by the names in `--json`."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Shown:
    """What `describe` prints of a topic; only the error if it cannot be read."""

    topic_id: str | None
    partitions: list[Facts]
    config: Mapping[str, str] | None = None
    """None in a broker's log directory, which has no configs."""
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
  LogStartOffset     the first offset in the log
  LogEndOffset       the offset after the last record; the high watermark while a broker runs
  LastStableOffset   where read_committed stops: the first open transaction, else LogEndOffset
  Segments, Bytes    the number of .log files with records, and their readable bytes
In a klog root, Configs are those that are set; `klog configs --all` shows the defaults too."""


def add_verbs(
    verbs: argparse._SubParsersAction[Any],
    with_klog_root: argparse.ArgumentParser,
    with_any_root: argparse.ArgumentParser,
) -> None:
    """Add `topics` to a command line: actions that change a klog root, and those that only read."""
    topics = verbs.add_parser("topics", help="list, describe, create, alter or delete topics")
    actions = topics.add_subparsers(required=True, metavar="ACTION")
    alter_topics.add_actions(actions, with_klog_root)
    listing = actions.add_parser(
        "list", parents=[with_any_root], help="list the names of the topics"
    )
    listing.set_defaults(run=list_topics, parser=listing)
    describing = actions.add_parser(
        "describe",
        parents=[with_any_root],
        help="show partitions, offsets, segments and bytes of each topic",
        epilog=_COLUMNS,
    )
    describing.set_defaults(run=describe_topics, parser=describing)
    for action in (listing, describing):
        action.add_argument(
            "--topic",
            type=_pattern,
            metavar="REGEX",
            help="only topics whose full name matches; separate several patterns with commas",
        )
        action.add_argument(
            "--exclude-internal", action="store_true", help="leave out Kafka's internal topics"
        )
        action.add_argument("--json", action="store_true", help="one JSON array")


def list_topics(args: argparse.Namespace, out: BinaryIO) -> int:
    """Print the names of the topics; with `--json` their ids and partitions too."""
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
    topics = _shown_raw(args) if root is None else _shown(args, root)
    if args.json:
        write_json(out, [_object(name, description) for name, description in topics.items()])
    else:
        write_lines(out, _table(topics))
    return int(
        any(
            description.error or any("error" in facts for facts in description.partitions)
            for description in topics.values()
        )
    )


def _listed_raw(args: argparse.Namespace) -> tuple[list[dict[str, Any]], int]:
    snapshot = RawRoot(directories(args.root)).snapshot()
    chosen = _chosen(args, snapshot)
    ids = snapshot.topic_ids(chosen) if args.json else {}
    rows = [
        _row_of_list(topic, ids.get(topic), [name.partition for name in names])
        for topic, names in chosen.items()
    ]
    return rows, 0


def _listed(args: argparse.Namespace, root: KlogRoot) -> tuple[list[dict[str, Any]], int]:
    """List the topics of a klog root; warn of a topic whose log cannot be read."""
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
    snapshot = root.snapshot()
    chosen = _chosen(args, snapshot)
    if not chosen:
        _refuse_nothing(args, sorted(snapshot.topics))
    ids = snapshot.topic_ids(chosen)
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
        description = describe_state(topic, state)
        partitions: list[Facts] = [
            {
                "partition": partition.partition,
                "logStartOffset": partition.log_start,
                "logEndOffset": partition.log_end,
                "lastStableOffset": partition.log_end,
                "segments": partition.segments,
                "bytes": partition.size_bytes,
            }
            for partition in description.partitions
        ]
        shown[topic] = Shown(description.topic_id, partitions, description.config)
    if not shown:
        if args.topic is not None and len(chosen) == 1:
            root.load(root.log_to_read(chosen[0]))  # Raises: the topic was deleted.
        _refuse_nothing(args, list(states(root, root.topic_names())))
    return shown


def _names(args: argparse.Namespace, root: KlogRoot) -> list[str]:
    return [topic for topic in root.topic_names() if _is_chosen(args, topic)]


def _refuse_nothing(args: argparse.Namespace, topics: list[str]) -> None:
    """Raise `OptionError` if a pattern matches nothing; without a pattern, no topic is fine."""
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
        raise argparse.ArgumentTypeError(
            f"must be a regular expression, got {text!r}: {exc}"
        ) from exc


def _chosen(args: argparse.Namespace, snapshot: Snapshot) -> dict[str, list[TopicPartition]]:
    """Return the partitions of the selected topics, by topic."""
    return {
        topic: [TopicPartition(topic, number) for number in numbers]
        for topic, numbers in snapshot.topics.items()
        if _is_chosen(args, topic)
    }


def _is_chosen(args: argparse.Namespace, topic: str) -> bool:
    if args.topic is not None and not args.topic.fullmatch(topic):
        return False
    return not (args.exclude_internal and topic in INTERNAL_TOPICS)


def _partitions(root: RawRoot, names: list[TopicPartition]) -> list[Facts]:
    """Describe partitions together, or one by one if one of them cannot be read."""
    try:
        return retry_stale_listing(
            lambda: [_facts(log) for log in root.snapshot().open(names).values()]
        )
    except KlogError as exc:
        if len(names) == 1:
            return [{"partition": names[0].partition, "error": str(exc)}]
        return [facts for name in names for facts in _partitions(root, [name])]


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
    result: dict[str, Any] = {"topic": topic, "topicId": shown.topic_id}
    if shown.config is not None:
        result["configs"] = dict(shown.config)
    result["partitions"] = shown.partitions
    return result if shown.error is None else result | {"error": shown.error}


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
