"""Write a checkpoint.

The rule: parts are put before the checkpoint that names them, and a part of an earlier checkpoint
is named again only if it is certain to stay. A file larger than readers accept is not written.
"""

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
from klog.errors import KlogError, StoreError


def write_checkpoint(
    log: CommitLog, state: TopicState, pause: state_checkpoint.Pause = lambda: None
) -> CheckpointName:
    """Write a state's checkpoint to the store.

    Of a large state only the parts that have changed are written, before the checkpoint that names
    them.

    Args:
        log: The log of the topic.
        state: The state after a commit of this process. After another's commit, a loss of power may
            undo the commit and leave its checkpoint.
        pause: Called between steps that hold Python's lock, as in `encode_checkpoint`.

    Returns:
        The name of the checkpoint.

    Raises:
        KlogError: A file would be larger than readers accept, or the store does not say whether a
            part was written.
    """
    rows = state.live.rows()
    parts: list[Part] = []
    if len(rows) > 2 * checkpoint_parts.PART_ROWS:
        earlier_parts = _earlier_parts(log, state)
        pause()
        plan = checkpoint_parts.plan_parts(rows, earlier_parts, retained_parts(log))
        parts += plan.kept_parts
        for first, end in plan.new_ranges:
            part_rows = checkpoint_parts.rows_in_range(rows, first, end)
            name, data = state_checkpoint.encode_part(part_rows, state.version)
            _check_size(log, name)
            pause()
            _put_part(log, name, data)
            parts.append(Part(name, first, end, len(part_rows)))
    name, data = state_checkpoint.encode_checkpoint(
        state, sorted(parts, key=lambda part: part.start_version), pause
    )
    pause()
    _check_size(log, name)
    # Before it is written: a checkpoint that no reader accepts would make the topic unreadable.
    state_checkpoint.decode_parts(data)
    # The name depends on the content: if the file exists, it has the same bytes.
    log.store.put_if_absent(log.paths.checkpoint(name), data)
    return name


def _check_size(log: CommitLog, name: CheckpointName) -> None:
    """Refuse to write a file that is larger than readers accept."""
    if name.size_bytes > MAX_TABLE_BYTES:
        raise KlogError(
            f"{log.paths.directory}: a checkpoint's file would have {name.size_bytes} bytes, at "
            f"most {MAX_TABLE_BYTES} are read. Have fewer segments: run `klog merge`, then `klog "
            "vacuum`"
        )


def _earlier_parts(log: CommitLog, state: TopicState) -> list[Part]:
    """Return the parts of an earlier checkpoint that are on the store.

    It is the checkpoint that the state was loaded from, or else the newest one.
    """
    name = state.checkpoint
    parts = None if name is None else read_checkpoint_parts(log, name)
    if parts is None:
        older = (parts for name, parts in list_checkpoints(log) if name.version <= state.version)
        parts = next(older, ())
    sizes = {entry.name: entry.size_bytes for entry in log.entries(log.paths.parts)}
    return [part for part in parts if sizes.get(str(part.name)) == part.name.size_bytes]


def _put_part(log: CommitLog, name: CheckpointName, data: bytes) -> None:
    path = log.paths.part(name)
    for tries in range(1, MAX_PUTS + 1):
        if log.store.put_if_absent(path, data) is not PutResult.UNKNOWN:
            return
        log.wait(tries)
    raise StoreError(f"{path}: the store did not say whether it was written; checkpoint later")
