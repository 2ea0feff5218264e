"""A copy of a Kafka query's checkpoint, with which klog goes on.

The rule: the file with the query's id is written first, with content that Spark refuses, and gets
the id last. So of two copies to one place one is made, and Spark does not start with part of one.
A copy that fails deletes what it has written.

Spark has no lock on a checkpoint. That the query still runs is seen only by what it writes: the
files have to stay the same while they are watched, and until they are copied. An idle query, or one
in the middle of a long micro-batch, writes nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass

from klog.connector.options.storage_options import NO_STORAGE_OPTIONS, StorageOptions
from klog.connector.source.stream_offsets import StreamOffsets
from klog.connector.spark_checkpoint.checkpoint_directory import (
    METADATA,
    CheckpointFiles,
    list_checkpoint,
)
from klog.connector.spark_checkpoint.copy_plan import CopyPlan, plan_copy
from klog.connector.spark_checkpoint.offset_log_entry import V2
from klog.connector.store.parallel_reads import read_in_order
from klog.connector.store.store_for_url import store_for, writable_store_for
from klog.connector.store.writable_store import PutResult, WritableStore
from klog.errors import KlogError, OptionError, StoreError

_log = logging.getLogger(__name__)

UNFINISHED = b'{"id":"delete this unfinished copy of klog"}'
"""The content of the file with the id while a copy is made: Spark's error has this text.

It is not a UUID, and not longer than one; else Spark would not show it.
"""


@dataclass(frozen=True, slots=True)
class CopyReport:
    """What was copied.

    Attributes:
        source: The checkpoint of the query.
        target: The copy.
        query_id: The id of the query, also in the copy.
        last_committed: The last micro-batch that is committed; None if none is.
        unfinished: The micro-batch that runs again; None if all are committed.
        next_offsets: Where the query goes on, or where the unfinished micro-batch starts, by the
            source's id.
        files: The number of files.
        size_bytes: The size of all files.
        dry_run: Whether nothing was written.
    """

    source: str
    target: str
    query_id: str
    last_committed: int | None
    unfinished: int | None
    next_offsets: Mapping[str, StreamOffsets]
    files: int
    size_bytes: int
    dry_run: bool


def copy_checkpoint(
    source: str,
    target: str,
    *,
    watch_seconds: float,
    sleep: Callable[[float], None],
    dry_run: bool = False,
    storage: StorageOptions = NO_STORAGE_OPTIONS,
) -> CopyReport:
    """Copy the checkpoint of a stopped query of Spark's Kafka source for klog.

    Args:
        source: The path or URL of the checkpoint.
        target: The path or URL of the copy.
        watch_seconds: How long the checkpoint must stay the same before it is copied.
        sleep: Waits for a number of seconds.
        dry_run: Whether to write nothing.
        storage: The storage options of both.

    Raises:
        OptionError: The source is not such a checkpoint, or the target has files.
        KlogError: The query still runs, or a store fails.
    """
    store, root = store_for(source, storage)
    target_store, target_root = writable_store_for(target, storage)
    files = list_checkpoint(store, root)
    plan = plan_copy(files)
    _refuse_target(target_store, target_root, root)
    sleep(watch_seconds)
    _refuse_running(files)
    if not dry_run:
        _write(files, plan, target_store, target_root)
    if plan.unfinished is not None and plan.offset_log_version == V2:
        _log.warning(
            "%s: micro-batch %s is not finished, and Spark 4.2.0 cannot restart such a query with "
            "version 2 of the offset log, whatever its source; a later Spark may",
            root,
            plan.unfinished,
        )
    sizes = [len(plan.metadata), *map(len, plan.rewritten.values())]
    sizes += [files.entries[name].size_bytes for name in plan.unchanged]
    return CopyReport(
        root,
        target_root,
        plan.query_id,
        plan.last_committed,
        plan.unfinished,
        plan.next_offsets,
        len(sizes),
        sum(sizes),
        dry_run,
    )


def _refuse_target(store: WritableStore, target: str, source: str) -> None:
    """Refuse a target that has files, or that is in the source or around it."""
    if f"{target}/".startswith(f"{source}/") or f"{source}/".startswith(f"{target}/"):
        raise OptionError(
            f"{target}: the copy cannot be in the checkpoint {source}, or around it. Give another "
            "directory"
        )
    if list_checkpoint(store, target).entries:
        raise _target_has_files(target)


def _target_has_files(target: str) -> OptionError:
    return OptionError(
        f"{target} has files already. Give a new directory, or delete what an interrupted copy has "
        "left there"
    )


def _refuse_running(files: CheckpointFiles) -> None:
    """Refuse a checkpoint that has changed since it was listed."""
    name = files.difference(list_checkpoint(files.store, files.root))
    if name is not None:
        raise KlogError(
            f"{files.root}: the query still runs: {name} has changed. Stop it, then copy its "
            "checkpoint"
        )


def _write(files: CheckpointFiles, plan: CopyPlan, store: WritableStore, target: str) -> None:
    """Write the copy; delete it if it fails."""
    claim = f"{target}/{METADATA}"
    result = store.put_if_absent(claim, UNFINISHED)
    if result is PutResult.EXISTS:
        raise _target_has_files(target)

    def copy_file(name: str) -> None:
        store.put(f"{target}/{name}", files.chunks(name))

    try:
        if result is PutResult.UNKNOWN:
            raise StoreError(f"{claim}: the answer of the store was lost. Copy again")
        try:
            for _ in read_in_order(copy_file, plan.unchanged, files.store.max_parallel_reads):
                pass
        except (KlogError, OSError):
            _refuse_running(files)  # Spark may have deleted a file.
            raise
        for name, data in plan.rewritten.items():
            store.put(f"{target}/{name}", [data])
        _refuse_running(files)
        store.put(claim, [plan.metadata])
    except BaseException:
        with suppress(KlogError, OSError):
            for name in (*plan.unchanged, *plan.rewritten, METADATA):
                store.delete(f"{target}/{name}")
        raise
