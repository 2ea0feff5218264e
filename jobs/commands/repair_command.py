"""The command `repair`: its options, and the job that they run."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from klog.jobs.repairing.new_topic_id import NEW_ID
from klog.jobs.shared.argument_values import whole_number
from klog.jobs.shared.common_options import add_config_option
from klog.jobs.shared.job_command import Command, Report, RunJob, is_executed
from klog.logformat.topic_partition import MAX_PARTITIONS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--execute",
        action="store_true",
        help="write the files; default: only show what klog would write",
    )
    parser.add_argument(
        "--use",
        action="append",
        default=[],
        metavar="FILE",
        help="add this segment; repeat the option for more segments, in the order of the log",
    )
    parser.add_argument(
        "--declare-holes",
        action="store_true",
        help="add only the segments of --use; all other missing offsets become holes",
    )
    parser.add_argument(
        "--discard-lost",
        action="store_true",
        help="if the last commits of the topic are lost too, continue without them permanently",
    )
    parser.add_argument(
        "--topic-id",
        default="",
        metavar="ID",
        help=f"the id of a topic whose first commit is lost; {NEW_ID}: generate an id",
    )
    parser.add_argument(
        "--partitions",
        type=whole_number("a number of partitions", 1, MAX_PARTITIONS),
        default=0,
        metavar="N",
        help="the number of partitions, if a lost commit set it",
    )
    add_config_option(
        parser,
        "a config of a topic whose first commit is lost; repeat the option for more configs; "
        "default: configs with which no record expires",
    )
    parser.add_argument(
        "--cluster-id",
        default="",
        metavar="ID",
        help="the cluster id of a root whose format.json is lost",
    )


def _load() -> RunJob:
    from klog.jobs.repair import run

    def run_job(spark: SparkSession | None, args: argparse.Namespace) -> Report:
        return run(
            spark,
            args.root,
            args.topic,
            use=args.use,
            declare_holes=args.declare_holes,
            discard_lost=args.discard_lost,
            topic_id=args.topic_id,
            partitions=args.partitions,
            config=dict(args.config),
            cluster_id=args.cluster_id,
            dry_run=not is_executed(args),
        )

    return run_job


COMMAND = Command(
    "repair",
    "replace lost commits; a dry run by default",
    """\
If you have a copy of the lost files, copy them back instead. Otherwise stop all writers of the
topic and run this verb. It writes:
  LastExpiredVersion  if a complete checkpoint contains the lost commits: a file that marks the
                      commits up to the checkpoint as expired
  Commit              otherwise a commit for each lost one: it adds segments that have exactly the
                      missing offsets, or declares these offsets a hole
  Fence               a commit on top of the log, so that running writers load the topic again
  Put                 a lost topic.json or format.json
Repair never overwrites, renumbers or deletes. The exit code is 1 if a dry run found something lost,
or if klog cannot repair a topic. See docs/jobs.md.""",
    _add_options,
    _load,
)
