"""The segments of a topic that have a file on its store."""

from __future__ import annotations

from klog.connector.commit_log.commit_log import CommitLog
from klog.connector.commit_log.lost_commit_traces import list_partition_directories
from klog.connector.commit_log.segment_path import segment_of_file


def list_segments(log: CommitLog) -> set[str]:
    """List them, also in partitions that the log has lost."""
    files = {
        f"{directory}/{entry.name}"
        for directory, entries in list_partition_directories(log)
        for entry in entries
        if not entry.is_directory
    }
    return {segment for file in files if (segment := segment_of_file(file)) is not None}
