"""Which logs of a running broker only Python reads.

The rule: a running broker replaces the files that it compacts, and deletes those that it expires.
Python plans what is left of them again while it reads; the JVM shim cannot. So what a broker
compacts is Python's, and so is every log of a running broker if lost records are only a warning.
The partitions that a broker compacts are those of its `cleaner-offset-checkpoint`.
"""

from __future__ import annotations

from collections.abc import Iterable

from klog.connector.kafka_dir.companion_files import read_companion_file
from klog.connector.kafka_dir.raw_partition import RawPartition
from klog.connector.snapshot import PartitionSnapshot
from klog.logformat.broker_files.checkpoint_files import parse_offset_checkpoint
from klog.logformat.topic_partition import TopicPartition


def find_python_reason(logs: Iterable[PartitionSnapshot], *, fail_on_data_loss: bool) -> str:
    """Return why Python has to read some of the logs of a running broker.

    Args:
        logs: The partitions of a read.
        fail_on_data_loss: Whether records that are gone are an error.

    Returns:
        The reason; empty if there is none.
    """
    cleaned: dict[str, frozenset[TopicPartition]] = {}
    for log in logs:
        if not isinstance(log, RawPartition) or not log.is_locked_by_broker:
            continue
        if not fail_on_data_loss:
            return f"{log.name}: with failOnDataLoss=false a running broker's files may be gone"
        folder = log.directory.path.rpartition("/")[0]
        if folder not in cleaned:
            cleaned[folder] = _cleaned_partitions(log, folder)
        if log.name in cleaned[folder]:
            return f"{log.name}: a running broker compacts it"
    return ""


def _cleaned_partitions(log: RawPartition, folder: str) -> frozenset[TopicPartition]:
    data = read_companion_file(log.store, f"{folder}/cleaner-offset-checkpoint")
    offsets = None if data is None else parse_offset_checkpoint(data)
    return frozenset(offsets or ())
