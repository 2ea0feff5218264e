"""What `load()` has read, kept for the planner calls that follow in the same process.

The rule: a query looks at the log once. Spark asks for the schema at `load()` and for the tasks
later, each time of a data source that it has pickled in between, but in the same Python process.
The pickled source has the offset ranges alone; the partitions that were opened for them stay here,
those of the last few reads. The first plan of the same ranges within a minute takes them. Every
other plan is one of a later query, or of another process: it looks at the log again, and so sees
what was deleted meanwhile.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from typing import TypeAlias

from klog.connector.snapshot import PartitionSnapshot
from klog.logformat.topic_partition import TopicPartition

Logs: TypeAlias = Mapping[TopicPartition, PartitionSnapshot]

MAX_AGE_SECONDS = 60.0
"""A broker keeps the files that it deletes for as long (`file.delete.delay.ms`)."""
MAX_READS = 4
"""The state of a large topic takes hundreds of megabytes."""


class PlannerCache:
    """The opened partitions of the last few reads."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Take a clock of seconds."""
        self._clock = clock
        self._reads: OrderedDict[Hashable, tuple[float, Logs]] = OrderedDict()

    def put(self, key: Hashable, logs: Logs) -> None:
        """Keep the partitions of a read.

        Args:
            key: The root, its options, and the ranges that were resolved.
            logs: The partitions, opened.
        """
        self._drop_aged()
        self._reads.pop(key, None)
        self._reads[key] = (self._clock(), logs)
        while len(self._reads) > MAX_READS:
            self._reads.popitem(last=False)

    def take(self, key: Hashable) -> Logs | None:
        """Return the partitions of a read, once; None if they were taken or are too old.

        Args:
            key: The key that they were put under.
        """
        self._drop_aged()
        _, logs = self._reads.pop(key, (0.0, None))
        return logs

    def _drop_aged(self) -> None:
        """Drop the reads that are too old; reads are in the order of their age."""
        now = self._clock()
        while self._reads:
            key, (loaded_at, _) = next(iter(self._reads.items()))
            if now - loaded_at <= MAX_AGE_SECONDS:
                return
            del self._reads[key]


PLANNER_CACHE = PlannerCache()
"""The one of this process."""
