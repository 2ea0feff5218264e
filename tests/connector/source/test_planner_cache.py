"""What the planner's cache keeps, and for how long."""

from __future__ import annotations

import weakref

from klog.connector.snapshot import PartitionSnapshot
from klog.connector.source.planner_cache import MAX_AGE_SECONDS, PlannerCache
from klog.logformat.topic_partition import TopicPartition


class Logs(dict[TopicPartition, PartitionSnapshot]):
    """Opened partitions that can be watched for being freed."""


def test_aged_reads_are_freed_by_the_next_read() -> None:
    now = 0.0
    cache = PlannerCache(lambda: now)
    aged, young = Logs(), Logs()
    freed = weakref.ref(aged)
    cache.put("aged", aged)
    now = 1.0
    cache.put("young", young)
    del aged
    now = MAX_AGE_SECONDS + 0.5
    assert cache.take("young") is young
    assert freed() is None
    assert cache.take("aged") is None


def test_a_read_is_taken_once() -> None:
    cache = PlannerCache()
    logs = Logs()
    cache.put("read", logs)
    assert cache.take("read") is logs
    assert cache.take("read") is None
