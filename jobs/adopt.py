"""Adopt a broker's log directory: it becomes a klog root, and no byte of its logs is touched.

The rule: each topic gets one commit that names the broker's files where they are, and what klog
read from them: sizes, checksums, records, timestamps, producers, aborted transactions. A torn
append stays in its file and is not counted. `_klog/format.json` comes last
(`connector/commit_log/root_adoption.py`), so readers see the broker's directory until all is
adopted. A killed adoption is run again. (docs/adopt.md.)
"""

from __future__ import annotations

if __name__ == "__main__":
    from klog.jobs.shared.script_start import start

    start("adopt")

import time
from collections.abc import Mapping, Sequence
from os import PathLike, fspath
from typing import TYPE_CHECKING

from klog.connector.commit_log import root_adoption
from klog.connector.commit_log.commit_info import random_uuid
from klog.connector.commit_log.root_discovery import find_root
from klog.connector.kafka_dir.raw_root import RawRoot
from klog.connector.options.storage_options import StorageOptions, storage_of
from klog.connector.store.store_for_url import store_for
from klog.errors import OptionError
from klog.jobs.adopting.adopt_topics import (
    RootAdoption,
    find_candidates,
    refuse_unfinished_cleanings,
)
from klog.jobs.shared.broker_logs.adopt_report import AdoptReport
from klog.jobs.shared.broker_logs.broker_topics import check_no_broker_runs
from klog.jobs.shared.broker_logs.meta_properties import read_cluster_id
from klog.logformat.topic_config import normalize_topic_config

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_NOTHING_TO_DO = (
    "it is a klog root already, and all that a broker left in it is adopted: there is nothing to do"
)
_WOULD_ADOPT = (
    "a broker does not start on an adopted directory until _klog/ is moved out of it; it would not "
    "see what klog writes there"
)
_ADOPTED = (
    "a broker does not start on this directory again until _klog/ is moved out of it; it would not "
    "see what klog writes here"
)


def run(
    spark: SparkSession | None,
    root: str | PathLike[str],
    topic: str | Sequence[str] | None = None,
    *,
    config: Mapping[str, str] | None = None,
    open_transactions: str | None = None,
    storage: Mapping[str, object] | StorageOptions | None = None,
    dry_run: bool = False,
) -> AdoptReport:
    """Turn a broker's log directory into a klog root, with one of its topics, several, or all.

    klog copies and changes no byte of the broker's logs. Stop the broker first.

    Args:
        spark: The session that runs the tasks; None for this process.
        root: The path or URL of the log directory.
        topic: The name of a topic, several names, or None for all topics.
        config: Configs for each topic, because the directory does not contain any.
        open_transactions: `abort` or `commit`, the outcome of transactions without a marker; None
            refuses a log that has one.
        storage: The `storage.*` options of the store, by their names without `storage.`.
        dry_run: Whether to only find the ends of the logs. Nothing else is read, and nothing is
            written.

    Returns:
        A report with one entry for each partition, with offsets, segments, records, and bytes of a
        torn tail.

    Raises:
        OptionError: A topic does not exist, or the directory has none.
        KlogError: A broker runs on the directory, a topic is not complete, a transaction is open,
            or a cleaning was interrupted.
        CorruptFileError: A segment is damaged.
    """
    started = time.monotonic()
    root, storage = fspath(root), storage_of(storage)
    configs = normalize_topic_config(config or {})
    names = [topic] if isinstance(topic, str) else topic
    log_dir = RawRoot([root], storage, allow_klog_state=True)
    klog_root = find_root(root, storage)
    candidates = find_candidates(log_dir, klog_root, names, open_transactions)
    if not candidates.topics and klog_root is None:
        raise OptionError(
            f"{root} has no topic of a broker. Give the directory that a broker's log.dirs names"
        )
    refuse_unfinished_cleanings(candidates.topics)
    cluster_id = read_cluster_id(*store_for(root, storage)) or random_uuid()
    begin = root_adoption.preview_adoption if dry_run else root_adoption.begin_adoption
    target = begin(root, cluster_id, storage)
    job = RootAdoption(
        target,
        configs,
        open_transactions,
        storage,
        is_klog_root=klog_root is not None,
        is_named=names is not None,
    )
    if dry_run:
        adopted = list(job.preview(candidates.topics))
    else:
        adopted = list(job.adopt(spark, candidates.topics))
        check_no_broker_runs(log_dir.snapshot())  # It would have changed the files meanwhile.
        root_adoption.finish_adoption(target, storage)
    is_done = klog_root is not None and all(partition.left for partition in adopted)
    seconds = time.monotonic() - started
    note = _NOTHING_TO_DO if is_done else _WOULD_ADOPT if dry_run else _ADOPTED
    return AdoptReport(root, dry_run, "Adopt", (*adopted, *candidates.left), note, seconds)
