"""Plans a batch for the JVM shim; Python reads the tasks if the shim cannot.

The rule: offsets are those that `load()` resolved, as for Python's reader. What filters say is
planned by the same code as what options say.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from pyspark.sql.datasource import InputPartition

from klog.connector.source.batch_reader import KlogBatchReader
from klog.connector.source.jvm_plan import summarise
from klog.connector.source.jvm_request import JvmRequest
from klog.connector.source.load_plan import UNKNOWN_SIZE
from klog.connector.source.offset_ranges import OffsetRange
from klog.connector.source.slice_contract import TaskDict
from klog.connector.spark_errors import sentence_first

T = TypeVar("T")


class JvmBatchReader(KlogBatchReader):
    """The batch reader that Spark makes when the shim asks for a plan."""

    jvm_request = JvmRequest()

    @sentence_first()
    def partitions(self) -> list[InputPartition]:
        """Plan the read: the first partition is the summary, each other one a task."""
        if self.jvm_request.aggregates:
            known = self._aggregates()
            if known.keys() >= set(self.jvm_request.aggregates):
                self._warn()
            return [InputPartition(summarise([], aggregates=known))]
        self._warn()
        tasks, python_reason = self._tasks()
        total_size = self._load_plan.total_size if self._load_plan else UNKNOWN_SIZE
        summary = summarise(tasks, python_reason=python_reason, total_size=total_size)
        return [InputPartition(summary), *map(InputPartition, tasks)]

    def _aggregates(self) -> Mapping[str, int | None]:
        from klog.connector.source.commit_aggregates import aggregate_by_commits

        if self._load_plan is not None and not self._load_plan.has_commits:
            return {}
        return self._with_ranges(aggregate_by_commits)

    def _tasks(self) -> tuple[list[TaskDict], str]:
        """Return the tasks, and why Python has to read them if a broker runs on their files."""
        if self._load_plan is not None and self.jvm_request == JvmRequest():
            tasks = self._load_plan.recent_tasks()
            if tasks is not None:
                return tasks, self._load_plan.python_reason
        return self._with_ranges(self._plan)

    def _plan(self, ranges: list[OffsetRange]) -> tuple[list[TaskDict], str]:
        from klog.connector.source.live_broker_logs import find_python_reason
        from klog.connector.source.read_plan import plan

        if (top := self.jvm_request.top) is not None:
            ranges = [top.within(offset_range) for offset_range in ranges]
        tasks = plan(ranges, self._options.task_limits, decide_markers=True)
        logs = (offset_range.log for offset_range in ranges)
        fail_on_data_loss = self._options.fail_on_data_loss
        return tasks, find_python_reason(logs, fail_on_data_loss=fail_on_data_loss)

    def _with_ranges(self, use: Callable[[list[OffsetRange]], T]) -> T:
        from klog.connector.source import scan_planner

        return scan_planner.with_load_ranges(
            self._directories, self._load_plan, self._options, use, self.jvm_request.bounds
        )
