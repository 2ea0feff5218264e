"""Spark's stream reader: how far the next micro-batch reads, and the tasks that read it.

The rule: a micro-batch looks at the log once, when Spark asks for the latest offset. A partition
that appears while the stream runs is read from its start. If there is nothing new, the latest
offset is the very start, so that Spark runs no micro-batch. A run of `availableNow` looks when it
fixes its end, and then before each micro-batch after the first. Spark also makes a reader in a
process that only pickles it: what opens and plans is imported when it is needed.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
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
from klog.connector.options.read_options import parse_read_options
from klog.connector.options.spark_paths import log_directories
from klog.connector.snapshot import Logs, Root
from klog.connector.source.available_now import check_fixed_end
from klog.connector.source.first_batch import could_skip, is_given_start, report_unknown_start
from klog.connector.source.jvm_plan import summarise
from klog.connector.source.jvm_request import refuse_missing_shim
from klog.connector.source.load_plan import LoadPlan, ResolvedRange
from klog.connector.source.offset_ranges import latest_offsets, starting_offsets
from klog.connector.source.progress_metrics import METRICS, lag_metrics
from klog.connector.source.rate_limits import RateLimiter
from klog.connector.source.read_schema import with_schema
from klog.connector.source.slice_contract import TaskDict
from klog.connector.source.stream_log_ends import LogEnds, first_offset
from klog.connector.source.stream_losses import LossReports, find_new_partition_loss
from klog.connector.source.stream_offsets import StreamOffsets
from klog.connector.source.subscription import subscribed_partitions
from klog.connector.source.task_reader import TaskReader, make_reader
from klog.connector.spark_errors import sentence_first
from klog.connector.system_clock import now_ms
from klog.logformat.topic_partition import TopicPartition

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

    from klog.connector.source.slice_reader import SliceReader


class KlogStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """One stream over a root; long-lived in the driver, where it remembers where logs end."""

    def __init__(
        self,
        options: Mapping[str, str],
        schema: StructType | None = None,
        load_plan: LoadPlan | None = None,
        *,
        is_loaded: bool = False,
        is_for_jvm: bool = False,
    ) -> None:
        """Check the options and the schema, as Spark gives them; nothing is read yet.

        What `load()` resolved as for a batch spares a new query to look up the same times again. If
        it has parsed the options, it gave their warnings too; else the reader that reads does. For
        the JVM shim the first partition of a micro-batch is the summary of its plan (`jvm_plan`).
        """
        self._resolved = load_plan.ranges if load_plan is not None else ()
        with warnings.catch_warnings(record=True) as self._option_warnings:
            warnings.simplefilter("always")
            parsed = parse_read_options(options, is_streaming=True, is_loaded=is_loaded)
        if not is_for_jvm:
            refuse_missing_shim(parsed)
        self._options = with_schema(parsed, schema)
        self._directories = log_directories(options)
        self._reader = TaskReader(make_reader(self._directories, self._options))
        self._losses = LossReports(fail_on_data_loss=self._options.fail_on_data_loss)
        self._root: Root | None = None
        self._rate_limiter = RateLimiter(self._options.trigger_limits, now_ms)
        self._initial: dict[str, Any] | None = None
        self._available_now: LogEnds | None = None
        self._report: dict[str, Any] | None = None
        self._planned_end: dict[str, Any] | None = None
        self._planned_logs: Logs | None = None
        self._has_planned = False
        self._is_for_jvm = is_for_jvm

    def __reduce__(self) -> tuple[type[TaskReader], tuple[SliceReader]]:
        """Return what Spark sends to tasks: nothing of what the driver remembers of the logs."""
        return TaskReader, (self._reader.slice_reader,)

    @sentence_first()
    def initialOffset(self) -> dict[str, Any]:
        """Return where a new query starts: `startingOffsets`, with one answer for one run."""
        if self._initial is None:
            self._initial = retry_stale_listing(self._initial_offsets).to_json()
        return self._initial

    @sentence_first()
    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """See `DataSourceStreamReader.latestOffset`."""
        latest = self._available_now or retry_stale_listing(self._latest_offsets)
        start_offsets = StreamOffsets.from_json(start)
        self._losses.report(latest.losses(start_offsets, self._options.consumer_strategy))
        latest.warn_of_unknown_restores(start_offsets, self._losses.warn_once)
        log_ends = latest.after(start_offsets)
        end = log_ends
        if not isinstance(limit, ReadAllAvailable):
            end = self._limited_end(start_offsets, log_ends, latest.logs)
        self._report = log_ends.to_json() | {
            METRICS: lag_metrics(end.next_offsets, log_ends.next_offsets, latest.logs)
        }
        if start == self._initial and self._is_start_kept(start_offsets, end):
            self._planned_end = self._with_start(start_offsets, end, latest.logs).to_json()
        else:
            self._planned_end = start if end.has_same_end(start_offsets) else end.to_json()
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
        """Return the log ends as last seen and the lag of the stream, for its progress."""
        return self._report

    @sentence_first()
    def prepareForTriggerAvailableNow(self) -> None:
        """Fix the end of an `availableNow` run to what there is now."""
        self._available_now = retry_stale_listing(self._latest_offsets)

    @sentence_first()
    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        """See `DataSourceStreamReader.partitions`. Each task is a partition of Spark's."""
        start_offsets, end_offsets = StreamOffsets.from_json(start), StreamOffsets.from_json(end)
        self._check_first_batch(start, end, end_offsets)
        if start == end:  # Its `#start` is where the micro-batch before began.
            return []
        fixed_end = self._available_now if self._has_planned else None
        is_recent = end == self._planned_end and fixed_end is None
        logs = self._planned_logs if is_recent else None
        self._planned_logs = None  # They are of one micro-batch, and old for the next.
        self._has_planned = True
        if logs is not None:
            try:
                return self._plan(logs, start_offsets, end_offsets)
            except FileNotFoundError:
                pass
        root = self._opened_root()

        def plan_now() -> list[InputPartition]:
            snapshot = root.snapshot()
            logs = snapshot.open([name for name in end_offsets.next_offsets if name in snapshot])
            if fixed_end is not None:
                check_fixed_end(fixed_end, end_offsets, logs)
            return self._plan(logs, start_offsets, end_offsets)

        return retry_stale_listing(plan_now)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """See `DataSourceStreamReader.read`."""
        return self._reader.read(partition)

    def commit(self, end: dict[str, Any]) -> None:
        """See `DataSourceStreamReader.commit`. The checkpoint has the offsets: it does nothing."""

    def stop(self) -> None:
        """Do nothing: no file is open between two calls."""

    def _opened_root(self) -> Root:
        if self._root is None:
            from klog.connector.open_root import open_root

            self._root = open_root(self._directories, self._options.storage)
            for warning in self._option_warnings:
                warnings.warn(warning.message, stacklevel=2)
        return self._root

    def _open_logs(self) -> Logs:
        snapshot = self._opened_root().snapshot()
        strategy = self._options.consumer_strategy
        return snapshot.open(subscribed_partitions(strategy, snapshot, self._losses.warn_once))

    def _initial_offsets(self) -> StreamOffsets:
        """Return where a new query starts, in the logs that `availableNow` has fixed if it has."""
        ends = self._available_now or self._latest_offsets()
        latest = ends.offsets.next_offsets
        try:
            starts = starting_offsets(ends.logs, latest, self._options, now_ms(), self._resolved)
        except FileNotFoundError:
            if self._available_now is not None:  # Nothing of it is read yet: it may end later.
                self._available_now = self._latest_offsets()
            raise
        return StreamOffsets.from_logs(starts, ends.logs)

    def _latest_offsets(self) -> LogEnds:
        logs = self._open_logs()
        return LogEnds(StreamOffsets.from_logs(latest_offsets(logs, self._options), logs), logs)

    def _is_start_kept(self, start: StreamOffsets, end: StreamOffsets) -> bool:
        """Return whether the end of the first micro-batch has to keep where it starts."""
        starting, starts = self._options.starting, start.next_offsets
        if end.has_same_end(start):
            return could_skip(starting, starts)
        return not is_given_start(starting, starts)

    def _with_start(self, start: StreamOffsets, end: StreamOffsets, logs: Logs) -> StreamOffsets:
        """Return the end of the first micro-batch, with where it starts."""
        starts = {name: self._start_offset(name, start, end, logs) for name in end.next_offsets}
        return replace(end, batch_start=starts)

    def _check_first_batch(
        self, start: dict[str, Any], end: dict[str, Any], end_offsets: StreamOffsets
    ) -> None:
        """Report a first micro-batch that runs again without a start of its own."""
        is_again = start == self._initial and end != self._planned_end
        if not is_again or end_offsets.batch_start:
            return
        if could_skip(self._options.starting, StreamOffsets.from_json(start).next_offsets):
            report_unknown_start(
                self._options.starting_option, fail_on_data_loss=self._options.fail_on_data_loss
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
        if not self._is_new(name, start, end):
            return start.next_offsets[name]
        offset = first_offset(name, logs.get(name), end)
        return end.next_offsets[name] if offset is None else offset

    @staticmethod
    def _is_new(name: TopicPartition, start: StreamOffsets, end: StreamOffsets) -> bool:
        """Return whether the offsets before a micro-batch do not say where a partition starts."""
        return (
            name not in start.next_offsets
            or name in end.batch_start
            or end.is_another_topic(name.topic, start)
        )

    def _plan(
        self, logs: Logs, start_offsets: StreamOffsets, end_offsets: StreamOffsets
    ) -> list[InputPartition]:
        planned = []
        for name, end_offset in end_offsets.next_offsets.items():
            is_kept = name in end_offsets.batch_start and name in start_offsets.next_offsets
            if not is_kept and self._is_new(name, start_offsets, end_offsets):
                first = first_offset(name, logs.get(name), end_offsets)
                if (loss := find_new_partition_loss(name, first)) is not None:
                    self._losses.report_planned(loss)
            start_offset = self._start_offset(name, start_offsets, end_offsets, logs)
            if start_offset < end_offset:
                topic_id = end_offsets.topic_ids.get(name.topic, "")
                seen_restore = end_offsets.seen_restore(name.topic)
                planned.append(
                    ResolvedRange(name, topic_id, start_offset, end_offset, seen_restore)
                )
        from klog.connector.source import scan_planner

        tasks = scan_planner.plan_logs(
            logs, planned, self._options, decide_markers=self._is_for_jvm
        )
        partitions = [InputPartition(task) for task in tasks]
        return [self._summary(tasks, logs), *partitions] if self._is_for_jvm else partitions

    def _summary(self, tasks: Sequence[TaskDict], logs: Logs) -> InputPartition:
        """Return what the JVM shim is told about the tasks of a micro-batch."""
        from klog.connector.source.live_broker_logs import find_python_reason

        fail_on_data_loss = self._options.fail_on_data_loss
        names = {TopicPartition(run["topic"], run["partition"]) for task in tasks for run in task}
        read_logs = (log for name, log in logs.items() if name in names)
        reason = find_python_reason(read_logs, fail_on_data_loss=fail_on_data_loss)
        return InputPartition(summarise(tasks, python_reason=reason))
