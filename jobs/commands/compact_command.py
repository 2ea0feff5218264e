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
        help="use this dirty ratio, from 0 to 1, instead of the topic's min.cleanable.dirty.ratio",
    )
    parser.add_argument(
        "--map-bytes",
        type=whole_number("a number of bytes", 1),
        default=MAP_BYTES,
        metavar="N",
        help="the memory for the map of keys in each task, in bytes; default: %(default)s",
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
    "keep only the last record of each key, as a broker's log cleaner does",
    """\
Compacts topics whose cleanup.policy contains compact. The dirty ratio of a partition is the share
of its bytes that are new since the last cleaning. klog cleans a partition if its dirty ratio is
above the topic's min.cleanable.dirty.ratio, or if a record has waited for max.compaction.lag.ms.
With --min-dirty-ratio 0, klog cleans every partition that has new records. See docs/jobs.md.""",
    _add_options,
    _load,
)
