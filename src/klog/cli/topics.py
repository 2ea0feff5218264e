"""`klog topics list` and `klog topics describe`, after kafka-topics.

A partition whose log cannot be read is shown with its error, and the others are still shown; the
exit code is 1 then.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, BinaryIO, TypeAlias

from klog.cli.roots import directories
from klog.connector.log.partition import Look, PartitionLog, Root, TopicPartition
from klog.connector.log.raw import retrying
from klog.connector.log.roots import open_root
from klog.connector.source.subscription import INTERNAL_TOPICS
from klog.errors import KlogError, OptionError

Facts: TypeAlias = dict[str, int | str]
"""What is known of one partition, by the names that `--json` prints."""

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
  Segments, Bytes    the .log files with records in them, and their readable bytes"""


def add_verbs(verbs: argparse._SubParsersAction[Any], common: argparse.ArgumentParser) -> None:
    """Add `topics list` and `topics describe` to a command line."""
    topics = verbs.add_parser("topics", help="the topics of a root")
    actions = topics.add_subparsers(required=True, metavar="ACTION")
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


def list_topics(given: argparse.Namespace, out: BinaryIO) -> int:
    """Print the names of the topics, or with `--json` their ids and partitions too."""
    look = open_root(directories(given.root)).look()
    chosen = _chosen(given, look)
    if given.json:
        ids = look.topic_ids(chosen)
        _write_json(
            out,
            [
                {
                    "topic": topic,
                    "topicId": ids.get(topic),
                    "partitions": [name.partition for name in names],
                    "internal": topic in INTERNAL_TOPICS,
                }
                for topic, names in chosen.items()
            ],
        )
    else:
        out.write("".join(f"{topic}\n" for topic in chosen).encode())
    return 0


def describe_topics(given: argparse.Namespace, out: BinaryIO) -> int:
    """Print what each partition holds. Raises `OptionError` if `--topic` matches nothing."""
    root = open_root(directories(given.root))
    look = root.look()
    chosen = _chosen(given, look)
    if given.topic is not None and not chosen:
        topics = sorted(look.topics)
        raise OptionError(
            f"--topic: no topic matches {given.topic.pattern}; "
            + (f"the topics here are {', '.join(topics)}" if topics else "there is none here")
        )
    ids = look.topic_ids(chosen)
    described = {topic: _partitions(root, names) for topic, names in chosen.items()}
    if given.json:
        _write_json(
            out,
            [
                {"topic": topic, "topicId": ids.get(topic), "partitions": partitions}
                for topic, partitions in described.items()
            ],
        )
    else:
        out.write(_table(described, ids).encode())
    return int(any("error" in one for some in described.values() for one in some))


def _pattern(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text.strip().replace(",", "|"))
    except re.error as exc:
        raise argparse.ArgumentTypeError(f"{text!r} is no regular expression: {exc}") from exc


def _chosen(given: argparse.Namespace, look: Look) -> dict[str, list[TopicPartition]]:
    """Give the partitions of the topics asked for, by topic."""
    chosen: dict[str, list[TopicPartition]] = {}
    for topic, numbers in look.topics.items():
        if given.topic is not None and not given.topic.fullmatch(topic):
            continue
        if given.exclude_internal and topic in INTERNAL_TOPICS:
            continue
        chosen[topic] = [TopicPartition(topic, number) for number in numbers]
    return chosen


def _partitions(root: Root, names: list[TopicPartition]) -> list[Facts]:
    """Describe partitions together, or one by one where one of them cannot be read."""
    try:
        return retrying(lambda: [_facts(log) for log in root.look().open(names).values()])
    except KlogError as exc:
        if len(names) == 1:
            return [{"partition": names[0].partition, "error": str(exc)}]
        return [one for name in names for one in _partitions(root, [name])]


def _facts(log: PartitionLog) -> Facts:
    return {
        "partition": log.name.partition,
        "logStartOffset": log.log_start,
        "logEndOffset": log.log_end,
        "lastStableOffset": log.last_stable_offset(),
        "segments": log.segment_count,
        "bytes": log.size_bytes,
    }


def _table(described: Mapping[str, Iterable[Facts]], ids: Mapping[str, str]) -> str:
    lines = []
    for topic, partitions in described.items():
        rows = [_row(facts) for facts in partitions]
        topic_id = f"\tTopicId: {ids[topic]}" if topic in ids else ""
        lines.append(f"Topic: {topic}{topic_id}\tPartitionCount: {len(rows)}")
        lines.extend(rows)
    return "".join(f"{line}\n" for line in lines)


def _row(facts: Facts) -> str:
    return "".join(f"\t{label}: {facts[key]}" for key, label in _LABELS.items() if key in facts)


def _write_json(out: BinaryIO, value: Any) -> None:
    out.write(json.dumps(value, ensure_ascii=False).encode() + b"\n")
