"""The command `import-files`: its options, and the job that they run."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from klog.jobs.shared.copy_options import add_store_options, single_topic
from klog.jobs.shared.job_command import Command, Report, RunJob

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--from",
        dest="source",
        required=True,
        metavar="DIR",
        help="the directory with the files: a path or a URL; klog also reads its sub-directories",
    )
    parser.add_argument(
        "--format",
        choices=("json", "csv", "parquet"),
        default="json",
        help="json: JSON lines; JSON and CSV files can be compressed (.gz, .zst); default: "
        "%(default)s",
    )
    parser.add_argument(
        "--key",
        metavar="FIELD",
        help="the field that becomes the key; default: records have no key",
    )
    parser.add_argument(
        "--value",
        metavar="FIELD",
        help="the field that becomes the value; default: for JSON lines the line, otherwise "
        "all columns as JSON",
    )
    parser.add_argument(
        "--timestamp",
        metavar="FIELD",
        help="the field that becomes the timestamp: a time, a text as in ISO 8601, or milliseconds "
        "since 1970; default: the time of the import",
    )
    parser.add_argument(
        "--records",
        action="store_true",
        help="the lines are records as `klog consume --json` prints them; Parquet files of "
        "to-files do not need this option",
    )
    add_store_options(
        parser,
        "an option for writing to the topic, such as compression.type=gzip, or transactionalId, "
        "the name of the import, or for the stores, such as storage.region=eu-central-1",
    )


def _load() -> RunJob:
    from klog.jobs.import_files import run

    def run_job(spark: SparkSession | None, args: argparse.Namespace) -> Report:
        return run(
            spark,
            args.root,
            single_topic(args, "argument --topic: exactly one topic is required"),
            args.source,
            format=args.format,
            key=args.key,
            value=args.value,
            timestamp=args.timestamp,
            records=args.records,
            options=dict(args.option),
            dry_run=args.dry_run,
        )

    return run_job


COMMAND = Command(
    "import-files",
    "import JSON lines, CSV or Parquet files into a topic, each file once",
    """\
Give one topic, which must exist. The root stores which files klog has imported, by their path below
the directory and their size. If a run is killed or repeated, no file is lost or imported twice. The
files of `klog to-files` become the same records again. To copy a broker's log directory with its
offsets instead, use `klog import-log`. See docs/files.md.""",
    _add_options,
    _load,
    topic_help="the full name of the topic",
)
