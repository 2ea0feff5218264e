"""Verify a klog root: compare the files of its topics with their commit logs.

The rule: nothing is written. Each topic is verified as of one version of its commit log
(`verifying/verify_topic.py`). Segments are verified by tasks (`verifying/check_segment.py`), then
it is checked that those of a partition fit each other (`verifying/check_partition.py`).
"""

from __future__ import annotations

if __name__ == "__main__":
    from klog.jobs.shared.script_start import start

    start("verify")

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from os import PathLike, fspath
from typing import TYPE_CHECKING

from klog.connector.open_root import open_klog_root
from klog.connector.options.storage_options import StorageOptions, storage_of
from klog.jobs.shared.topic_selection import select_topic_names
from klog.jobs.verifying.verify_report import VerifyReport
from klog.jobs.verifying.verify_topic import verify_topic

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def run(
    spark: SparkSession | None,
    root: str | PathLike[str],
    topic: str | Sequence[str] | None = None,
    *,
    fast: bool = False,
    storage: Mapping[str, object] | StorageOptions | None = None,
    dry_run: bool = False,
    timer: Callable[[], float] = time.perf_counter,
) -> VerifyReport:
    """Compare the files of one topic, several, or all with their commit logs.

    Nothing is written, and a finding does not end the run.

    Args:
        spark: The session that runs the tasks; None for this process.
        root: The path or URL of the klog root.
        topic: The name of a topic, several names, or None for all topics.
        fast: Whether to read headers only: no record, no CRC.
        storage: The `storage.*` options of the store, by their names without `storage.`.
        dry_run: Has no effect, because verify never writes.
        timer: A function that returns a time in seconds, to measure how long the job takes.

    Returns:
        A report with the findings, and the numbers of partitions, segments, batches, records and
        bytes that were verified.

    Raises:
        OptionError: The root has no commit logs, or a named topic does not exist.
    """
    root, storage = fspath(root), storage_of(storage)
    klog_root = open_klog_root(
        root,
        storage,
        "verify compares files with a commit log. `klog dump --files ...` checks the segments and "
        "indexes of a broker's directory",
    )
    started = timer()
    named = [topic] if isinstance(topic, str) else topic
    names = select_topic_names(klog_root, None) if named is None else dict.fromkeys(named)
    report = VerifyReport(klog_root.location, fast)
    for name in names:
        report = verify_topic(spark, report, klog_root, storage, name, is_named=named is not None)
    return replace(report, seconds=timer() - started)
