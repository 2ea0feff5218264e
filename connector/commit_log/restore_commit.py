"""The commit that makes the live records those of an earlier version.

The rule (docs/commit-protocol.md, Restore): segments, log starts, holes and the cleaner's progress
become those of the version. Log ends stay, so that no offset is given out twice: what lies after
the end at that version is a hole. Partitions, configs and the last batches of named writers stay
too. A segment that was removed since is live again, unless vacuum may have deleted it: a commit has
raised the vacuum version to its removal or above.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from klog.connector.commit_log import segment_entries
from klog.connector.commit_log.commit import Actions, Hole, Restore
from klog.connector.commit_log.commit_builders import CommitBuilder
from klog.connector.commit_log.commit_checks import amount_of
from klog.connector.commit_log.topic_state import TopicState
from klog.errors import RestoreRefusedError


@dataclass(frozen=True, slots=True)
class MissingSegments:
    """Removed segments that cannot be live again.

    Attributes:
        vacuumed: Vacuum has deleted them, or may be about to.
        incomplete: A file of each is missing on the store, or has another size.
    """

    vacuumed: tuple[str, ...] = ()
    incomplete: tuple[str, ...] = ()


def restore(target: TopicState, existing: Collection[str]) -> CommitBuilder:
    """Return the builder of a commit that restores an earlier version of a topic.

    Args:
        target: The state of the topic as of that version.
        existing: The segments of `target` that the store has, all their files complete.

    Returns:
        The builder. It makes no commit if nothing would change. It raises `RestoreRefusedError` if
        the topic was deleted or created again since that version, or a segment was vacuumed.
    """

    def build(state: TopicState) -> Actions | None:
        _check_topic(target, state)
        _check_history(target, state)
        add, _ = segment_entries.split_by_files(target.segments, state.segments["file"].to_pylist())
        remove, _ = segment_entries.split_by_files(
            state.segments, target.segments["file"].to_pylist()
        )
        _check_files(target, state, missing_segments(state, add["file"].to_pylist(), existing))
        changes = _changes(target, state)
        actions = Actions(
            add=tuple(add.to_pylist()),
            remove=tuple(remove["file"].to_pylist()),
            removed=amount_of(remove),
            asserted_log_end={partition: state.log_end[partition] for partition in changes.log_end},
            restore=changes,
        )
        return actions if _has_changes(actions, state) else None

    return build


def _check_topic(target: TopicState, state: TopicState) -> None:
    if not target.topic_id:
        raise RestoreRefusedError(
            f"version {target.version} has no topic: it was deleted then. Choose another version; "
            "`klog history` lists them"
        )
    if state.topic_id == target.topic_id:
        return
    if not state.topic_id:
        raise RestoreRefusedError(
            f"the topic was deleted after version {target.version}, and only a topic that exists "
            "can be restored"
        )
    raise RestoreRefusedError(
        f"the topic was deleted and created again after version {target.version}: its id is "
        f"{state.topic_id}, and was {target.topic_id}. Choose a version of the topic of today"
    )


def _check_history(target: TopicState, state: TopicState) -> None:
    """Refuse a log that does not have the commit of the version: a loss of power undid it."""
    version = target.version
    if state.remembers(version) and state.writes.get(target.last_write_id) != version:
        raise RestoreRefusedError(
            f"the commit of version {version} is no longer in the log, which ends at version "
            f"{state.version}: a loss of power undid it. Look at `klog history`, then restore again"
        )


def missing_segments(
    state: TopicState, files: Iterable[str], existing: Collection[str]
) -> MissingSegments:
    """Return the removed segments that cannot be live again.

    Args:
        state: The state that the commit is to land on.
        files: The removed segments.
        existing: The segments that the store has, all their files complete.
    """
    removals = dict(
        zip(state.removed["file"].to_pylist(), state.removed["version"].to_pylist(), strict=True)
    )
    vacuumed, incomplete = [], []
    for file in files:
        if removals.get(file, -1) <= state.vacuum_version:
            vacuumed.append(file)
        elif file not in existing:
            incomplete.append(file)
    return MissingSegments(tuple(vacuumed), tuple(incomplete))


def _check_files(target: TopicState, state: TopicState, missing: MissingSegments) -> None:
    """Refuse removed segments that vacuum has deleted, or may be about to delete."""
    if missing.vacuumed:
        raise RestoreRefusedError(
            f"{missing.vacuumed[0]} is of version {target.version}, and vacuum has deleted it or "
            f"is about to: it went through version {state.vacuum_version}. Choose a later version"
        )
    if missing.incomplete:
        raise RestoreRefusedError(
            f"{missing.incomplete[0]} is of version {target.version}, and it or an index of it is "
            "missing or incomplete on the store. Put the files back from a copy, or choose a later "
            "version"
        )


def _changes(target: TopicState, state: TopicState) -> Restore:
    """Return what changes besides the segments."""
    ends = _padded(target.log_end, state.partitions)
    starts = _padded(target.log_start, state.partitions)
    log_end = {
        partition: end
        for partition, (end, now) in enumerate(zip(ends, state.log_end, strict=True))
        if end < now
    }
    holes = [
        *target.holes,
        *(Hole(partition, end, state.log_end[partition]) for partition, end in log_end.items()),
    ]
    return Restore(
        version=target.version,
        log_start={
            partition: start
            for partition, (start, now) in enumerate(zip(starts, state.log_start, strict=True))
            if start != now
        },
        log_end=log_end,
        cleaned_to={
            partition: target.cleaned_to.get(partition, 0)
            for partition, offset in state.cleaned_to.items()
            if offset != target.cleaned_to.get(partition, 0)
        },
        holes=tuple(_joined(sorted(holes))),
    )


def _padded(offsets: Iterable[int], partitions: int) -> list[int]:
    """Return offsets with 0 for the partitions that were added later."""
    known = list(offsets)
    return known + [0] * (partitions - len(known))


def _joined(holes: Iterable[Hole]) -> Iterator[Hole]:
    """Yield holes in order, neighbours as one."""
    last: Hole | None = None
    for hole in holes:
        if last and (last.partition, last.next_offset) == (hole.partition, hole.base_offset):
            last = Hole(last.partition, last.base_offset, hole.next_offset)
            continue
        if last:
            yield last
        last = hole
    if last:
        yield last


def _has_changes(actions: Actions, state: TopicState) -> bool:
    restore = actions.restore
    assert restore is not None
    return bool(
        actions.add
        or actions.remove
        or restore.log_start
        or restore.cleaned_to
        or restore.holes != tuple(_joined(sorted(state.holes)))
    )
