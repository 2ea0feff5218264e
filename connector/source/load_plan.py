"""What `load()` has found, as it travels to the process that asks for the tasks.

The rule: a query looks at the log once. Spark asks for the schema at `load()` in one Python process
and for the tasks in another one (seen on PySpark 4.2.0), so nothing that the first process has
opened is there for the second. The data source that Spark pickles in between has the offset ranges,
and the tasks if the read is small. Within a minute these are the tasks of the read. Later, and if
the read is large, the planner looks at the log again, and so sees what was deleted meanwhile. A
task that does not find the file of a slice looks again too.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from klog.logformat.topic_partition import TopicPartition

if TYPE_CHECKING:
    from klog.connector.options.as_of import AsOf
    from klog.connector.source.slice_contract import TaskDict

MAX_AGE_SECONDS = 60.0
"""A broker keeps the files that it deletes for as long (`file.delete.delay.ms`)."""
MAX_BYTES = 256 << 20
"""A larger read is not planned at `load()`, which a stream calls too, and for nothing."""
MAX_SLICES = 10_000
"""A plan of more slices, a megabyte, does not travel."""


@dataclass(frozen=True, slots=True)
class ResolvedRange:
    """Offsets of one partition: what is kept of a `load()`.

    Attributes:
        name: The partition.
        topic_id: The id of its topic when the offsets were resolved, empty if it has none.
        start_offset: The first offset.
        end_offset: The offset after the last one.
        seen_restore: The commit that had restored the topic last when the offsets were resolved, 0
            if there was none; None if it is not known.
    """

    name: TopicPartition
    topic_id: str
    start_offset: int
    end_offset: int
    seen_restore: int | None = None


@dataclass(frozen=True, slots=True)
class LogSize:
    """How large logs are, or a part of them.

    Attributes:
        segment_count: The number of segments that are not empty.
        size_bytes: Their bytes.
    """

    segment_count: int
    size_bytes: int


UNKNOWN_SIZE = LogSize(-1, -1)


@dataclass(frozen=True, slots=True)
class LoadPlan:
    """A read as `load()` has resolved it.

    Attributes:
        ranges: The offsets of each partition.
        tasks: The tasks that read them; None if there are many.
        made_seconds: When they were planned, by the clock.
        total_size: The size of the partitions that the read names, whatever its offsets are.
        has_commits: Whether they are of a klog root.
        as_of: The earlier version that is read; None for what the topics have now.
        warnings: What a batch has to say about its offsets, and a stream does not.
        python_reason: Why only Python reads the tasks, as a broker runs on their files; empty if
            there is no reason.
    """

    ranges: Sequence[ResolvedRange]
    tasks: list[TaskDict] | None
    made_seconds: float
    total_size: LogSize = UNKNOWN_SIZE
    has_commits: bool = True
    as_of: AsOf | None = None
    warnings: tuple[str, ...] = ()
    python_reason: str = ""

    def recent_tasks(self, clock: Callable[[], float] = time.monotonic) -> list[TaskDict] | None:
        """Return the tasks if they are known and not old.

        Args:
            clock: Returns seconds: the clock of this machine, which its processes share.
        """
        age_seconds = clock() - self.made_seconds
        return self.tasks if 0 <= age_seconds <= MAX_AGE_SECONDS else None
