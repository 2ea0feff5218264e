"""The command `import-log`: its options, and the job that they run."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from klog.jobs.shared.broker_logs.adopt_options import add_adopt_options
from klog.jobs.shared.job_command import Command, Report, RunJob

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--from",
        dest="source",
        action="append",
        required=True,
        metavar="DIR",
        help="the broker's log directory: a path or a URL; if the broker has several, repeat the "
        "option for all of them",
    )
    add_adopt_options(parser)


def _load() -> RunJob:
    from klog.jobs.import_log import run

    def run_job(spark: SparkSession | None, args: argparse.Namespace) -> Report:
        return run(
            spark,
            args.root,
            args.topic,
            source=args.source,
            config=dict(args.config),
            open_transactions=args.open_transactions,
            dry_run=args.dry_run,
        )

    return run_job


COMMAND = Command(
    "import-log",
    "copy a broker's log directory into a klog root, from any store to any store",
    """\
This copies the bytes of the segments. Offsets, timestamps, headers, producers and transactions do
not change. If the root does not exist, klog creates it. A second run copies only partitions that
are not in the root yet. See docs/adopt.md. To import JSON lines, CSV or Parquet files instead, use
`klog import-files`.""",
    _add_options,
    _load,
)
