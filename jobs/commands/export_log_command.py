"""The command `export-log`: its options, and the job that they run."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from klog.jobs.exporting.open_transactions import END
from klog.jobs.shared.job_command import Command, Report, RunJob

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--to", required=True, metavar="DIR", help="the log directory to write: a local path"
    )
    parser.add_argument(
        "--open-transactions",
        choices=(END,),
        help="end: write markers for transactions that have none; default: refuse a log with "
        "such a transaction",
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
    "write topics as the log directory of a Kafka broker",
    """\
Each partition becomes a directory <topic>-<partition>/ with Kafka's own files: segments, indexes,
leader epochs, producer state and the id of the topic. Offsets are those that readers of the topic
see. docs/export.md shows how to start a broker with them.

The directory must be local. klog does not overwrite an existing partition. If a segment is damaged,
the export fails and leaves no files in the directory. To write Parquet files instead, use
`klog to-files`.""",
    _add_options,
    _load,
)
