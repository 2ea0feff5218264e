"""Options that several copies have: which topics, options of a read or a write, rounds, Spark."""

from __future__ import annotations

import argparse

from klog.jobs.shared.argument_values import duration_ms
from klog.jobs.shared.common_options import add_pairs_option


def add_topic_pattern_option(parser: argparse.ArgumentParser) -> None:
    """Add `--topic-pattern REGEX`.

    Args:
        parser: The parser of the command.
    """
    parser.add_argument(
        "--topic-pattern",
        metavar="REGEX",
        help="instead of --topic: all topics whose name contains a match of this pattern",
    )


def add_store_options(parser: argparse.ArgumentParser, help_text: str) -> None:
    """Add `--option NAME=VALUE`, an option of the read or the write that a copy does.

    Args:
        parser: The parser of the command.
        help_text: Whose options they are, with examples.
    """
    add_pairs_option(parser, "-o", "--option", help_text=f"{help_text}; repeat the option for more")


def add_round_options(parser: argparse.ArgumentParser, interval_help: str = "such as 10s") -> None:
    """Add `--continuous` and `--interval TIME`, whose value is in ms.

    Args:
        parser: The parser of the command.
        interval_help: An example of the interval, and what a round does besides.
    """
    parser.add_argument(
        "--continuous", action="store_true", help="repeat the copy for new data until Ctrl-C"
    )
    parser.add_argument(
        "--interval",
        type=duration_ms,
        default=60_000,
        metavar="TIME",
        help=f"with --continuous: the pause between two copies, {interval_help}; default: 60s",
    )


def single_topic(args: argparse.Namespace, error: str) -> str:
    """Return the only name of `--topic`.

    Args:
        args: The parsed arguments.
        error: What the error says.

    Raises:
        argparse.ArgumentError: There is none, or several.
    """
    if args.topic is None or len(args.topic) != 1:
        raise argparse.ArgumentError(None, error)
    topic: str = args.topic[0]
    return topic
