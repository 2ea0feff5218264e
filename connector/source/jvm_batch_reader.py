"""Plans a batch for the JVM shim; Python reads the tasks if the shim cannot.

The rule: offsets are those that `load()` resolved, as for Python's reader. What filters say is
planned by the same code as what options say.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from pyspark.sql.datasource import InputPartition

from klog.connector.source.batch_reader import KlogBatchReader
from klog.connector.source.jvm_plan import summarise
from klog.connector.source.jvm_request import JvmRequest
from klog.connector.source.offset_ranges import OffsetRange
from klog.connector.source.row_bounds import ALL_ROWS
from klog.connector.source.slice_contract import TaskDict
from klog.connector.spark_errors import sentence_first

T = TypeVar("T")


class JvmBatchReader(KlogBatchReader):
    """The batch reader that Spark makes when the shim asks for a plan."""

    jvm_request = JvmRequest()

    @sentence_first()
    def partitions(self) -> list[InputPartition]:
        """Plan the read: the first partition is the summary, each other one a task."""
        if self.jvm_request.is_count:
            return [InputPartition(summarise([], self._record_count()))]
        self._warn()
        tasks, python_reason = self._tasks()
        summary = summarise(tasks, python_reason=python_reason)
        return [InputPartition(summary), *map(InputPartition, tasks)]

    def _record_count(self) -> int:
        from klog.connector.source.record_counter import count_by_commits_alone

        count = self._with_ranges(count_by_commits_alone)
        return -1 if count is None else count

    def _tasks(self) -> tuple[list[TaskDict], str]:
        """Return the tasks, and why Python has to read them if a broker runs on their files."""
        if self._load_plan is not None and self.jvm_request.bounds == ALL_ROWS:
            tasks = self._load_plan.recent_tasks()
            if tasks is not None:
                return tasks, self._load_plan.python_reason
        return self._with_ranges(self._plan)

    def _plan(self, ranges: list[OffsetRange]) -> tuple[list[TaskDict], str]:
        from klog.connector.source.live_broker_logs import find_python_reason
        from klog.connector.source.read_plan import plan

        tasks = plan(ranges, self._options.task_limits, decide_markers=True)
        logs = (offset_range.log for offset_range in ranges)
        fail_on_data_loss = self._options.fail_on_data_loss
        return tasks, find_python_reason(logs, fail_on_data_loss=fail_on_data_loss)

    def _with_ranges(self, use: Callable[[list[OffsetRange]], T]) -> T:
        from klog.connector.source import scan_planner

        return scan_planner.with_load_ranges(
            self._directories, self._load_plan, self._options, use, self.jvm_request.bounds
        )
