"""The command `to-delta`: its options, and the job that they run."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from klog.jobs.shared.common_options import add_pairs_option
from klog.jobs.shared.copy_options import (
    add_round_options,
    add_store_options,
    add_topic_pattern_option,
)
from klog.jobs.shared.delta.delta_command import (
    add_conf_option,
    configure_delta,
    on_delta_session,
)
from klog.jobs.shared.job_command import Command, Report, RunJob
from klog.jobs.shared.value_options import (
    CREDENTIALS_HELP,
    FORMATS_HELP,
    add_value_options,
    credentials_environment,
    value_arguments,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PROPERTY = "--table-property"
_DELETION_VECTORS = ("delta.enableDeletionVectors", "true")


def _add_options(parser: argparse.ArgumentParser) -> None:
    add_topic_pattern_option(parser)
    parser.add_argument(
        "--table",
        required=True,
        metavar="TABLE",
        help="the Delta table: a path, a URL or a name in a catalog; klog replaces {topic} in it "
        "by the name of the topic",
    )
    parser.add_argument(
        "--mode",
        choices=("append", "upsert"),
        default="append",
        help="append: write a row for each record; upsert: keep one row for each key; default: "
        "%(default)s",
    )
    add_store_options(
        parser,
        "an option for reading the root, such as startingOffsets=latest, "
        "failOnDataLoss=false or maxOffsetsPerTrigger=1000000, or for its store, such as "
        "storage.region=eu-central-1",
    )
    _add_values(parser)
    _add_table(parser)
    add_round_options(parser)
    add_conf_option(parser)


def _add_values(parser: argparse.ArgumentParser) -> None:
    add_value_options(parser)
    parser.add_argument(
        "--on-error",
        choices=("fail", "null", "dead-letters"),
        default="fail",
        help="what to do with a record that cannot be decoded; fail: the job fails; null: write "
        "null, and the reason in key_error or value_error; dead-letters: write it to "
        "--dead-letter-table; default: %(default)s",
    )
    parser.add_argument(
        "--dead-letter-table",
        metavar="TABLE",
        help="the table for records that cannot be decoded, with the reason",
    )


def _add_table(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--merge-schema",
        action="store_true",
        help="add new columns and new fields of values to an existing table",
    )
    help_text = "a property of a table that the job creates; repeat the option for more"
    add_pairs_option(parser, _PROPERTY, help_text=help_text)
    parser.add_argument(
        "--deletion-vectors",
        action="store_true",
        help=f"the same as {_PROPERTY} {'='.join(_DELETION_VECTORS)}; an upsert then rewrites less",
    )
    parser.add_argument(
        "--cluster-by",
        action="append",
        default=[],
        metavar="COLUMN",
        help="cluster a table that the job creates by this column (liquid clustering); repeat the "
        "option for more columns",
    )
    parser.add_argument(
        "--zorder-by",
        action="append",
        default=[],
        metavar="COLUMN",
        help="at the end run OPTIMIZE ... ZORDER BY this column; repeat the option for more "
        "columns",
    )


def _load() -> RunJob:
    from klog.jobs.to_delta import run

    def run_on(spark: SparkSession, args: argparse.Namespace) -> Report:
        properties = dict(args.table_property)
        if args.deletion_vectors:
            properties.update([_DELETION_VECTORS])
        return run(
            spark,
            args.root,
            args.topic,
            args.table,
            topic_pattern=args.topic_pattern,
            mode=args.mode,
            options=dict(args.option),
            decode=value_arguments(args, credentials_environment()),
            on_error=args.on_error,
            dead_letter_table=args.dead_letter_table,
            merge_schema=args.merge_schema,
            table_properties=properties,
            cluster_by=args.cluster_by,
            zorder_by=args.zorder_by,
            continuous=args.continuous,
            interval_seconds=args.interval / 1000,
            dry_run=args.dry_run,
        )

    return on_delta_session(run_on, "to-delta")


COMMAND = Command(
    "to-delta",
    "copy topics into Delta tables, exactly once",
    """\
The table itself stores which offsets it contains, so the job needs no checkpoint. If a run is
killed or repeated, no record is lost or written twice. The verb starts Spark in this process, with
Delta from Maven Central. On a cluster use spark-submit. See docs/tables.md.

"""
    + FORMATS_HELP
    + """
  JSON without a schema gets the type that the column of the table has. In a new table it gets the
  type of a sample of the values.

"""
    + CREDENTIALS_HELP,
    _add_options,
    _load,
    root_help="the klog root or a broker's log directory: a path or a URL",
    topic_help="the full names of the topics; repeat the option or separate names with commas; or "
    "give --topic-pattern",
    configure=configure_delta,
)
