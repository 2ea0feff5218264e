"""Spark's stream reader: how far the next micro-batch reads, and the tasks that read it.

The rule: a micro-batch looks at the log once, when Spark asks for the latest offset. A partition
that appears while the stream runs is read from its start. The stream never goes back: an offset
that the log does not reach any more is data loss, unless a broker holds the directory, whose high
watermark may go back for a while.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)

from klog.connector.kafka_dir.stale_listings import retry_stale_listing
from klog.connector.open_root import open_root
from klog.connector.options.read_options import parse_read_options
from klog.connector.snapshot import Root
from klog.connector.source import scan_planner
from klog.connector.source.data_loss import raise_or_warn, stream_remedy
from klog.connector.source.offset_ranges import ResolvedRange, latest_offsets, starting_offsets
from klog.connector.source.planner_cache import Logs
from klog.connector.source.rate_limits import RateLimiter
from klog.connector.source.slice_contract import TaskDict
from klog.connector.source.stream_offsets import StreamOffsets
from klog.connector.source.subscription import subscribed_partitions
from klog.connector.system_clock import now_ms
from klog.logformat.topic_partition import TopicPartition

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class _LatestOffsets:
    """Where the logs end, and the partitions that were opened to see it."""

    offsets: StreamOffsets
    logs: Logs

    def may_go_back(self, name: TopicPartition) -> bool:
        """Return whether a broker holds the partition's directory."""
        return name in self.logs and self.logs[name].is_locked_by_broker


class KlogStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """One stream over a root; long-lived in the driver, where it remembers where logs end."""

    def __init__(self, options: Mapping[str, str]) -> None:
        """Check the options, as Spark gives them; nothing is read yet."""
        self._options = parse_read_options(options, is_streaming=True)
        self._directories = scan_planner.log_directories(options)
        self._reader = scan_planner.make_reader(self._directories, self._options)
        self._root: Root | None = None
        self._rate_limiter = RateLimiter(self._options.trigger_limits, now_ms)
        self._available_now: _LatestOffsets | None = None
        self._log_ends: dict[str, Any] | None = None
        self._planned_end: dict[str, Any] | None = None
        self._planned_logs: Logs | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Return what tasks need: nothing of what the driver remembers of the logs."""
        return self.__dict__ | {
            "_root": None,
            "_rate_limiter": None,
            "_available_now": None,
            "_planned_logs": None,
        }

    def initialOffset(self) -> dict[str, Any]:
        """Return where a new query starts: `startingOffsets`."""
        return retry_stale_listing(self._initial_offsets).to_json()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """See `DataSourceStreamReader.latestOffset`."""
        latest = self._available_now or retry_stale_listing(self._latest_offsets)
        start_offsets = StreamOffsets.from_json(start)
        log_ends = self._after(start_offsets, latest)
        self._log_ends = log_ends.to_json()
        if isinstance(limit, ReadAllAvailable):
            self._planned_end = self._log_ends
        else:
            self._planned_end = self._limited_end(start_offsets, log_ends, latest.logs).to_json()
        self._planned_logs = latest.logs
        return self._planned_end

    def getDefaultReadLimit(self) -> ReadLimit:
        """Return which limit a trigger other than `once` has, of those that Spark knows."""
        limits = self._options.trigger_limits
        if limits.max_offsets is not None:
            return ReadMaxRows(limits.max_offsets)
        if limits.max_bytes is not None:
            return ReadMaxBytes(limits.max_bytes)
        return ReadMinRows(limits.min_offsets) if limits.min_offsets else ReadAllAvailable()

    def reportLatestOffset(self) -> dict[str, Any] | None:
        """Return the log ends, as last seen, for the query's progress."""
        return self._log_ends

    def prepareForTriggerAvailableNow(self) -> None:
        """Fix the end of an `availableNow` run to what there is now."""
        self._available_now = retry_stale_listing(self._latest_offsets)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        """See `DataSourceStreamReader.partitions`. Each task is a partition of Spark's."""
        start_offsets, end_offsets = StreamOffsets.from_json(start), StreamOffsets.from_json(end)
        logs = self._planned_logs if end == self._planned_end else None
        self._planned_logs = None  # They are of one micro-batch, and old for the next.
        if logs is not None:
            try:
                return _partitions(self._plan(logs, start_offsets, end_offsets))
            except FileNotFoundError:
                pass
        root = self._opened_root()

        def plan_now() -> list[TaskDict]:
            snapshot = root.snapshot()
            names = [name for name in end_offsets.next_offsets if name in snapshot]
            return self._plan(snapshot.open(names), start_offsets, end_offsets)

        return _partitions(retry_stale_listing(plan_now))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """See `DataSourceStreamReader.read`."""
        return self._reader.read(partition.value or [])

    def commit(self, end: dict[str, Any]) -> None:
        """See `DataSourceStreamReader.commit`. The checkpoint has the offsets: it does nothing."""

    def stop(self) -> None:
        """Do nothing: no file is open between two calls."""

    def _opened_root(self) -> Root:
        if self._root is None:
            self._root = open_root(self._directories, self._options.storage)
        return self._root

    def _open_logs(self) -> Logs:
        snapshot = self._opened_root().snapshot()
        return snapshot.open(subscribed_partitions(self._options.consumer_strategy, snapshot))

    def _initial_offsets(self) -> StreamOffsets:
        logs = self._open_logs()
        latest = latest_offsets(logs, self._options)
        starts = starting_offsets(logs, latest, self._options, now_ms())
        next_offsets = {name: min(start, logs[name].log_end) for name, start in starts.items()}
        return StreamOffsets.from_logs(next_offsets, logs)

    def _latest_offsets(self) -> _LatestOffsets:
        logs = self._open_logs()
        return _LatestOffsets(
            StreamOffsets.from_logs(latest_offsets(logs, self._options), logs), logs
        )

    def _limited_end(
        self, start: StreamOffsets, log_ends: StreamOffsets, logs: Logs
    ) -> StreamOffsets:
        """Return where the next micro-batch ends; at its start if it has to wait."""
        starts = {
            name: self._start_offset(name, start, log_ends, logs) for name in log_ends.next_offsets
        }
        latest = log_ends.next_offsets
        # A run of `availableNow` would end with the rest unread.
        if self._available_now is None and self._rate_limiter.should_wait(starts, latest):
            return start
        return replace(log_ends, next_offsets=self._rate_limiter.end_offsets(starts, latest, logs))

    def _start_offset(
        self, name: TopicPartition, start: StreamOffsets, end: StreamOffsets, logs: Logs
    ) -> int:
        """Return where a partition goes on: a new one, or one of a new topic, at its log start."""
        offset = start.next_offsets.get(name)
        if offset is None or end.is_another_topic(name.topic, start):
            return logs[name].log_start if name in logs else end.next_offsets[name]
        return offset

    def _plan(
        self, logs: Logs, start_offsets: StreamOffsets, end_offsets: StreamOffsets
    ) -> list[TaskDict]:
        planned = []
        for name, end_offset in end_offsets.next_offsets.items():
            start_offset = self._start_offset(name, start_offsets, end_offsets, logs)
            if start_offset < end_offset:
                topic_id = end_offsets.topic_ids.get(name.topic, "")
                planned.append(ResolvedRange(name, topic_id, start_offset, end_offset))
        return scan_planner.plan_logs(logs, planned, self._options)

    def _after(self, start: StreamOffsets, latest: _LatestOffsets) -> StreamOffsets:
        """Return where the logs end; report what is gone of what the stream has counted on."""
        created_again = {
            topic for topic in start.topic_ids if latest.offsets.is_another_topic(topic, start)
        }
        for topic in created_again:
            self._report_loss(
                f"{topic}: the topic was deleted and created again (its id has changed)",
                "the new topic, from its start",
            )
        ends = dict(latest.offsets.next_offsets)
        for name, offset in start.next_offsets.items():
            if name.topic in created_again:
                continue
            if name not in ends:
                self._report_loss(
                    f"{name}: the partition was deleted while the stream was at {offset}",
                    "the other partitions",
                )
            elif ends[name] < offset and not latest.may_go_back(name):
                self._report_loss(
                    f"{name}: the log ends at {ends[name]}, the stream was at {offset}",
                    f"offset {offset}, which leaves out what is written before it",
                )
            ends[name] = max(ends.get(name, 0), offset)
        return StreamOffsets(ends, {**start.topic_ids, **latest.offsets.topic_ids})

    def _report_loss(self, message: str, remainder: str) -> None:
        raise_or_warn(
            message,
            stream_remedy(remainder),
            remainder,
            fail_on_data_loss=self._options.fail_on_data_loss,
        )


def _partitions(tasks: Iterable[TaskDict]) -> list[InputPartition]:
    return [InputPartition(task) for task in tasks]
