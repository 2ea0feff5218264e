"""Tasks on Spark: each is a row of a DataFrame, in a partition of its own.

The rule: only the DataFrame API is used, which Spark Connect has too. At most `WAVE_TASKS` tasks,
or `WAVE_BYTES` of pickled ones, are one Spark job, which bounds what the driver has in memory.

Spark may show a DataFrame's rows, so no secret is in them: `storage.*` and URLs with a password
travel with the function, which Spark never shows.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from klog.connector.options.storage_options import StorageOptions
from klog.jobs.shared.task_retries import FailedTask, RaisedError, run_with_retries
from klog.url_secrets import without_passwords

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Task = TypeVar("Task")
Result = TypeVar("Result")

WAVE_TASKS = 1000
WAVE_BYTES = 128 << 20
_SCHEMA = "number int, payload binary"


def run_on_spark(
    spark: SparkSession, work: Callable[[Task], Result], tasks: Iterable[Task]
) -> Iterator[Result | FailedTask]:
    """Run tasks on Spark and yield their results, in the order of the tasks.

    Args:
        spark: The session.
        work: The function that does a task; Spark pickles it.
        tasks: The tasks, made when a Spark job needs them.
    """
    from pyspark.sql.functions import udf

    for wave in task_waves(tasks):
        secrets = wave.secrets

        def run_pickled(payload: bytes, secrets: list[Any] = secrets) -> bytes:
            return pickle.dumps(run_with_retries(work, unpickle_task(payload, secrets)))

        # Not `mapInArrow`, and no Arrow table: PySpark has these only where pandas is.
        run_udf = udf(run_pickled, "binary", useArrow=False).asNondeterministic()
        rows = list(enumerate(wave.payloads))
        frame = spark.createDataFrame(rows, _SCHEMA).repartitionById(len(rows), "number")
        pickled: dict[int, bytes] = dict(iter(frame.select("number", run_udf("payload")).collect()))
        for number in range(len(rows)):
            result = pickle.loads(pickled.pop(number))  # noqa: S301 - pickled by our own task
            yield FailedTask(result.to_error()) if isinstance(result, RaisedError) else result


class TaskWave(Generic[Task]):
    """The pickled tasks of one Spark job, and by number the secrets taken out of them."""

    def __init__(self) -> None:
        """Begin with no task."""
        self.payloads: list[bytes] = []
        self.secrets: list[Any] = []
        self._size_bytes = 0

    def add(self, task: Task) -> None:
        """Pickle a task.

        Args:
            task: The task.
        """
        buffer = io.BytesIO()
        _Pickler(buffer, self.secrets).dump(task)
        self.payloads.append(buffer.getvalue())
        self._size_bytes += len(self.payloads[-1])

    @property
    def is_full(self) -> bool:
        """Return whether no further task belongs in this Spark job."""
        return len(self.payloads) >= WAVE_TASKS or self._size_bytes >= WAVE_BYTES


def task_waves(tasks: Iterable[Task]) -> Iterator[TaskWave[Task]]:
    """Yield tasks in waves, each made when the one before it is done.

    Args:
        tasks: The tasks in order.
    """
    wave = TaskWave[Task]()
    for task in tasks:
        wave.add(task)
        if wave.is_full:
            yield wave
            wave = TaskWave()
    if wave.payloads:
        yield wave


def unpickle_task(payload: bytes, secrets: list[Any]) -> Any:
    """Return a task with its secrets in place.

    Args:
        payload: The pickled task.
        secrets: The secrets of its wave, by number.
    """
    return _Unpickler(io.BytesIO(payload), secrets).load()


class _Pickler(pickle.Pickler):
    """Pickles a task with numbers in the place of values that may be secret."""

    def __init__(self, buffer: io.BytesIO, secrets: list[Any]) -> None:
        super().__init__(buffer)
        self._secrets = secrets

    def persistent_id(self, value: Any) -> int | None:
        """Return the number of a secret; None for any other value."""
        if not (type(value) is StorageOptions or (type(value) is str and _has_password(value))):
            return None
        if value not in self._secrets:
            self._secrets.append(value)
        return self._secrets.index(value)


class _Unpickler(pickle.Unpickler):
    """Puts secrets back in the place of their numbers."""

    def __init__(self, buffer: io.BytesIO, secrets: list[Any]) -> None:
        super().__init__(buffer)
        self._secrets = secrets

    def persistent_load(self, number: Any) -> Any:
        """Return the secret with this number."""
        return self._secrets[number]


def _has_password(text: str) -> bool:
    return without_passwords(text) != text
