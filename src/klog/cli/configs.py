"""`klog configs`: the configs of a klog root's topics, after kafka-configs.

Without a change it shows them. `--add-config` and `--delete-config` take several configs as
kafka-configs does: separated by commas, with brackets around a value that contains commas. If it
shows all topics, it shows a topic that cannot be read with its error, and the exit code is 1.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any, BinaryIO

from klog.connector.commit_log.klog_root import KlogRoot
from klog.connector.commit_log.topic_admin import TopicAdmin
from klog.connector.commit_log.topic_state import TopicState
from klog.errors import KlogError
from klog.logformat.topic_config_defaults import default_config_text, klog_config_names
from klog.text_output import printable, write_json, write_lines
from klog.tools.root_arguments import root_with_log, states


def configs(args: argparse.Namespace, out: BinaryIO) -> int:
    """Show configs, or change those of the topics that are named."""
    changes = dict(args.config) | {k: v for pairs in args.add_config for k, v in pairs}
    unset = [name for names in args.delete_config for name in names]
    if not (changes or unset):
        if args.alter:
            raise argparse.ArgumentError(None, "--alter: give --config or --delete-config")
        return _show(args, out, root_with_log(args.root))
    if args.describe:
        raise argparse.ArgumentError(
            None, "--describe only shows configs: give it without --config and --delete-config"
        )
    if args.all and not args.json:
        raise argparse.ArgumentError(
            None, "--all shows configs: give it without --config and --delete-config, or add --json"
        )
    if args.topic is None:
        raise argparse.ArgumentError(None, "--topic: required to change configs")
    root = root_with_log(args.root)
    topics = list(dict.fromkeys(args.topic))
    for topic in topics:
        root.load(root.log_to_write(topic))  # Raises: a wrong name changes no topic.
    for topic in topics:
        state = TopicAdmin(root).alter_config(topic, changes, unset)
        if args.json:
            write_json(out, _object(topic, state, with_defaults=args.all))
        else:
            write_lines(out, [f"Completed updating config for topic {topic}."])
    return 0


def _show(args: argparse.Namespace, out: BinaryIO, root: KlogRoot) -> int:
    states_by_topic: Mapping[str, TopicState | KlogError]
    if args.topic is None:
        states_by_topic = states(root, root.topic_names())
    else:
        states_by_topic = {topic: root.load(root.log_to_read(topic)) for topic in args.topic}
    if args.json:
        objects = [
            _object_or_error(topic, state, with_defaults=args.all)
            for topic, state in states_by_topic.items()
        ]
        write_json(out, objects)
    else:
        for topic, state in states_by_topic.items():
            if isinstance(state, KlogError):
                write_lines(out, [f"Error: topic {topic}: {printable(str(state))}"])
                continue
            write_lines(out, [f"Configs for topic {topic} are:"])
            write_lines(out, _lines(state.config, with_defaults=args.all))
    return int(any(isinstance(state, KlogError) for state in states_by_topic.values()))


def _object_or_error(
    topic: str, state: TopicState | KlogError, *, with_defaults: bool
) -> dict[str, Any]:
    if isinstance(state, KlogError):
        return {"topic": topic, "error": str(state)}
    return _object(topic, state, with_defaults=with_defaults)


def _lines(config: Mapping[str, str], *, with_defaults: bool) -> list[str]:
    lines = {name: f"{name}={printable(text)}" for name, text in config.items()}
    if with_defaults:
        for name in klog_config_names():
            lines.setdefault(name, f"{name}={default_config_text(name)} (default)")
    return [f"  {lines[name]}" for name in sorted(lines)]


def _object(topic: str, state: TopicState, *, with_defaults: bool) -> dict[str, Any]:
    result: dict[str, Any] = {
        "topic": topic,
        "topicId": state.topic_id,
        "version": state.version,
        "configs": dict(sorted(state.config.items())),
    }
    if with_defaults:
        defaults = (name for name in klog_config_names() if name not in state.config)
        result["defaults"] = {name: default_config_text(name) for name in sorted(defaults)}
    return result
