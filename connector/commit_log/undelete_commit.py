"""The commit that brings a deleted topic back as its last version left it.

The rule (docs/commit-protocol.md, Undelete): the topic has its id, offsets, configs, named writers
and restores again, so that streams and writers of the topic go on. Only the last deletion can be
undone, and only on the state that it was looked up in. A segment that vacuum may have deleted ends
it, as it ends a restore.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from klog.connector.commit_log import restore_commit
from klog.connector.commit_log.commit import Actions, Topic, UndeletedTopic
from klog.connector.commit_log.commit_builders import CommitBuilder
from klog.connector.commit_log.lost_commit_errors import summarize_files
from klog.connector.commit_log.topic_state import TopicState
from klog.errors import CommitConflictError, RestoreRefusedError

_MAX_NAMED_FILES = 3


class StaleDeletionError(CommitConflictError):
    """Another commit came after the state in which the deletion was looked up: do it again."""


def undelete_topic(
    target: TopicState, planned: TopicState, existing: Collection[str]
) -> CommitBuilder:
    """Return the builder of a commit that brings a deleted topic back.

    Args:
        target: The state of the topic before it was deleted.
        planned: The state without the topic, in which that deletion is the last one.
        existing: The segments of `target` that the store has, all their files complete.

    Returns:
        The builder. It raises `StaleDeletionError` on any other state than `planned`, and
        `RestoreRefusedError` if vacuum has deleted a segment.
    """

    def build(state: TopicState) -> Actions:
        _check_planned(state, planned)
        files = target.segments["file"].to_pylist()
        _check_files(restore_commit.missing_segments(state, files, existing))
        log_end = _not_zero(target.log_end)
        return Actions(
            add=tuple(target.segments.to_pylist()),
            asserted_log_end=log_end,
            undelete=UndeletedTopic(
                version=target.version,
                topic=Topic(target.topic_id, target.partitions),
                config=dict(target.config),
                log_start=_not_zero(target.log_start),
                log_end=log_end,
                cleaned_to=dict(target.cleaned_to),
                holes=target.holes,
                writer_transactions=tuple(target.writer_transactions.values()),
                restores=target.restores,
            ),
        )

    return build


def _check_planned(state: TopicState, planned: TopicState) -> None:
    if (state.version, state.last_write_id) != (planned.version, planned.last_write_id):
        raise StaleDeletionError("the topic's log has changed meanwhile; run this again")


def _check_files(missing: restore_commit.MissingSegments) -> None:
    """Refuse segments that vacuum has deleted, or may be about to delete."""
    if missing.vacuumed:
        files = summarize_files(missing.vacuumed, _MAX_NAMED_FILES)
        raise RestoreRefusedError(
            f"vacuum has deleted, or is about to delete, {files}: the topic cannot "
            "be brought back. `klog topics create` creates a new one under its name"
        )
    if missing.incomplete:
        files = summarize_files(missing.incomplete, _MAX_NAMED_FILES)
        raise RestoreRefusedError(
            f"the store has no complete copy of {files} or of an index. Put the "
            "files back from a copy, then run this again"
        )


def _not_zero(offsets: Sequence[int]) -> Mapping[int, int]:
    return {partition: offset for partition, offset in enumerate(offsets) if offset}
