"""The topics of a klog root, for `klog topics`.

A topic whose log cannot be read is shown with its error.
"""

from __future__ import annotations

import argparse
import logging
from typing import Any

from klog.cli.topic_descriptions import Facts, Shown, is_chosen, refuse_no_match, row_of_list
from klog.connector.commit_log.klog_root import KlogRoot
from klog.connector.commit_log.topic_admin import describe_state
from klog.errors import KlogError
from klog.tools.root_arguments import states

logger = logging.getLogger(__name__)


def list_topics(args: argparse.Namespace, root: KlogRoot) -> tuple[list[dict[str, Any]], int]:
    """Return the selected topics and the exit code; warn of one that cannot be read."""
    rows, code = [], 0
    for topic, state in states(root, _names(args, root)).items():
        if isinstance(state, KlogError):
            logger.warning("topic %s: %s", topic, state)
            rows.append(row_of_list(topic, None, []))
            code = 1
        else:
            rows.append(row_of_list(topic, state.topic_id, list(range(state.partitions))))
    return rows, code


def describe_topics(args: argparse.Namespace, root: KlogRoot) -> dict[str, Shown]:
    """Describe the selected topics. Raises `OptionError` if `--topic` matches nothing."""
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
        refuse_no_match(args, list(states(root, root.topic_names())))
    return shown


def _names(args: argparse.Namespace, root: KlogRoot) -> list[str]:
    return [topic for topic in root.topic_names() if is_chosen(args, topic)]
