"""`klog topics create` and `alter`, after kafka-topics.

The rule: a change names its topic in full, never by a pattern. Only `create` creates a root, and
only after it has checked the new topic.
"""

from __future__ import annotations

import argparse
from typing import Any, BinaryIO

from klog.connector.commit_log.commit_info import random_uuid
from klog.connector.commit_log.klog_root import KlogRoot
from klog.connector.commit_log.root_discovery import find_or_create_root, find_root
from klog.connector.commit_log.topic_admin import TopicAdmin, check_new_topic
from klog.connector.commit_log.topic_state import TopicState
from klog.text_output import write_json, write_lines
from klog.tools.root_arguments import root_with_log, single_directory
from klog.url_secrets import without_passwords


def create_topic(args: argparse.Namespace, out: BinaryIO) -> int:
    """Create a topic. Raises `OptionError` if it exists, unless `--if-not-exists` is set."""
    config = dict(args.config)
    check_new_topic(args.topic, args.partitions, config)
    root, is_new = _root_to_create_in(args.root)
    topics = TopicAdmin(root)
    message = f"Created topic {args.topic}."
    if args.if_not_exists:
        ensured = topics.ensure(args.topic, args.partitions, config)
        state = ensured.state
        message = message if ensured.is_created else f"Topic {args.topic} already exists."
    else:
        state = topics.create(args.topic, args.partitions, config)
    lines = [f"Created klog root {without_passwords(root.location)}."] * is_new
    return _print_state(args, out, state, [*lines, message])


def alter_topic(args: argparse.Namespace, out: BinaryIO) -> int:
    """Add partitions to a topic."""
    root = root_with_log(args.root)
    if args.if_exists and not exists(root, args.topic):
        return _print_state(args, out, TopicState(), [f"There is no topic {args.topic}."])
    state = TopicAdmin(root).add_partitions(args.topic, args.partitions)
    return _print_state(
        args, out, state, [f"Topic {args.topic} has {state.partitions} partitions."]
    )


def _root_to_create_in(roots: list[str]) -> tuple[KlogRoot, bool]:
    path = single_directory(roots)
    root = find_root(path)
    if root is not None:
        return root, False
    cluster_id = random_uuid()
    new_root = find_or_create_root(path, cluster_id)
    return new_root, new_root.cluster_id == cluster_id


def exists(root: KlogRoot, topic: str) -> bool:
    """Return whether a root has a topic."""
    return bool(root.log_to_write(topic).load().topic_id)


def _print_state(
    args: argparse.Namespace, out: BinaryIO, state: TopicState, lines: list[str]
) -> int:
    if args.json:
        write_json(out, state_object(args.topic, state))
    else:
        write_lines(out, lines)
    return 0


def state_object(topic: str, state: TopicState) -> dict[str, Any]:
    """Return a topic after a change as a JSON object; without an id, it does not exist."""
    return {
        "topic": topic,
        "topicId": state.topic_id or None,
        "version": state.version,
        "partitionCount": state.partitions,
        "configs": dict(state.config),
    }
