"""`klog configs`: the configs of a klog root's topics, after kafka-configs.

Without a change it shows them. `--add-config` and a `--delete-config` of several names are taken as
kafka-configs takes them: commas between, brackets around a value that has some. Where all topics
are shown, one that cannot be read is shown with its error; the exit code is 1 then.
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
from klog.jobs.shared.job_command import add_config_option, name_and_value
from klog.jobs.shared.text_output import printable, write_json, write_lines
from klog.logformat.topic_config_defaults import default_config_text, klog_config_names
from klog.tools.root_arguments import root_with_log, states

_COMMA = re.compile(r",(?![^\[\]]*\])")
"""One that is not within brackets."""
_HELP = """\
klog configs --root R --topic T                                shows what was given
klog configs --root R --topic T --all                          and the defaults
klog configs --root R --topic T --config retention.ms=3600000  sets
klog configs --root R --topic T --delete-config retention.ms   gives back to the default

kafka-configs' own --alter --add-config a=1,b=[x,y] --delete-config c,d does the same."""


def add_verb(verbs: argparse._SubParsersAction[Any], common: argparse.ArgumentParser) -> None:
    """Add `configs` to a command line."""
    parser = verbs.add_parser(
        "configs", parents=[common], help="show or change the configs of topics", epilog=_HELP
    )
    parser.set_defaults(run=configs, parser=parser)
    parser.add_argument("--topic", metavar="T", help="its whole name; without it, every topic")
    does = parser.add_mutually_exclusive_group()
    does.add_argument("--describe", action="store_true", help="show; what it does anyway")
    does.add_argument("--alter", action="store_true", help="change; said by the next three, too")
    add_config_option(parser, "set one; repeatable")
    parser.add_argument(
        "--add-config",
        action="append",
        default=[],
        type=_several,
        metavar="NAME=VALUE,...",
        help="set several, [] around a value with commas",
    )
    parser.add_argument(
        "--delete-config",
        action="append",
        default=[],
        type=lambda text: [name.strip() for name in text.split(",")],
        metavar="NAME,...",
        help="give back to the default; repeatable",
    )
    parser.add_argument("--all", action="store_true", help="show the defaults of the others too")
    parser.add_argument("--json", action="store_true", help="one JSON array, or object if changed")


def configs(args: argparse.Namespace, out: BinaryIO) -> int:
    """Show configs, or change those of one topic."""
    change = dict(args.config) | {k: v for some in args.add_config for k, v in some}
    unset = [name for some in args.delete_config for name in some]
    if not (change or unset):
        if args.alter:
            raise argparse.ArgumentError(None, "--alter: say what, by --config or --delete-config")
        return _show(args, out, root_with_log(args.root))
    if args.describe:
        raise argparse.ArgumentError(None, "--describe shows, and --config changes: give one")
    if args.topic is None:
        raise argparse.ArgumentError(None, "--topic: say whose configs to change")
    state = TopicAdmin(root_with_log(args.root)).alter_config(args.topic, change, unset)
    if args.json:
        write_json(out, _object(args.topic, state, with_defaults=args.all))
    else:
        write_lines(out, [f"Completed updating config for topic {args.topic}."])
    return 0


def _show(args: argparse.Namespace, out: BinaryIO, root: KlogRoot) -> int:
    found: Mapping[str, TopicState | KlogError]
    if args.topic is None:
        found = states(root, root.topic_names())
    else:
        found = {args.topic: root.load(root.log_to_read(args.topic))}
    if args.json:
        write_json(out, [_shown(name, one, with_defaults=args.all) for name, one in found.items()])
    else:
        for name, one in found.items():
            if isinstance(one, KlogError):
                write_lines(out, [f"Error: topic {name}: {printable(str(one))}"])
                continue
            write_lines(out, [f"Configs for topic {name} are:"])
            write_lines(out, _lines(one.config, with_defaults=args.all))
    return int(any(isinstance(one, KlogError) for one in found.values()))


def _shown(name: str, one: TopicState | KlogError, *, with_defaults: bool) -> dict[str, Any]:
    if isinstance(one, KlogError):
        return {"topic": name, "error": str(one)}
    return _object(name, one, with_defaults=with_defaults)


def _lines(config: Mapping[str, str], *, with_defaults: bool) -> list[str]:
    said = {name: f"{name}={printable(text)}" for name, text in config.items()}
    if with_defaults:
        for name in klog_config_names():
            said.setdefault(name, f"{name}={default_config_text(name)} (default)")
    return [f"  {said[name]}" for name in sorted(said)]


def _object(topic: str, state: TopicState, *, with_defaults: bool) -> dict[str, Any]:
    said: dict[str, Any] = {
        "topic": topic,
        "topicId": state.topic_id,
        "version": state.version,
        "configs": dict(sorted(state.config.items())),
    }
    if with_defaults:
        left = (name for name in klog_config_names() if name not in state.config)
        said["defaults"] = {name: default_config_text(name) for name in sorted(left)}
    return said


def _several(text: str) -> list[tuple[str, str]]:
    pairs = [name_and_value(one) for one in _COMMA.split(text)]
    return [
        (name, value[1:-1] if value.startswith("[") and value.endswith("]") else value)
        for name, value in pairs
    ]
