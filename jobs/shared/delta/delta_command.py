"""What the commands over Delta tables share: the session of the verb, and of spark-submit.

The rule: a verb starts a session of its own and stops it; a program of spark-submit has one.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from klog.jobs.shared.common_options import add_pairs_option
from klog.jobs.shared.job_command import Report, RunJob

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def add_conf_option(parser: argparse.ArgumentParser) -> None:
    """Add `--conf NAME=VALUE`, a setting of the session that a verb starts.

    Args:
        parser: The parser of the command.
    """
    help_text = "a setting of Spark, such as spark.master=local[4]; repeat the option for more"
    add_pairs_option(parser, "--conf", help_text=help_text)


def on_delta_session(
    run: Callable[[SparkSession, argparse.Namespace], Report], verb: str
) -> RunJob:
    """Return a job that starts a session with Delta if it gets none.

    Args:
        run: The job on a session. Its arguments have `conf` and the verb's other options.
        verb: The verb, which names the application.
    """
    from klog.jobs.shared.delta.local_session import delta_session

    def run_job(spark: SparkSession | None, args: argparse.Namespace) -> Report:
        if spark is not None:
            return run(spark, args)
        with delta_session(args.conf, f"klog {verb}") as session:
            return run(session, args)

    return run_job


def configure_delta(builder: Any) -> Any:
    """Set what Delta wants of the session of spark-submit.

    Args:
        builder: The builder of the session.
    """
    from klog.jobs.shared.delta.local_session import with_delta

    return with_delta(builder)
