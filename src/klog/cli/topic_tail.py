"""The end of topics as it moves: `klog consume --follow`.

The rule: each poll looks at the log once and plans what came since the last one. A klog root is one
or two small reads a poll, as its state is kept; a broker's directory is listed again. The pause
between two polls grows while nothing comes. A partition that is new starts at its first record. A
topic that was deleted and created again is read from its start, a restored one from the first
offset that was, or became, a hole. Both are warnings, and so is what expired before it was read.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from klog.connector.kafka_dir.stale_listings import retry_stale_listing
from klog.connector.options.read_options import ReadOptions
from klog.connector.snapshot import PartitionSnapshot, Root
from klog.connector.source import scan_planner
from klog.connector.source.data_loss import restored_from
from klog.connector.source.load_plan import ResolvedRange
from klog.connector.source.offset_ranges import latest_offsets
from klog.connector.source.slice_reader import SliceReader
from klog.connector.source.subscription import subscribed_partitions
from klog.logformat.topic_partition import TopicPartition

MIN_PAUSE_SECONDS = 0.1
MAX_PAUSE_SECONDS = 1.0

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Position:
    """The next offset to read of a partition, and which log that offset is of.

    Attributes:
        topic_id: The id of the topic, empty if it has none.
        next_offset: The offset.
        seen_restore: The `last_restore` of the partition when it was read.
    """

    topic_id: str
    next_offset: int
    seen_restore: int | None


@dataclass(slots=True)
class TopicTail:
    """A read of topics that goes on where the last poll ended.

    Attributes:
        root: The root.
        options: Which partitions are read, and at which isolation level.
        reader: Reads what is planned.
        first_offset: Returns where a partition starts that is there at the first poll; it gets the
            partition and the latest offset that can be read.
    """

    root: Root
    options: ReadOptions
    reader: SliceReader
    first_offset: Callable[[PartitionSnapshot, int], int]
    _positions: dict[TopicPartition, Position] | None = field(default=None, init=False)

    def poll(self) -> Iterator[pa.RecordBatch]:
        """Yield the records that came since the last poll.

        Raises:
            OptionError: A topic does not exist.
        """
        ranges = retry_stale_listing(self._new_ranges)
        for task in scan_planner.plan_tasks(self.root, ranges, self.options):
            yield from self.reader.read(task)

    def follow(self, wait: Callable[[float], bool]) -> Iterator[pa.RecordBatch]:
        """Yield records as they come.

        Args:
            wait: Waits for seconds; returns False if nobody wants further records.
        """
        pause = MIN_PAUSE_SECONDS
        is_wanted = True
        while is_wanted:
            has_records = False
            for batch in self.poll():
                has_records = has_records or batch.num_rows > 0
                yield batch
            pause = MIN_PAUSE_SECONDS if has_records else min(2 * pause, MAX_PAUSE_SECONDS)
            is_wanted = wait(pause)

    def _new_ranges(self) -> Sequence[ResolvedRange]:
        """Return what came since the last poll, and move the positions after it."""
        snapshot = self.root.snapshot()
        logs = snapshot.open(subscribed_partitions(self.options.consumer_strategy, snapshot))
        latest = latest_offsets(logs, self.options)
        positions: dict[TopicPartition, Position] = {}
        ranges = []
        for name, log in logs.items():
            start = self._start_offset(log, latest[name])
            end = max(start, latest[name])
            positions[name] = Position(log.topic_id, end, log.last_restore)
            if start < end:
                ranges.append(ResolvedRange(name, log.topic_id, start, end, log.last_restore))
        self._positions = positions
        return ranges

    def _start_offset(self, log: PartitionSnapshot, latest: int) -> int:
        if self._positions is None:
            return self.first_offset(log, latest)
        position = self._positions.get(log.name)
        if position is None:
            return log.log_start
        if position.topic_id != log.topic_id:
            logger.warning("%s: the topic was created again; it is read from its start", log.name)
            return log.log_start
        changed = restored_from(log, position.seen_restore)
        if changed is not None and changed < position.next_offset:
            logger.warning(
                "%s: commit %s restored an earlier version, which has other records or none "
                "from offset %d on; the read goes on from there",
                log.name,
                log.last_restore,
                changed,
            )
            return max(changed, log.log_start)
        if position.next_offset < log.log_start:
            logger.warning(
                "%s: offsets %d to %d are gone, as the log starts at %d now",
                log.name,
                position.next_offset,
                log.log_start - 1,
                log.log_start,
            )
        return max(position.next_offset, log.log_start)
