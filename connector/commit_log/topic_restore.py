"""Restore a topic to an earlier version: plan it, and commit it.

The rule (docs/commit-protocol.md, Restore): the state of the version is loaded first, then the
files of its segments are looked for, then one commit is put. A restore is built again on top of
others' commits, and takes them back as it takes back all others after the version.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from klog.connector.commit_log import restore_commit, segment_entries
from klog.connector.commit_log.commit import RESTORE, Actions, Amount
from klog.connector.commit_log.commit_checks import amount_of
from klog.connector.commit_log.commit_info import CommitInfo, random_uuid, this_engine
from klog.connector.commit_log.commit_log import CommitLog
from klog.connector.commit_log.klog_root import KlogRoot
from klog.connector.commit_log.past_versions import load_version
from klog.connector.commit_log.segment_entries import SegmentEntry
from klog.connector.commit_log.segment_file_sizes import SegmentFileSizes
from klog.connector.commit_log.segment_path import index_file_path
from klog.connector.commit_log.topic_state import TopicState
from klog.errors import CommitConflictError, with_context


@dataclass(frozen=True, slots=True)
class RestoredPartition:
    """A partition that a restore changes.

    Attributes:
        partition: Its number.
        log_start: Its log start offset after the restore.
        restored_end: Its log end offset as of the restored version. The offsets from
            `restored_end` to `log_end` are a hole: they have no records.
        log_end: Its log end offset. A restore does not change it.
    """

    partition: int
    log_start: int
    restored_end: int
    log_end: int


@dataclass(frozen=True, slots=True)
class RestoreReport:
    """The changes of a restore, or of its dry run.

    Attributes:
        topic: The name of the topic.
        version: The version that the topic is set back to.
        commit_version: The version of the restore's own commit. None for a dry run, and if the
            topic already was as of `version`.
        dry_run: Whether this was a dry run, which writes nothing.
        restored: The number of segments that are live again, and their `Amount`.
        removed: The number of segments that are no longer live, and their `Amount`.
        partitions: The partitions that change, by number.
    """

    topic: str
    version: int
    commit_version: int | None
    dry_run: bool
    restored: tuple[int, Amount] = (0, Amount(0, 0))
    removed: tuple[int, Amount] = (0, Amount(0, 0))
    partitions: tuple[RestoredPartition, ...] = ()

    @property
    def has_changes(self) -> bool:
        """Return whether the topic differs from its state as of `version`."""
        return bool(self.restored[0] or self.removed[0] or self.partitions)


def restore_topic(
    root: KlogRoot, topic: str, version: int, *, dry_run: bool = False
) -> RestoreReport:
    """Restore a topic to an earlier version.

    Args:
        root: The klog root.
        topic: The name of the topic.
        version: The version.
        dry_run: Only plan; write nothing.

    Returns:
        What changed, or would change.

    Raises:
        OptionError: The topic or the version does not exist, or has expired.
        CommitConflictError: The topic was created again since, or vacuum has deleted a file of the
            version.
    """
    log = root.log_to_read(topic) if dry_run else root.log_to_write(topic)
    return restore_log(log, root.load(log), version, dry_run=dry_run)


def restore_log(
    log: CommitLog,
    state: TopicState,
    version: int,
    commit_info: CommitInfo | None = None,
    *,
    dry_run: bool = False,
) -> RestoreReport:
    """Restore the topic of a log to an earlier version.

    Args:
        log: The log.
        state: The state of the topic that was just loaded.
        version: The version.
        commit_info: The write id, operation and engine of the commit; None for new ones.
        dry_run: Only plan; write nothing.

    Returns:
        What changed, or would change.

    Raises:
        OptionError: The version does not exist, or has expired.
        CommitConflictError: As `restore_topic`.
    """
    target = load_version(log, version, state)
    builder = restore_commit.restore(target, existing_segments(log, target, state))
    built: list[tuple[TopicState, Actions]] = []

    def build(state: TopicState) -> Actions | None:
        actions = builder(state)
        built[:] = [] if actions is None else [(state, actions)]
        return actions

    commit_version = None
    try:
        if dry_run:
            build(state)
        else:
            info = commit_info or CommitInfo(random_uuid(), RESTORE, this_engine())
            commit_version = log.commit(state, build, info).writes.get(info.write_id)
    except CommitConflictError as exc:
        raise with_context(exc, f"topic {log.paths.topic}: {exc}") from exc
    if not built:
        return RestoreReport(log.paths.topic, version, None, dry_run)
    base, actions = built[0]
    return _report(log.paths.topic, base, actions, commit_version)


def existing_segments(log: CommitLog, target: TopicState, state: TopicState) -> set[str]:
    """Return the segments of a version whose files the store has, and all that are live.

    Args:
        log: The log.
        target: The state as of the version.
        state: The state of today.
    """
    removed, live = segment_entries.split_by_files(
        target.segments, state.segments["file"].to_pylist()
    )
    expected = {entry["file"]: _expected_sizes(entry) for entry in removed.to_pylist()}
    files = [file for sizes in expected.values() for file in sizes]
    existing_sizes = SegmentFileSizes().sizes(log, files)
    return set(live["file"].to_pylist()) | {
        file for file, sizes in expected.items() if sizes.items() <= existing_sizes.items()
    }


def _expected_sizes(entry: SegmentEntry) -> dict[str, int]:
    """Return the sizes that a segment's files have, without indexes that it does not have."""
    file = entry["file"]
    sizes = {
        index_file_path(file, "index"): entry["index_bytes"],
        index_file_path(file, "timeindex"): entry["time_index_bytes"],
    }
    indexes = {path: size_bytes for path, size_bytes in sizes.items() if size_bytes}
    return {file: segment_entries.file_size_bytes(entry)} | indexes


def _report(
    topic: str, state: TopicState, actions: Actions, commit_version: int | None
) -> RestoreReport:
    restore = actions.restore
    assert restore is not None
    changed = {
        *restore.log_start,
        *restore.log_end,
        *restore.cleaned_to,
        *(entry["partition"] for entry in actions.add),
    }
    return RestoreReport(
        topic=topic,
        version=restore.version,
        commit_version=commit_version,
        dry_run=commit_version is None,
        restored=_amount(segment_entries.to_table(actions.add)),
        removed=(len(actions.remove), actions.removed or Amount(0, 0)),
        partitions=tuple(
            RestoredPartition(
                partition,
                restore.log_start.get(partition, state.log_start[partition]),
                restore.log_end.get(partition, state.log_end[partition]),
                state.log_end[partition],
            )
            for partition in sorted(changed)
        ),
    )


def _amount(segments: pa.Table) -> tuple[int, Amount]:
    return segments.num_rows, amount_of(segments) or Amount(0, 0)
