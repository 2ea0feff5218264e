"""Run the tasks of a job: on Spark, or one after the other in this process.

The rule: a task is a plain value, and a function works on it; Spark pickles both. A task may run
more than once, even twice at a time, so each file it writes has a name of its own. Tasks are made
when they are needed and results are passed on before more tasks are made, so neither all tasks nor
all results are ever in memory.

A task that fails gives its error as a result (`task_retries.py`). An `OptionError` ends the job at
once, as it would fail every task; the job decides about any other error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from operator import length_hint
from typing import TYPE_CHECKING, TypeVar

from klog.errors import KlogError, OptionError
from klog.jobs.shared.progress_bar import with_progress_bar
from klog.jobs.shared.spark_tasks import run_on_spark
from klog.jobs.shared.task_retries import FailedTask

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Task = TypeVar("Task")
Result = TypeVar("Result")


class LazyTasks(Iterator[Task]):
    """Tasks that are made when they are needed; their number is known before."""

    def __init__(self, tasks: Iterator[Task], count: int) -> None:
        """Take the iterator that makes the tasks, and how many it makes."""
        self._tasks, self._count = tasks, count

    def __next__(self) -> Task:
        """Make the next task."""
        return next(self._tasks)

    def __length_hint__(self) -> int:
        """Return how many tasks there are in all."""
        return self._count


def run_tasks(
    spark: SparkSession | None, work: Callable[[Task], Result], tasks: Iterable[Task], label: str
) -> Iterator[Result]:
    """Run tasks and yield their results in the order of the tasks.

    Args:
        spark: The session that runs the tasks; None for this process, which runs each task when
            its result is asked for.
        work: The function that does a task.
        tasks: The tasks.
        label: The name of the tasks on the progress bar; Spark has a bar of its own.

    Raises:
        KlogError: The error of the first task that failed.
        OSError: The same, without Spark.
    """
    for result in try_tasks(spark, work, tasks, label):
        if isinstance(result, FailedTask):
            raise result.error
        yield result


def try_tasks(
    spark: SparkSession | None, work: Callable[[Task], Result], tasks: Iterable[Task], label: str
) -> Iterator[Result | FailedTask]:
    """Run tasks as `run_tasks`, but yield a `FailedTask` for each task that failed.

    Args:
        spark: As in `run_tasks`.
        work: As in `run_tasks`.
        tasks: As in `run_tasks`.
        label: As in `run_tasks`.

    Raises:
        OptionError: An option is wrong, which fails every task.
    """
    if spark is None:
        results = with_progress_bar(
            (_run_here(work, task) for task in tasks), length_hint(tasks), label
        )
    else:
        results = run_on_spark(spark, work, tasks)
    for result in results:
        if isinstance(result, FailedTask) and isinstance(result.error, OptionError):
            raise result.error
        yield result


def take_results(results: Iterator[Result | FailedTask], count: int) -> list[Result] | FailedTask:
    """Take the next results, which belong together.

    Args:
        results: The results of all tasks, in order.
        count: How many results belong together.

    Returns:
        The results, or the first failure among them.
    """
    group: list[Result] = []
    failure: FailedTask | None = None
    for _ in range(count):
        result = next(results)
        if not isinstance(result, FailedTask):
            group.append(result)
        elif failure is None:
            failure = result
    return group if failure is None else failure


def _run_here(work: Callable[[Task], Result], task: Task) -> Result | FailedTask:
    try:
        return work(task)
    except (KlogError, OSError) as exc:
        return FailedTask(exc)
