"""Replace commits that were lost on storage.

The rule: it is a dry run by default. Repair never overwrites, renumbers or deletes.
`repairing/repair_planner.py` decides which files to write, `repairing/repair_topic.py` writes
them.
"""

from __future__ import annotations

if __name__ == "__main__":
    from klog.jobs.shared.script_start import start

    start("repair")

import time
from collections.abc import Mapping, Sequence
from os import PathLike, fspath
from typing import TYPE_CHECKING

from klog.connector.commit_log.commit_info import random_uuid
from klog.connector.commit_log.root_discovery import RootToRepair, find_root_to_repair
from klog.connector.commit_log.topic_admin import NO_CONFIG
from klog.connector.open_root import not_a_klog_root, open_klog_root
from klog.connector.options.storage_options import StorageOptions, storage_of
from klog.connector.root_files import FORMAT_FILE
from klog.connector.store.writable_store import WritableStore
from klog.errors import OptionError
from klog.jobs.repairing.repair_choices import RepairChoices
from klog.jobs.repairing.repair_report import RepairReport
from klog.jobs.repairing.repair_topic import repair_topic
from klog.jobs.shared.broker_logs.meta_properties import read_cluster_id
from klog.jobs.shared.topic_selection import select_topic_names

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def run(
    spark: SparkSession | None,
    root: str | PathLike[str],
    topic: str | Sequence[str] | None = None,
    *,
    use: Sequence[str] = (),
    declare_holes: bool = False,
    discard_lost: bool = False,
    topic_id: str = "",
    partitions: int = 0,
    config: Mapping[str, str] = NO_CONFIG,
    cluster_id: str = "",
    storage: Mapping[str, object] | StorageOptions | None = None,
    dry_run: bool = True,
) -> RepairReport:
    """Replace lost commits of one topic, several, or all, and lost files of the root itself.

    If a topic cannot be repaired, the report says so and the other topics are repaired.

    Args:
        spark: Not used, because this process does all the work. It may be None.
        root: The path or URL of the klog root.
        topic: The name of a topic, several names, or None for all topics.
        use: The segments to add, as paths below the root, in the order of the log.
        declare_holes: Whether to add only the segments of `use`. The other missing offsets become
            holes.
        discard_lost: Whether to continue without the last commits if they are lost too. You cannot
            get them back later.
        topic_id: The id of a topic whose first commit is lost, or `new` for a new id.
        partitions: The number of partitions that a lost commit set; 0 if none did.
        config: The configs of a topic whose first commit is lost.
        cluster_id: The cluster id of a root that has lost its `format.json`; by default that of
            `meta.properties`, or a new one.
        storage: The `storage.*` options of the store, by their names without `storage.`.
        dry_run: Whether to only list the files that would be written. This is the default.

    Returns:
        A report with the plan of each topic, with lost commits, the commits that replace them, and
        why a topic cannot be repaired.

    Raises:
        OptionError: The root has no commit logs, an argument is wrong, or several topics are
            repaired with an argument that is about one topic.
    """
    started = time.monotonic()
    root, storage = fspath(root), storage_of(storage)
    choices = RepairChoices(use, declare_holes, discard_lost, topic_id, partitions, config)
    to_repair = _find_root(root, cluster_id, storage)
    klog_root, lost_format = to_repair.root, to_repair.lost_format
    names = select_topic_names(klog_root, topic)
    choices.check(names)
    format_file = f"{klog_root.path}/{FORMAT_FILE}"
    if lost_format and not dry_run:
        klog_root.store.put_if_absent(format_file, lost_format)
        klog_root = open_klog_root(root, storage)  # Another process may have put it first.
    plans = {}
    for name in names:
        log = klog_root.log_to_read(name) if dry_run else klog_root.log_to_write(name)
        plans[name] = repair_topic(log, choices.of_topic(name), dry_run=dry_run)
    put_file = format_file if lost_format else ""
    return RepairReport(klog_root.location, dry_run, plans, put_file, time.monotonic() - started)


def _find_root(root: str, cluster_id: str, storage: StorageOptions) -> RootToRepair:
    """Find the root, which may have lost its `format.json`; nothing is written."""

    def cluster_id_of(store: WritableStore, path: str) -> str:
        return cluster_id or read_cluster_id(store, path) or random_uuid()

    to_repair = find_root_to_repair(root, cluster_id_of, storage)
    if to_repair is None:
        raise not_a_klog_root(root, storage)
    if cluster_id and not to_repair.lost_format:
        raise OptionError(
            f"--cluster-id: {to_repair.root.path}/{FORMAT_FILE} has a cluster id already; leave "
            "the option out"
        )
    return to_repair
