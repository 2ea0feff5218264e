"""`klog topics delete`, which asks on a terminal first, and `klog topics undelete`.

The rule: all topics are loaded before the first is deleted, so that a wrong name deletes nothing.
Without a terminal there is nobody to ask, and `--yes` is implied: a script must not wait.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from typing import BinaryIO

from klog.cli.alter_topics import exists, state_object
from klog.connector.commit_log.commit import Amount
from klog.connector.commit_log.commit_checks import amount_of
from klog.connector.commit_log.klog_root import KlogRoot
from klog.connector.commit_log.topic_admin import TopicAdmin
from klog.connector.commit_log.topic_state import TopicState
from klog.text_output import write_json, write_lines
from klog.tools.root_arguments import root_with_log

DECLINED = 1


def delete_topics(args: argparse.Namespace, out: BinaryIO) -> int:
    """Delete topics, and print each one that is deleted."""
    root = root_with_log(args.root)
    states = _states(root, args)
    existing = {topic: state for topic, state in states.items() if state.topic_id}
    if existing and not args.yes and _is_terminal() and not _is_confirmed(existing):
        sys.stderr.write("Nothing was deleted.\n")
        return DECLINED
    for topic in states:
        if topic not in existing:
            state, message = TopicState(), f"There is no topic {topic}."
        else:
            state = TopicAdmin(root).delete(topic)
            message = (
                f"Deleted topic {topic}. `klog vacuum` frees its space after a day or more; until "
                f"then `klog topics undelete --topic {topic}` restores it."
            )
        if args.json:
            write_json(out, state_object(topic, state))
        else:
            write_lines(out, [message])
    return 0


def undelete_topic(args: argparse.Namespace, out: BinaryIO) -> int:
    """Restore a deleted topic."""
    state = TopicAdmin(root_with_log(args.root)).undelete(args.topic)
    if args.json:
        write_json(out, state_object(args.topic, state))
    else:
        held = _content_text(state)
        write_lines(out, [f"Topic {args.topic} is back: {held}."])
    return 0


def _states(root: KlogRoot, args: argparse.Namespace) -> dict[str, TopicState]:
    """Return the state of each topic; one without an id for a missing one under `--if-exists`."""
    states: dict[str, TopicState] = {}
    for topic in args.topic:
        is_missing = args.if_exists and not exists(root, topic)
        states[topic] = TopicState() if is_missing else root.load(root.log_to_write(topic))
    return states


def _is_terminal() -> bool:
    """Return whether a user can be asked: the question goes to stderr."""
    return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stderr))


def _is_confirmed(states: Mapping[str, TopicState]) -> bool:
    """Show what the topics hold, and ask."""
    for topic, state in states.items():
        sys.stderr.write(f"Topic {topic}: {_content_text(state)}.\n")
    question = "Delete it?" if len(states) == 1 else f"Delete these {len(states)} topics?"
    sys.stderr.write(f"{question} [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _content_text(state: TopicState) -> str:
    amount = amount_of(state.segments) or Amount(0, 0)
    partitions = f"{state.partitions:,} partition" + "s" * (state.partitions != 1)
    return f"{partitions}, {amount.records:,} records, {amount.size_bytes:,} bytes"
