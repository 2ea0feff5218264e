"""The options of `klog checkpoint`."""

from __future__ import annotations

import argparse
import math
from typing import Any

from klog.jobs.shared.common_options import Run

_HELP = """\
Copies the checkpoint of a stopped query of format("kafka"). The query then goes on with
format("klog") from the copy, and the old checkpoint stays unchanged.

The copy has the query's id, its micro-batches and its state. A micro-batch that is not committed
runs again under its id, with the same offsets. All sources of the query must be Kafka's.

It is refused while the query writes to its checkpoint, before the copy and during it. Spark has no
lock: a query that is idle, or in the middle of a long micro-batch, writes nothing, so stop it
first. docs/checkpoints.md says more."""

_WATCH_SECONDS = 10.0


def add_verbs(verbs: argparse._SubParsersAction[Any]) -> None:
    """Add `checkpoint` and its actions to a command line."""
    checkpoint = verbs.add_parser("checkpoint", help="move a query from Spark's Kafka source")
    actions = checkpoint.add_subparsers(required=True, metavar="ACTION")
    parser = actions.add_parser(
        "copy", help="copy the checkpoint of a query of Spark's Kafka source", epilog=_HELP
    )
    parser.set_defaults(load=_load, parser=parser)
    parser.add_argument("source", metavar="SOURCE", help="the checkpoint, as a path or URL")
    parser.add_argument("target", metavar="TARGET", help="a new directory, as a path or URL")
    parser.add_argument(
        "--watch", type=_seconds, default=_WATCH_SECONDS, metavar="SECONDS",
        help="how long the checkpoint must stay the same before it is copied; default: 10",
    )  # fmt: skip
    parser.add_argument("--dry-run", action="store_true", help="only check and show; write nothing")
    parser.add_argument("--json", action="store_true", help="one JSON object")


def _load() -> Run:
    from klog.cli.checkpoint import copy

    return copy


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 <= seconds <= 86_400:
        raise argparse.ArgumentTypeError(f"must be seconds, from 0 to 86400, got {text!r}")
    return seconds
