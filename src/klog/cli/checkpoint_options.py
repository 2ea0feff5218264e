"""The options of `klog checkpoint`."""

from __future__ import annotations

import argparse
import math
from typing import Any

from klog.jobs.shared.common_options import Run

_HELP = """\
Stop the query first. With the copy as its checkpoint, the query then continues with format("klog")
where it stopped with format("kafka"). The old checkpoint does not change.

The copy has the query's id, its micro-batches and its state. A micro-batch that was not committed
runs again with the same id and the same offsets. All sources of the query must be Kafka sources.

The copy fails if klog sees that the query writes to its checkpoint, before or during the copy.
Spark has no lock, so klog cannot see a query that is idle or in the middle of a long micro-batch.
See docs/checkpoints.md."""

_WATCH_SECONDS = 10.0


def add_verbs(verbs: argparse._SubParsersAction[Any]) -> None:
    """Add `checkpoint` and its actions to a command line."""
    checkpoint = verbs.add_parser(
        "checkpoint", help="move a streaming query from Spark's Kafka source to klog"
    )
    actions = checkpoint.add_subparsers(required=True, metavar="ACTION")
    parser = actions.add_parser(
        "copy",
        help="copy the checkpoint of a query of Spark's Kafka source, for klog",
        epilog=_HELP,
    )
    parser.set_defaults(load=_load, parser=parser)
    parser.add_argument("source", metavar="SOURCE", help="the checkpoint: a path or a URL")
    parser.add_argument(
        "target", metavar="TARGET", help="the copy, a new directory: a path or a URL"
    )
    parser.add_argument(
        "--watch", type=_seconds, default=_WATCH_SECONDS, metavar="SECONDS",
        help="how long the checkpoint must not change before klog copies it; default: 10",
    )  # fmt: skip
    parser.add_argument(
        "--dry-run",
        action="store_true",
        help="only check the checkpoint and show the copy; write nothing",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")


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
