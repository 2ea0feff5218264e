"""Plan the scans of a broker's partitions, and build what is committed from their results.

The rule: topics are read in waves of about `WAVE_BYTES` between commits, which bounds the work that
a kill costs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from klog.connector.commit_log.adoption_commit import BrokerPartition
from klog.connector.kafka_dir.aborted_transactions import (
    read_aborted_transactions,
    rows_between,
)
from klog.connector.kafka_dir.raw_partition import RawPartition
from klog.connector.options.storage_options import StorageOptions
from klog.jobs.shared.broker_logs.adopted_entries import ScannedFile, adopted_entries
from klog.jobs.shared.broker_logs.broker_topics import BrokerTopic
from klog.jobs.shared.broker_logs.readable_segments import readable_segments
from klog.jobs.shared.broker_logs.scan_tasks import ScanTask
from klog.jobs.shared.waves import waves

WAVE_BYTES = 64 << 30


def scan_tasks(log: RawPartition, storage: StorageOptions) -> list[ScanTask]:
    """Return a task for each segment of a partition.

    Args:
        log: The partition.
        storage: The options of its store.
    """
    aborted = read_aborted_transactions(log, log.log_start, log.log_end)
    return [
        ScanTask(
            log.root,
            storage,
            log.name.topic,
            log.name.partition,
            readable,
            tuple(
                (producer_id, first, last)
                for producer_id, first, last in rows_between(
                    aborted, readable.segment.base_offset, readable.end_offset
                ).tolist()
            ),
        )
        for readable in readable_segments(log)
    ]


def partition_from_scans(
    topic: BrokerTopic,
    log: RawPartition,
    scans: Iterator[ScannedFile],
    open_transactions: str | None,
) -> BrokerPartition:
    """Return the partition that is committed.

    Args:
        topic: The topic.
        log: The partition.
        scans: The scans of segments; those of this partition come next.
        open_transactions: How open transactions ended, `abort` or `commit`; None refuses them.

    Raises:
        KlogError: There is an open transaction, and `open_transactions` is None.
    """
    segments = [next(scans) for _ in readable_segments(log)]
    entries = adopted_entries(log.name, segments, log.log_end, open_transactions)
    number = log.name.partition
    cleaned_to = topic.cleaned_to.get(number, 0)
    return BrokerPartition(number, log.log_start, log.log_end, cleaned_to, entries)


def topic_waves(
    topics: Sequence[BrokerTopic], max_bytes: int = WAVE_BYTES
) -> Iterator[list[BrokerTopic]]:
    """Return topics in waves of at most so many bytes, or of one topic.

    Args:
        topics: The topics in order.
        max_bytes: How many bytes a wave has, unless it is one topic.
    """
    return waves(topics, lambda topic: topic.size_bytes, max_bytes)
