"""Write a checkpoint."""

from __future__ import annotations

from klog.connector.commit_log import checkpoint_parts, state_checkpoint
from klog.connector.commit_log.checkpoint_parts import Part
from klog.connector.commit_log.checkpoint_store import (
    list_checkpoints,
    read_checkpoint_parts,
    retained_parts,
)
from klog.connector.commit_log.commit_log import CommitLog
from klog.connector.commit_log.commit_log_paths import (
    CheckpointName,
)
from klog.connector.commit_log.file_size_limits import MAX_TABLE_BYTES
from klog.connector.commit_log.put_outcome import MAX_PUTS
from klog.connector.commit_log.topic_state import TopicState
from klog.connector.store.writable_store import PutResult
from klog.errors import KlogError


def write_checkpoint(
    log: CommitLog, state: TopicState, pause: state_checkpoint.Pause = lambda: None
) -> CheckpointName:
    """Put a state's checkpoint on the store, beside the commits and never in their way.

    The state is one that a commit of the caller's own ended: where that of another ended it, a loss
    of power may undo the commit and leave its checkpoint.
    Of a large state only the parts are written that have changed, and they before what names them.
    `pause` is as of `checkpoint.encode`.
    """
    rows = state.live.rows()
    parts: list[Part] = []
    if len(rows) > 2 * checkpoint_parts.PART_ROWS:
        known = _known_parts(log, state)
        pause()
        cut = checkpoint_parts.plan_parts(rows, known, retained_parts(log))
        parts += cut.kept_parts
        for first, end in cut.new_ranges:
            wanted = checkpoint_parts.rows_in_range(rows, first, end)
            name, data = state_checkpoint.encode_part(wanted, state.version)
            _check_written(log, name)
            pause()
            _put_part(log, name, data)
            parts.append(Part(name, first, end, len(wanted)))
    name, data = state_checkpoint.encode_checkpoint(
        state, sorted(parts, key=lambda part: part.start_version), pause
    )
    pause()
    _check_written(log, name)
    state_checkpoint.read_parts(data)  # What no reader would take, once it is there ends the topic.
    # The name is of the content: who finds it there finds the same bytes.
    log.store.put_if_absent(log.paths.checkpoint(name), data)
    return name


def _check_written(log: CommitLog, name: CheckpointName) -> None:
    """Raise `KlogError` for a file that is larger than readers take."""
    if name.size_bytes > MAX_TABLE_BYTES:
        raise KlogError(
            f"{log.paths.directory}: a checkpoint's file would have {name.size_bytes} bytes, at "
            f"most {MAX_TABLE_BYTES} are read. Have fewer segments: run `klog merge`, then `klog "
            "vacuum`"
        )


def _known_parts(log: CommitLog, state: TopicState) -> list[Part]:
    """Give the parts of an earlier checkpoint that are on the store.

    It is the one that the state comes from, which was read whole, or else the newest.
    """
    name = state.checkpoint
    parts = None if name is None else read_checkpoint_parts(log, name)
    if parts is None:
        older = (parts for name, parts in list_checkpoints(log) if name.version <= state.version)
        parts = next(older, ())
    there = {entry.name: entry.size_bytes for entry in log.entries(log.paths.parts)}
    return [one for one in parts if there.get(str(one.name)) == one.name.size_bytes]


def _put_part(log: CommitLog, name: CheckpointName, data: bytes) -> None:
    path = log.paths.part(name)
    for tries in range(1, MAX_PUTS + 1):
        if log.store.put_if_absent(path, data) is not PutResult.UNKNOWN:
            return
        log.wait(tries)
    raise KlogError(f"{path}: the store did not say whether it was written; checkpoint later")
