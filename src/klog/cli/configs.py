"""`klog configs`: the configs of a klog root's topics, after kafka-configs.

Without a change it shows them. `--add-config` and `--delete-config` take several configs as
kafka-configs does: separated by commas, with brackets around a value that contains commas. If it
shows all topics, it shows a topic that cannot be read with its error, and the exit code is 1.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping
from typing import Any, BinaryIO

from klog.connector.commit_log.klog_root import KlogRoot
from klog.connector.commit_log.topic_admin import TopicAdmin
from klog.connector.commit_log.topic_state import TopicState
from klog.errors import KlogError
from klog.jobs.shared.argument_values import name_and_value
from klog.jobs.shared.job_command import add_config_option
from klog.logformat.topic_config_defaults import default_config_text, klog_config_names
from klog.text_output import printable, write_json, write_lines
from klog.tools.root_arguments import root_with_log, states

_COMMA = re.compile(r",(?![^\[\]]*\])")
"""A comma outside brackets."""
_HELP = """\
klog configs --root R --topic T                                show the configs that are set
klog configs --root R --topic T --all                          show the defaults too
klog configs --root R --topic T --config retention.ms=3600000  set a config
klog configs --root R --topic T --delete-config retention.ms   reset a config to its default

The options of kafka-configs work too: --alter --add-config a=1,b=[x,y] --delete-config c,d"""


def add_verb(verbs: argparse._SubParsersAction[Any], common: argparse.ArgumentParser) -> None:
    """Add `configs` to a command line."""
    parser = verbs.add_parser(
        "configs", parents=[common], help="show or change the configs of topics", epilog=_HELP
    )
    parser.set_defaults(run=configs, parser=parser)
    parser.add_argument("--topic", metavar="T", help="the topic's full name; default: every topic")
    action = parser.add_mutually_exclusive_group()
    action.add_argument("--describe", action="store_true", help="show configs (the default)")
    action.add_argument(
        "--alter", action="store_true", help="change configs; the next three options imply it"
    )
    add_config_option(parser, "set a config; repeatable")
    parser.add_argument(
        "--add-config",
        action="append",
        default=[],
        type=_parse_configs,
        metavar="NAME=VALUE,...",
        help="set several configs; put [] around a value with commas",
    )
    parser.add_argument(
        "--delete-config",
        action="append",
        default=[],
        type=lambda text: [name.strip() for name in text.split(",")],
        metavar="NAME,...",
        help="reset configs to their defaults; repeatable",
    )
    parser.add_argument(
        "--all", action="store_true", help="show the defaults of the other configs too"
    )
    parser.add_argument(
        "--json", action="store_true", help="one JSON array, or one object after a change"
    )


def configs(args: argparse.Namespace, out: BinaryIO) -> int:
    """Show configs, or change those of one topic."""
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
    if args.topic is None:
        raise argparse.ArgumentError(None, "--topic: required to change configs")
    state = TopicAdmin(root_with_log(args.root)).alter_config(args.topic, changes, unset)
    if args.json:
        write_json(out, _object(args.topic, state, with_defaults=args.all))
    else:
        write_lines(out, [f"Completed updating config for topic {args.topic}."])
    return 0


def _show(args: argparse.Namespace, out: BinaryIO, root: KlogRoot) -> int:
    states_by_topic: Mapping[str, TopicState | KlogError]
    if args.topic is None:
        states_by_topic = states(root, root.topic_names())
    else:
        states_by_topic = {args.topic: root.load(root.log_to_read(args.topic))}
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


def _parse_configs(text: str) -> list[tuple[str, str]]:
    pairs = [name_and_value(part) for part in _COMMA.split(text)]
    return [
        (name, value[1:-1] if value.startswith("[") and value.endswith("]") else value)
        for name, value in pairs
    ]
