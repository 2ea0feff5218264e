"""Import a broker's log directories: copy their topics into a klog root, from any store to any.

The rule: batches are copied unchanged, each of the broker's segments to one of klog's; only names
and indexes are new. Each partition gets one commit and the topic keeps its id, so a killed import
is run again and copies only what has no commit (`importing/import_topics.py`; docs/adopt.md).
"""

from __future__ import annotations

if __name__ == "__main__":
    from klog.jobs.shared.script_start import start

    start("import_log")

import time
from collections.abc import Mapping, Sequence
from os import PathLike, fspath
from typing import TYPE_CHECKING

from klog.connector.commit_log.commit_info import random_uuid
from klog.connector.commit_log.root_discovery import find_or_create_root, find_root
from klog.connector.kafka_dir.raw_root import RawRoot
from klog.connector.options.storage_options import StorageOptions, storage_of
from klog.errors import OptionError
from klog.jobs.importing.import_topics import LogImport
from klog.jobs.shared.broker_logs.adopt_report import AdoptReport
from klog.jobs.shared.broker_logs.broker_topics import find_broker_topics
from klog.logformat.topic_config import normalize_topic_config
from klog.url_secrets import without_passwords

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def run(
    spark: SparkSession | None,
    root: str | PathLike[str],
    topic: str | Sequence[str] | None = None,
    *,
    source: str | Sequence[str],
    config: Mapping[str, str] | None = None,
    open_transactions: str | None = None,
    storage: Mapping[str, object] | StorageOptions | None = None,
    dry_run: bool = False,
) -> AdoptReport:
    """Copy one topic of a broker's log directories, several, or all into a klog root.

    If klog cannot read or copy a segment, or if the root has another topic of the same name, the
    report says so and klog imports the other partitions.

    Args:
        spark: The session that runs the tasks; None for this process.
        root: The path or URL of the klog root, which is created if it does not exist.
        topic: The name of a topic, several names, or None for all topics.
        source: The path or URL of a log directory, or those of several directories of one broker.
        config: Configs for each topic, because the directories do not contain any.
        open_transactions: `abort` or `commit`, the outcome of transactions without a marker; None
            refuses a log that has one.
        storage: The `storage.*` options of the stores, by their names without `storage.`.
        dry_run: Whether to only find the ends of the logs. Nothing else is read, and nothing is
            written.

    Returns:
        A report with one entry for each partition, with offsets, segments, records and bytes, and
        the reason if klog skipped it or failed.

    Raises:
        OptionError: A topic does not exist, or a source is a klog root.
        KlogError: A source is not complete, a broker runs on it, or a transaction is open.
    """
    started = time.monotonic()
    root, storage = fspath(root), storage_of(storage)
    configs = normalize_topic_config(config or {})
    directories = [source] if isinstance(source, str) else list(source)
    for directory in directories:
        if find_root(directory, storage) is not None:
            raise OptionError(
                f"{directory} is a klog root; `klog export-log` writes a broker's directory from it"
            )
    names = [topic] if isinstance(topic, str) else topic
    log_dirs = RawRoot(directories, storage)
    topics = find_broker_topics(log_dirs, log_dirs.snapshot(), names, open_transactions)
    klog_root = (
        find_root(root, storage) if dry_run else find_or_create_root(root, random_uuid(), storage)
    )
    job = LogImport(klog_root, configs, open_transactions, storage)
    partitions = tuple(job.preview(topics) if dry_run else job.import_topics(spark, topics))
    note = without_passwords(f"from {', '.join(directories)}")
    return AdoptReport(root, dry_run, "Import", partitions, note, time.monotonic() - started)
