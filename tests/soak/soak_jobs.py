"""What else happens to the topic while it is written: checkpoints, cleaning and vacuum."""

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
"""Of vacuum: a writer that takes longer is refused and writes anew."""
RETENTION_MS = 1000
"""Of commits that a checkpoint stands for."""
_PAUSE_SECONDS = 0.3


def maintain(root: str, topic: str) -> None:
    """Checkpoint, clean and vacuum, over and over, until it is killed."""
    found = find_root(root)
    assert found is not None
    log = found.log_to_write(topic)
    while True:
        checkpoint_writer.write_checkpoint(log, log.load())
        commit_expiration.expire_log(log, RETENTION_MS)
        try:
            topic_vacuum.vacuum(log, CommitInfo(random_uuid(), "vacuum", "a soak"), GRACE_MS)
        except CommitConflictError:
            continue  # Others committed all the time; the next turn may have more luck.
        time.sleep(_PAUSE_SECONDS)
