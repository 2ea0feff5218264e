"""Options that several verbs and job scripts have: `--root`, `--topic`, `--config`.

The rule: an option that several commands have is declared here, with the same meaning for all of
them. The environment variable `KLOG_ROOT` takes the place of `--root`.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Sequence
from typing import BinaryIO, TypeAlias

from klog.jobs.shared.argument_values import name_and_value, names_with_commas

KLOG_ROOT = "KLOG_ROOT"
"""The environment variable for a root; an empty value counts as unset."""

Run: TypeAlias = Callable[[argparse.Namespace, BinaryIO], int]
"""What a verb does with its arguments; the file gets its output. Returns the exit code."""


def add_root_option(parser: argparse.ArgumentParser, help_text: str, *, repeatable: bool) -> None:
    """Add `--root`; `set_root` gives it a value if it is missing on the command line.

    Args:
        parser: The parser of the command.
        help_text: What the root is.
        repeatable: Whether the value is a list, so that the option may be repeated.
    """
    parser.add_argument(
        "--root",
        action="append" if repeatable else "store",
        metavar="R",
        help=f"{help_text}; default: ${KLOG_ROOT}",
    )


def set_root(
    args: argparse.Namespace, parser: argparse.ArgumentParser, *, repeatable: bool
) -> None:
    """Set `root` from the environment if `--root` was not given.

    Args:
        args: The parsed arguments.
        parser: The parser of the command, which ends the process if there is no root.
        repeatable: Whether the value is a list.
    """
    if args.root is None:
        root = os.environ.get(KLOG_ROOT)
        if not root:
            parser.error(f"the following arguments are required: --root (or set {KLOG_ROOT})")
        args.root = [root] if repeatable else root


def add_topic_option(
    parser: argparse.ArgumentParser, help_text: str = "the full name of the topic"
) -> None:
    """Add a required `--topic` that takes one name.

    Args:
        parser: The parser of the command.
        help_text: The help of the option.
    """
    parser.add_argument("-t", "--topic", required=True, metavar="T", help=help_text)


def add_topics_option(
    parser: argparse.ArgumentParser,
    help_text: str,
    *,
    required: bool = False,
    names: Sequence[str] = ("-t", "--topic"),
) -> None:
    """Add a `--topic` that takes several names, repeated or with commas between them.

    Args:
        parser: The parser of the command.
        help_text: Whose names they are; the help adds how to give several.
        required: Whether the command needs a name.
        names: The option, and others that mean the same.
    """
    parser.add_argument(
        *names,
        dest="topic",
        action="extend",
        type=names_with_commas,
        required=required,
        metavar="T,...",
        help=help_text,
    )


def add_config_option(parser: argparse.ArgumentParser, help_text: str) -> None:
    """Add `--config NAME=VALUE`, repeatable; its value is a list of pairs.

    Args:
        parser: The parser of the command.
        help_text: The help of the option.
    """
    add_pairs_option(parser, "--config", help_text=help_text)


def add_pairs_option(parser: argparse.ArgumentParser, *names: str, help_text: str) -> None:
    """Add an option that takes NAME=VALUE, repeatable; its value is a list of pairs.

    Args:
        parser: The parser of the command.
        names: The option, and a short form before it.
        help_text: The help of the option.
    """
    parser.add_argument(
        *names,
        action="append",
        default=[],
        type=name_and_value,
        metavar="NAME=VALUE",
        help=help_text,
    )
