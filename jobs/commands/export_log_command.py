"""The command `export-log`: its options, and the job that they run."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from klog.jobs.exporting.open_transactions import END
from klog.jobs.shared.job_command import Command, Report, RunJob

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--to", required=True, metavar="DIR", help="a broker's log directory")
    parser.add_argument(
        "--open-transactions",
        choices=(END,),
        help="write markers for transactions that have none; default: refuse a log that has one",
    )


def _load() -> RunJob:
    from klog.jobs.export_log import run

    def run_job(spark: SparkSession | None, args: argparse.Namespace) -> Report:
        return run(
            spark,
            args.root,
            args.topic,
            args.to,
            open_transactions=args.open_transactions,
            dry_run=args.dry_run,
        )

    return run_job


COMMAND = Command(
    "export-log",
    "write topics as directories that a Kafka broker mounts",
    """\
Each partition becomes a directory <topic>-<partition>/ with Kafka's own files: segments named by
their first offset, indexes, leader epochs, producers, the topic's id. Offsets are those that
readers of the topic see. docs/export.md says how a broker mounts them.

The directory must be local. An existing partition is not overwritten. A damaged segment ends the
export, and nothing of it stays in the directory. `klog to-files` writes Parquet files instead.""",
    _add_options,
    _load,
)
