"""What the tasks of the JVM engine tell the commit."""

from __future__ import annotations

import json

from klog.connector.sink.spark_writers import KlogCommitMessage


def commit_message(message: bytes) -> KlogCommitMessage:
    """Return the message of a task. The JVM writes the pickle that calls this.

    Args:
        message: A `CommitMessageDict` as JSON.
    """
    return KlogCommitMessage(json.loads(message))
