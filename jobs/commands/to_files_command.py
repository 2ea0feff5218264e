"""The command `to-files`: its options, and the job that they run."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from klog.jobs.shared.argument_values import whole_number
from klog.jobs.shared.copy_options import (
    add_round_options,
    add_store_options,
    add_topic_pattern_option,
)
from klog.jobs.shared.job_command import Command, Report, RunJob

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def _add_options(parser: argparse.ArgumentParser) -> None:
    add_topic_pattern_option(parser)
    parser.add_argument(
        "--to",
        required=True,
        metavar="DIR",
        help="the target: a directory or a URL; each topic gets a folder with its name there",
    )
    parser.add_argument(
        "--partition-by",
        choices=("hour", "day", "none"),
        default="hour",
        help="one folder for each hour or day of the records' timestamps in UTC, or no such "
        "folders; default: %(default)s",
    )
    parser.add_argument(
        "--max-file-bytes",
        type=whole_number("a number of bytes", 1),
        default=128 << 20,
        metavar="N",
        help="begin a new file after about N bytes of the log; default: %(default)s",
    )
    parser.add_argument(
        "--compression",
        choices=("zstd", "snappy", "gzip", "lz4", "none"),
        default="zstd",
        help="the compression of the files; default: %(default)s",
    )
    add_store_options(
        parser,
        "an option for reading the root, such as startingOffsets=latest, "
        "failOnDataLoss=false or maxBytesPerTrigger=1000000000, or for the stores, such as "
        "storage.region=eu-central-1",
    )
    add_round_options(parser, "such as 10m; each copy closes its files")
    parser.add_argument(
        "--remove-orphans",
        action="store_true",
        help="after the copy, delete files of failed runs, which the manifest will never list",
    )


def _load() -> RunJob:
    from klog.jobs.to_files import run

    def run_job(spark: SparkSession | None, args: argparse.Namespace) -> Report:
        return run(
            spark,
            args.root,
            args.topic,
            args.to,
            topic_pattern=args.topic_pattern,
            options=dict(args.option),
            max_file_bytes=args.max_file_bytes,
            partition_by=args.partition_by,
            compression=args.compression,
            continuous=args.continuous,
            interval_seconds=args.interval / 1000,
            remove_orphans=args.remove_orphans,
            dry_run=args.dry_run,
        )

    return run_job


COMMAND = Command(
    "to-files",
    "copy topics into Parquet files, by hour, exactly once",
    """\
A manifest next to the files stores which offsets they contain, so the job needs no checkpoint. If a
run is killed or repeated, no record is lost or written twice. The columns are topic, partition,
offset, timestamp, timestampType, key, value and headers. `klog import-files` writes such files to a
topic again. To write the log directory of a Kafka broker instead, use `klog export-log`. See
docs/files.md.""",
    _add_options,
    _load,
    root_help="the klog root or a broker's log directory: a path or a URL",
)
