"""The thread that writes checkpoints, so that commits do not wait for them.

The rule: a commit has landed before its checkpoint begins (`checkpoint_schedule.py` says when it is
due), and a failed checkpoint does not fail the commit: without it a load reads a longer tail.
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
from klog.connector.commit_log.commit_log_paths import CheckpointName
from klog.connector.commit_log.topic_state import TopicState
from klog.errors import KlogError

PAUSE_SECONDS = 0.005

_log = logging.getLogger(__name__)


class BackgroundCheckpointer:
    """Writes checkpoints of any topics, one at a time, in a thread of its own.

    The thread is not a daemon: a process that ends waits for the checkpoint that is being written.
    """

    def __init__(self) -> None:
        """Begin without a checkpoint under way."""
        self._lock = Lock()
        self._thread: Thread | None = None
        self._written: dict[str, CheckpointName] = {}
        self._begun_versions: dict[str, int] = {}

    def offer(self, log: CommitLog, state: TopicState) -> TopicState:
        """Start to write a checkpoint if one is due and none is under way; return at once.

        Args:
            log: The log of the topic.
            state: Its state after a commit of this process.

        Returns:
            The state to continue with. It counts the checkpoint as written: one that fails is tried
            again after as many commits.
        """
        newest = self._written.get(log.paths.directory)
        state_version = -1 if state.checkpoint is None else state.checkpoint.version
        if newest is not None and newest.version == state_version:
            state = replace(state, checkpoint=newest)  # Its size is known only now.
        begun_version = self._begun_versions.get(
            log.paths.directory, -checkpoint_schedule.MIN_COMMITS
        )
        if (
            not is_checkpoint_due(state)
            or 0 <= state.version - begun_version < checkpoint_schedule.MIN_COMMITS
        ):
            return state
        with self._lock:
            if self._thread is not None and self._thread.is_alive():
                return state
            self._thread = Thread(target=self._write, args=(log, state), name="klog-checkpoint")
            self._thread.start()
            self._begun_versions[log.paths.directory] = state.version
        size_bytes = 0 if newest is None else newest.size_bytes
        return replace(state, checkpoint=CheckpointName(state.version, size_bytes, 0), tail_bytes=0)

    def join(self, timeout_seconds: float | None = None) -> None:
        """Wait for the checkpoint under way, in a process that is about to be ended.

        Args:
            timeout_seconds: How long to wait at most; None waits until it is written.
        """
        thread = self._thread
        if thread is not None:
            thread.join(timeout_seconds)

    def _write(self, log: CommitLog, state: TopicState) -> None:
        try:
            if not self._is_superfluous(log, state):
                _yield_to_commits()
                self._written[log.paths.directory] = write_checkpoint(log, state, _yield_to_commits)
        except (KlogError, OSError, pa.ArrowException, UnicodeError) as exc:
            _log.warning(
                "%s: no checkpoint of version %d was written, which only makes loads slower: %s",
                log.paths.directory,
                state.version,
                exc,
            )

    def _is_superfluous(self, log: CommitLog, state: TopicState) -> bool:
        """Return whether another writer's checkpoint makes this one superfluous: one listing."""
        # A checkpoint of a later version may be left from another log.
        versions = (name.version for name in log.checkpoint_names())
        newest = max((version for version in versions if version <= state.version), default=-1)
        return newest >= 0 and state.version - newest < checkpoint_schedule.MIN_COMMITS


def _yield_to_commits() -> None:
    """Wait for longer than most commits to a local disk take.

    So each commit waits for at most one step of a checkpoint.
    """
    time.sleep(PAUSE_SECONDS)


CHECKPOINTER = BackgroundCheckpointer()
"""The one of this process: commits to any log wait for at most one checkpoint at a time."""
