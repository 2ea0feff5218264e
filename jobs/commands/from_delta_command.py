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
        "--table",
        required=True,
        metavar="TABLE",
        help="the Delta table: a path, a URL or a name in a catalog",
    )
    _add_format(parser)
    parser.add_argument(
        "--starting-version",
        default="snapshot",
        metavar="V",
        help="where a new copy starts: snapshot (the present rows, then each change), earliest, "
        "latest or the number of a version; default: %(default)s",
    )
    parser.add_argument(
        "--restart-at",
        metavar="V",
        help="start the copy again from here: snapshot (with tombstones for keys of the topic that "
        "the table does not have), earliest, latest or the number of a version; give the option "
        "in one run only",
    )
    add_store_options(
        parser,
        "an option for writing to the topic, such as numPartitions=8 or compression.type=zstd, or "
        "for its store, such as storage.region=eu-central-1",
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
        help="the columns that identify a row; repeat the option or separate columns with commas; "
        "default: records have no key, which works only for a table without updates and deletes",
    )
    parser.add_argument(
        "--key-format",
        choices=("string", "json"),
        help="string: the text of the only key column; json: an object of the key columns; "
        "default: string for one column, json for several",
    )
    parser.add_argument(
        "--value-format",
        choices=("json", "avro", "protobuf", "raw"),
        default="json",
        help="json: an object of the columns; avro, protobuf: a record of the columns; raw: the "
        "columns key, value, headers and timestamp are the record, as to-delta writes them; "
        "default: %(default)s",
    )
    parser.add_argument(
        "--value-schema",
        type=Path,
        metavar="FILE",
        help="the schema of the values: an Avro schema in JSON, a FileDescriptorSet or a .proto "
        "file; default: the latest schema of the registry; without a registry, avro "
        "gets a schema from the columns",
    )
    parser.add_argument("--value-message", metavar="NAME", help="the Protobuf message of the value")
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
        help="the columns to leave out of the value",
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
Each version of the table becomes one commit of the topic, which stores the version. So the job
needs no checkpoint, and if a run is killed or repeated, no row is lost or written twice. The verb
starts Spark in this process, with Delta from Maven Central. On a cluster use spark-submit. See
docs/from-delta.md.

{CREDENTIALS_HELP}""",
    _add_options,
    _load,
    configure=configure_delta,
    topic_help="the full name of the topic",
)
