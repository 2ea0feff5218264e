"""When a checkpoint is due, and who writes it: a thread beside the commits, never in their way.

The rule: a checkpoint is due when the tail behind the newest one has 100 commits and a tenth of its
size, whichever comes last. Sizes are bytes on the store: those of the commits with their sidecars,
and those of the checkpoint's own file, which is what has to be written each time; its parts are
written again only where they have changed. So a load reads a bounded tail, and what checkpoints
write is at most about ten times what commits do.

A commit has landed before a checkpoint of it is begun, and nothing that becomes of the checkpoint
becomes of the commit: without it a load reads a longer tail.
"""

from __future__ import annotations

import logging
import time
from dataclasses import replace
from threading import Lock, Thread

import pyarrow as pa

from klog.connector.commit_log import checkpoint_schedule
from klog.connector.commit_log.checkpoint_schedule import is_checkpoint_due
from klog.connector.commit_log.checkpoint_writer import write_checkpoint
from klog.connector.commit_log.commit_log import CommitLog
from klog.connector.commit_log.commit_log_paths import CheckpointName, parse_checkpoint_name
from klog.connector.commit_log.topic_state import TopicState
from klog.errors import KlogError

PAUSE_SECONDS = 0.005

_log = logging.getLogger(__name__)


class BackgroundCheckpointer:
    """Writes checkpoints of any topics, one at a time, in a thread of its own.

    The thread is no daemon: a process that ends waits for the checkpoint under way.
    """

    def __init__(self) -> None:
        """Begin with none under way."""
        self._lock = Lock()
        self._thread: Thread | None = None
        self._written: dict[str, CheckpointName] = {}
        self._begun: dict[str, int] = {}

    def offer(self, log: CommitLog, state: TopicState) -> TopicState:
        """Have a checkpoint written if one is due and none is under way; returns at once.

        Gives the state to go on with, which takes the checkpoint for written: one that fails is
        tried again when as many commits have passed.
        """
        newest = self._written.get(log.paths.directory)
        taken_for = -1 if state.checkpoint is None else state.checkpoint.version
        if newest is not None and newest.version == taken_for:
            state = replace(state, checkpoint=newest)  # Only now its size is known.
        begun = self._begun.get(log.paths.directory, -checkpoint_schedule.MIN_COMMITS)
        if (
            not is_checkpoint_due(state)
            or 0 <= state.version - begun < checkpoint_schedule.MIN_COMMITS
        ):
            return state
        with self._lock:
            if self._thread is not None and self._thread.is_alive():
                return state
            self._thread = Thread(target=self._write, args=(log, state), name="klog-checkpoint")
            self._thread.start()
            self._begun[log.paths.directory] = state.version
        size_bytes = 0 if newest is None else newest.size_bytes
        return replace(state, checkpoint=CheckpointName(state.version, size_bytes, 0), tail_bytes=0)

    def join(self, timeout_seconds: float | None = None) -> None:
        """Wait for the checkpoint under way, for a process that is about to be ended."""
        thread = self._thread
        if thread is not None:
            thread.join(timeout_seconds)

    def _write(self, log: CommitLog, state: TopicState) -> None:
        try:
            if not self._is_one_nearby(log, state):
                _let_others()
                self._written[log.paths.directory] = write_checkpoint(log, state, _let_others)
        except (KlogError, OSError, pa.ArrowException, UnicodeError) as exc:
            _log.warning(
                "%s: no checkpoint was written of version %d, which only makes loads slower: %s",
                log.paths.directory,
                state.version,
                exc,
            )

    def _is_one_nearby(self, log: CommitLog, state: TopicState) -> bool:
        """Tell whether another writer was first: one listing, beside the commits."""
        names = map(parse_checkpoint_name, log.names(log.paths.checkpoints))
        # Of a later version than this state's may be one that nobody of this log has made.
        versions = (name.version for name in names if name is not None)
        newest = max((one for one in versions if one <= state.version), default=-1)
        return newest >= 0 and state.version - newest < checkpoint_schedule.MIN_COMMITS


def _let_others() -> None:
    """Wait for longer than most commits to a local disk take, so that these meet one piece each."""
    time.sleep(PAUSE_SECONDS)


CHECKPOINTER = BackgroundCheckpointer()
"""The process's own."""
