"""`klog topics create`, `alter` and `delete`, after kafka-topics.

The rule: a topic is named whole, never by a pattern, where something is changed. Only `create`
makes a root, and only once what is to be made in it is right.
"""

from __future__ import annotations

import argparse
from typing import Any, BinaryIO

from klog.connector.commit_log.commit_info import random_uuid
from klog.connector.commit_log.klog_root import KlogRoot
from klog.connector.commit_log.root_discovery import find_or_create_root
from klog.connector.commit_log.topic_admin import TopicAdmin, check_new_topic
from klog.connector.commit_log.topic_state import TopicState
from klog.errors import OptionError, without_passwords
from klog.jobs.shared.job_command import add_config_option
from klog.jobs.shared.text_output import write_json, write_lines
from klog.tools.root_arguments import directories, klog_root, root_with_log


def add_actions(actions: argparse._SubParsersAction[Any], common: argparse.ArgumentParser) -> None:
    """Add `create`, `alter` and `delete` to the actions of `klog topics`."""
    creating = _action(
        actions, common, "create", "make a topic, and the klog root if there is none"
    )
    creating.set_defaults(run=create_topic, parser=creating)
    creating.add_argument(
        "--partitions",
        type=int,
        metavar="N",
        help="how many partitions; by default the root's num.partitions, which is 1 in a new root",
    )
    add_config_option(creating, "a config of the topic, as kafka-topics takes it; repeatable")
    creating.add_argument(
        "--if-not-exists", action="store_true", help="a topic that is there is fine, as it is"
    )
    altering = _action(actions, common, "alter", "give a topic more partitions")
    altering.set_defaults(run=alter_topic, parser=altering)
    altering.add_argument(
        "--partitions",
        type=int,
        required=True,
        metavar="N",
        help="how many in all; keys go to other partitions from then on",
    )
    deleting = _action(actions, common, "delete", "delete a topic; `klog vacuum` frees its space")
    deleting.set_defaults(run=delete_topic, parser=deleting)
    for action in (altering, deleting):
        action.add_argument(
            "--if-exists", action="store_true", help="a topic that is not there is fine"
        )


def create_topic(args: argparse.Namespace, out: BinaryIO) -> int:
    """Make a topic. Raises `OptionError` for one that is there, unless that is said to be fine."""
    config = dict(args.config)
    check_new_topic(args.topic, args.partitions, config)
    root, is_new = _root_to_create_in(args.root)
    topics = TopicAdmin(root)
    said = f"Created topic {args.topic}."
    if args.if_not_exists:
        state, is_made = topics.ensure(args.topic, args.partitions, config)
        said = said if is_made else f"Topic {args.topic} is there already."
    else:
        state = topics.create(args.topic, args.partitions, config)
    made = [f"Created klog root {without_passwords(root.location)}."] * is_new
    return _say(args, out, state, [*made, said])


def alter_topic(args: argparse.Namespace, out: BinaryIO) -> int:
    """Give a topic more partitions."""
    root = root_with_log(args.root)
    if args.if_exists and not _is_there(root, args.topic):
        return _say(args, out, TopicState(), [f"There is no topic {args.topic}."])
    state = TopicAdmin(root).add_partitions(args.topic, args.partitions)
    return _say(args, out, state, [f"Topic {args.topic} has {state.partitions} partitions."])


def delete_topic(args: argparse.Namespace, out: BinaryIO) -> int:
    """Delete a topic."""
    root = root_with_log(args.root)
    if args.if_exists and not _is_there(root, args.topic):
        return _say(args, out, TopicState(), [f"There is no topic {args.topic}."])
    state = TopicAdmin(root).delete(args.topic)
    said = f"Deleted topic {args.topic}. `klog vacuum` frees its space, a day later at the soonest."
    return _say(args, out, state, [said])


def _action(
    actions: argparse._SubParsersAction[Any],
    common: argparse.ArgumentParser,
    name: str,
    does: str,
) -> argparse.ArgumentParser:
    made: argparse.ArgumentParser = actions.add_parser(name, parents=[common], help=does)
    made.add_argument("--topic", required=True, metavar="T", help="the topic's whole name")
    made.add_argument("--json", action="store_true", help="one JSON object")
    return made


def _root_to_create_in(roots: list[str]) -> tuple[KlogRoot, bool]:
    found = klog_root(roots)
    if found is not None:
        return found, False
    args = directories(roots)
    if len(args) > 1:
        raise OptionError(f"--root: a topic is made in one klog root, not in {len(args)}")
    cluster_id = random_uuid()
    made = find_or_create_root(args[0], cluster_id)
    return made, made.cluster_id == cluster_id


def _is_there(root: KlogRoot, topic: str) -> bool:
    return bool(root.log_to_write(topic).load().topic_id)


def _say(args: argparse.Namespace, out: BinaryIO, state: TopicState, lines: list[str]) -> int:
    if args.json:
        write_json(
            out,
            {
                "topic": args.topic,
                "topicId": state.topic_id or None,
                "version": state.version,
                "partitionCount": state.partitions,
                "configs": dict(state.config),
            },
        )
    else:
        write_lines(out, lines)
    return 0
