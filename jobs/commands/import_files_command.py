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
        help="a directory or a URL; files in its folders count too",
    )
    parser.add_argument(
        "--format",
        choices=("json", "csv", "parquet"),
        default="json",
        help="json: JSON lines; default: %(default)s. JSON and CSV may be compressed (.gz, .zst)",
    )
    parser.add_argument(
        "--key", metavar="FIELD", help="the field that becomes the key; default: no key"
    )
    parser.add_argument(
        "--value",
        metavar="FIELD",
        help="the field that becomes the value; default: the line, or all columns as JSON",
    )
    parser.add_argument(
        "--timestamp",
        metavar="FIELD",
        help="the field that becomes the timestamp: a time, ISO 8601 or milliseconds since 1970; "
        "default: the time of the import",
    )
    parser.add_argument(
        "--records",
        action="store_true",
        help="lines are records as `klog consume --json` prints them. Parquet files of to-files "
        "need no option",
    )
    add_store_options(
        parser,
        "an option of a write, such as compression.type=gzip, or transactionalId, the name "
        "of the import",
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
--topic takes one topic, which exists. A file is known by its path below the directory and its size;
what was imported is kept under the root. A run that is killed or repeated loses and doubles
nothing. The files of to-files become the same records again. `klog import-log` copies a broker's
log directory, with its offsets, instead. docs/files.md says more.""",
    _add_options,
    _load,
    topic_help="the name of the topic",
)
