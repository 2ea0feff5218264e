"""`klog topics list` and `klog topics describe`, after kafka-topics.

A partition whose log cannot be read is shown with its error; in a klog root, a topic. The others
are still shown, and the exit code is 1. Only the modules of the root's own kind are imported.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping
from typing import Any, BinaryIO

from klog.cli.topic_descriptions import Shown
from klog.text_output import configs_text, labelled, write_json, write_lines
from klog.tools.root_arguments import klog_root

_LABELS = {
    "partition": "Partition",
    "logStartOffset": "LogStartOffset",
    "logEndOffset": "LogEndOffset",
    "lastStableOffset": "LastStableOffset",
    "segments": "Segments",
    "bytes": "Bytes",
    "error": "Error",
}


def list_topics(args: argparse.Namespace, out: BinaryIO) -> int:
    """Print the names of the topics; with `--json` their ids and partitions too."""
    rows, code = topic_rows(args)
    if args.json:
        write_json(out, rows)
    else:
        write_lines(out, [str(row["topic"]) for row in rows])
    return code


def topic_rows(args: argparse.Namespace) -> tuple[list[dict[str, Any]], int]:
    """Return the selected topics as `--json` prints them, and the exit code.

    Args:
        args: The root, and which topics: the options of `klog topics list`.
    """
    root = klog_root(args.root)
    if root is None:
        from klog.cli import topics_of_log_dirs

        return topics_of_log_dirs.list_topics(args)
    from klog.cli import topics_of_klog_root

    return topics_of_klog_root.list_topics(args, root)


def describe_topics(args: argparse.Namespace, out: BinaryIO) -> int:
    """Print what each partition holds. Raises `OptionError` if `--topic` matches nothing."""
    root = klog_root(args.root)
    if root is None:
        from klog.cli import topics_of_log_dirs

        topics = topics_of_log_dirs.describe_topics(args)
    else:
        from klog.cli import topics_of_klog_root

        topics = topics_of_klog_root.describe_topics(args, root)
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
