"""Jobs that run on the topic during a soak: checkpoints, log expiration and vacuum."""

from __future__ import annotations

import time

from klog.connector.commit_log import (
    checkpoint_writer,
    commit_expiration,
    topic_vacuum,
)
from klog.connector.commit_log.commit_info import CommitInfo, random_uuid
from klog.connector.commit_log.root_discovery import find_root
from klog.errors import CommitConflictError

GRACE_MS = 3000
"""The grace of vacuum: a writer that takes longer is refused and writes again."""
RETENTION_MS = 1000
"""The retention of commits that a checkpoint covers."""
_PAUSE_SECONDS = 0.3


def maintain(root: str, topic: str) -> None:
    """Write checkpoints, expire the log and vacuum in a loop, until the process is killed."""
    klog_root = find_root(root)
    assert klog_root is not None
    log = klog_root.log_to_write(topic)
    while True:
        checkpoint_writer.write_checkpoint(log, log.load())
        commit_expiration.expire_log(log, RETENTION_MS)
        try:
            topic_vacuum.vacuum(log, CommitInfo(random_uuid(), "vacuum", "a soak"), GRACE_MS)
        except CommitConflictError:
            continue  # Other commits came first; try again in the next round.
        time.sleep(_PAUSE_SECONDS)
