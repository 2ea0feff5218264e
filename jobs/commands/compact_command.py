"""The command `compact`: its options, and the job that they run."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from klog.jobs.shared.argument_values import whole_number
from klog.jobs.shared.job_command import Command, Report, RunJob
from klog.jobs.shared.task_memory import MAP_BYTES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--min-dirty-ratio",
        type=float,
        metavar="R",
        help="replaces the topic's min.cleanable.dirty.ratio",
    )
    parser.add_argument(
        "--map-bytes",
        type=whole_number("a number of bytes", 1),
        default=MAP_BYTES,
        metavar="N",
        help="bytes of memory for the map of keys in each task; default: %(default)s",
    )


def _load() -> RunJob:
    from klog.jobs.compact import run

    def run_job(spark: SparkSession | None, args: argparse.Namespace) -> Report:
        return run(
            spark,
            args.root,
            args.topic,
            min_dirty_ratio=args.min_dirty_ratio,
            map_bytes=args.map_bytes,
            dry_run=args.dry_run,
        )

    return run_job


COMMAND = Command(
    "compact",
    "keep each key's last record, as a broker's log cleaner does",
    """\
For topics whose cleanup.policy has compact. A partition is cleaned if more than
min.cleanable.dirty.ratio of its bytes are new since the last cleaning, or if a record has waited
for max.compaction.lag.ms; --min-dirty-ratio 0 cleans every dirty partition. docs/jobs.md says
more.""",
    _add_options,
    _load,
)
