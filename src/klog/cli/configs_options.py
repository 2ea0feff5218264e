"""The options of `klog configs`, those of kafka-configs."""

from __future__ import annotations

import argparse
import re
from typing import Any

from klog.jobs.shared.argument_values import name_and_value
from klog.jobs.shared.common_options import Run, add_config_option, add_topics_option
from klog.tools.kafka_options import ADMIN_OPTIONS, add_client_options

_COMMA = re.compile(r",(?![^\[\]]*\])")
"""A comma outside brackets."""
_HELP = """\
klog configs --root R --topic T                                show the configs that are set
klog configs --root R --topic T --all                          show the defaults too
klog configs --root R --topic T --config retention.ms=3600000  set a config
klog configs --root R --topic T --delete-config retention.ms   reset a config to its default

The options of kafka-configs work too: --alter --add-config a=1,b=[x,y] --delete-config c,d
and --entity-type topics --entity-name T."""


def add_verb(verbs: argparse._SubParsersAction[Any], common: argparse.ArgumentParser) -> None:
    """Add `configs` to a command line."""
    parser = verbs.add_parser(
        "configs", parents=[common], help="show or change the configs of topics", epilog=_HELP
    )
    parser.set_defaults(load=_load, parser=parser)
    add_client_options(parser, [*ADMIN_OPTIONS, "--bootstrap-controller"])
    parser.add_argument("--entity-type", choices=("topics",), help=argparse.SUPPRESS)
    add_topics_option(
        parser,
        "the full names of the topics; repeat the option or separate names with commas; default, "
        "if you only show configs: every topic",
        names=("-t", "--topic", "--entity-name"),
    )
    action = parser.add_mutually_exclusive_group()
    action.add_argument("--describe", action="store_true", help="show configs (the default)")
    action.add_argument(
        "--alter",
        action="store_true",
        help="change configs; --config, --add-config and --delete-config imply it",
    )
    add_config_option(parser, "set a config; repeat the option for more configs")
    parser.add_argument(
        "--add-config",
        action="append",
        default=[],
        type=_parse_configs,
        metavar="NAME=VALUE,...",
        help="set several configs; put a value that contains commas into []",
    )
    parser.add_argument(
        "--delete-config",
        action="append",
        default=[],
        type=lambda text: [name.strip() for name in text.split(",")],
        metavar="NAME,...",
        help="reset configs to their defaults; repeat the option or separate names with commas",
    )
    parser.add_argument(
        "--all", action="store_true", help="also show the configs that have their defaults"
    )
    parser.add_argument(
        "--json",
        action="store_true",
        help="print one JSON array; after a change, print one JSON object for each topic",
    )


def _load() -> Run:
    from klog.cli.configs import configs

    return configs


def _parse_configs(text: str) -> list[tuple[str, str]]:
    pairs = [name_and_value(part) for part in _COMMA.split(text)]
    return [
        (name, value[1:-1] if value.startswith("[") and value.endswith("]") else value)
        for name, value in pairs
    ]
