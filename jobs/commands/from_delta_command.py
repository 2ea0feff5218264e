"""The command `from-delta`: its options, and the job that they run."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from klog.jobs.shared.argument_values import names_with_commas
from klog.jobs.shared.copy_options import add_round_options, add_store_options, single_topic
from klog.jobs.shared.delta.delta_command import (
    add_conf_option,
    configure_delta,
    on_delta_session,
)
from klog.jobs.shared.job_command import Command, Report, RunJob
from klog.jobs.shared.value_options import (
    CREDENTIALS_HELP,
    add_registry_options,
    credentials_environment,
    parse_registry,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--table", required=True, metavar="TABLE", help="a path, a URL or a name in a catalog"
    )
    _add_format(parser)
    parser.add_argument(
        "--starting-version",
        default="snapshot",
        metavar="V",
        help="where a new copy starts: snapshot (the rows of now, then each change), earliest, "
        "latest or a version; default: %(default)s",
    )
    parser.add_argument(
        "--restart-at",
        metavar="V",
        help="start again, whatever the topic has: snapshot (with tombstones for keys that are "
        "gone), earliest, latest or a version; give it once",
    )
    add_store_options(
        parser, "an option of a write, such as numPartitions=8 or compression.type=zstd"
    )
    add_round_options(parser)
    add_conf_option(parser)


def _add_format(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--key",
        action="extend",
        default=[],
        type=names_with_commas,
        metavar="COLUMN,...",
        help="the columns that identify a row, repeatable or with commas; default: no keys, for a "
        "table that only grows",
    )
    parser.add_argument(
        "--key-format",
        choices=("string", "json"),
        help="string: the text of one column; json: an object; default: string with one column",
    )
    parser.add_argument(
        "--value-format",
        choices=("json", "avro", "protobuf", "raw"),
        default="json",
        help="json: an object of the columns; avro, protobuf: a record of them; raw: the columns "
        "key, value, headers and timestamp are the record, as to-delta writes them; default: "
        "%(default)s",
    )
    parser.add_argument(
        "--value-schema",
        type=Path,
        metavar="FILE",
        help="the schema of the values: Avro's JSON, or a FileDescriptorSet or .proto file; "
        "default: the latest one of the registry, for avro else one derived from the columns",
    )
    parser.add_argument("--value-message", metavar="NAME", help="the Protobuf message")
    add_registry_options(parser)
    parser.add_argument(
        "--columns",
        action="extend",
        default=[],
        type=names_with_commas,
        metavar="COLUMN,...",
        help="the columns of the value; default: all",
    )
    parser.add_argument(
        "--exclude",
        action="extend",
        default=[],
        type=names_with_commas,
        metavar="COLUMN,...",
        help="columns that are left out of the value",
    )


def _load() -> RunJob:
    from klog.jobs.from_delta import run

    def run_on(spark: SparkSession, args: argparse.Namespace) -> Report:
        return run(
            spark,
            args.root,
            args.topic[0],
            args.table,
            key=args.key,
            key_format=args.key_format,
            value_format=args.value_format,
            columns=args.columns,
            exclude=args.exclude,
            value_schema=args.value_schema,
            value_message=args.value_message,
            registry=parse_registry(args, credentials_environment()),
            starting_version=args.starting_version,
            restart_at=args.restart_at,
            options=dict(args.option),
            continuous=args.continuous,
            interval_seconds=args.interval / 1000,
            dry_run=args.dry_run,
        )

    run_on_session = on_delta_session(run_on, "from-delta")

    def run_job(spark: SparkSession | None, args: argparse.Namespace) -> Report:
        single_topic(args, "argument -t/--topic: must be one topic")  # Before a session starts.
        return run_on_session(spark, args)

    return run_job


COMMAND = Command(
    "from-delta",
    "copy a Delta table into a topic, each version once",
    f"""\
One version of the table is one transaction of the topic, so no checkpoint is needed, and a run that
is killed or repeated loses and doubles nothing. It starts Spark in this process, with Delta from
Maven Central; on a cluster use spark-submit. docs/from-delta.md says more.

{CREDENTIALS_HELP}""",
    _add_options,
    _load,
    configure=configure_delta,
    topic_help="the name of the topic",
)
