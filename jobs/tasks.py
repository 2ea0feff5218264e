"""Tasks of a job: on Spark, or one after the other in this process.

The rule: a task is a plain value and a function of it, both pickled; it may run more than once, at
the same time too, so whatever it writes has names of its own. It goes by the DataFrame API alone,
which Spark Connect has as well, one task a partition. Tasks are taken as they are needed, so many
at a time, and what comes of them is given before more are taken: neither all tasks nor all that
comes of them are ever held.

What a task raises comes back as a result, of its class and in its words: out of Spark it would come
as a traceback. So a task is tried again where it runs, unless what it met is sure to meet it again.
What the caller said wrongly ends a job at once; whether anything else does, the job decides.

Tasks lie in a DataFrame's column, which Spark may show, so no secret is in it: `storage.*` and URLs
with a password go with the function, which it never shows.
"""

from __future__ import annotations

import io
import pickle
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from operator import length_hint
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from klog import errors
from klog.connector.store.storage import Storage
from klog.errors import (
    CorruptRecordError,
    KlogError,
    OptionError,
    UnsupportedFormatError,
    without_passwords,
)
from klog.jobs.progress import shown

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Task = TypeVar("Task")
Done = TypeVar("Done")

TRIES = 3
PAUSE_SECONDS = 1.0
WAVE_TASKS = 1000
WAVE_BYTES = 128 << 20
"""So many tasks, or bytes of pickled ones, are one Spark job: what the driver holds at a time."""
_SURE = (CorruptRecordError, OptionError, UnsupportedFormatError)
"""What a task that is tried again meets again."""
_SCHEMA = "number int, payload binary"


@dataclass(frozen=True, slots=True)
class Failed:
    """What came of a task that failed."""

    error: KlogError | OSError


class Coming(Iterator[Task]):
    """Tasks that are made when they are asked for, and how many there will be."""

    def __init__(self, tasks: Iterator[Task], count: int) -> None:
        """Take what makes them."""
        self._tasks, self._count = tasks, count

    def __next__(self) -> Task:
        """Make the next one."""
        return next(self._tasks)

    def __length_hint__(self) -> int:
        """Give how many there are in all."""
        return self._count


@dataclass(frozen=True, slots=True)
class _Raised:
    """What a task raised: its class by name, its words and what else it knows."""

    kind: str
    text: str
    known: dict[str, Any]

    def error(self) -> KlogError:
        """Make the error anew; one of the system's is told as klog's."""
        kind = getattr(errors, self.kind, KlogError)
        made: KlogError = kind.__new__(kind)
        KlogError.__init__(made, self.text)
        made.__dict__.update(self.known)
        return made


def run_tasks(
    spark: SparkSession | None, work: Callable[[Task], Done], tasks: Iterable[Task], what: str
) -> Iterator[Done]:
    """Do the tasks and give what came of each, in their order; raises what the first one raised.

    Without Spark each is done when it is asked for, and `what` names them on the progress bar;
    Spark has one of its own.
    """
    for done in try_tasks(spark, work, tasks, what):
        if isinstance(done, Failed):
            raise done.error
        yield done


def try_tasks(
    spark: SparkSession | None, work: Callable[[Task], Done], tasks: Iterable[Task], what: str
) -> Iterator[Done | Failed]:
    """Do the tasks as `run_tasks`, and give of one that failed why.

    Raises `OptionError`: what the caller said fails everywhere.
    """
    if spark is None:
        found = shown((_tried_here(work, task) for task in tasks), length_hint(tasks), what)
    else:
        found = _on_spark(spark, work, tasks)
    for done in found:
        if isinstance(done, Failed) and isinstance(done.error, OptionError):
            raise done.error
        yield done


def together(found: Iterator[Done | Failed], count: int) -> list[Done] | Failed:
    """Take the next results, which stand or fall together: the first failure if there is one."""
    whole: list[Done] = []
    failed: Failed | None = None
    for _ in range(count):
        done = next(found)
        if not isinstance(done, Failed):
            whole.append(done)
        elif failed is None:
            failed = done
    return whole if failed is None else failed


def _tried_here(work: Callable[[Task], Done], task: Task) -> Done | Failed:
    try:
        return work(task)
    except (KlogError, OSError) as exc:
        return Failed(exc)


def _on_spark(
    spark: SparkSession, work: Callable[[Task], Done], tasks: Iterable[Task]
) -> Iterator[Done | Failed]:
    from pyspark.sql.functions import udf

    for wave in _waves(tasks):
        apart = wave.apart

        def each(payload: bytes, apart: list[Any] = apart) -> bytes:
            return pickle.dumps(_tried(work, _unpickled(payload, apart)))

        # Not `mapInArrow`, and no table of Arrow's: PySpark has these only where pandas is.
        done = udf(each, "binary", useArrow=False).asNondeterministic()
        rows = list(enumerate(wave.payloads))
        frame = spark.createDataFrame(rows, _SCHEMA).repartitionById(len(rows), "number")
        found: dict[int, bytes] = dict(iter(frame.select("number", done("payload")).collect()))
        for number in range(len(rows)):
            one = pickle.loads(found.pop(number))  # noqa: S301 - our own
            yield Failed(one.error()) if isinstance(one, _Raised) else one


def _tried(work: Callable[[Task], Done], task: Task) -> Done | _Raised:
    """Do a task, again if it may then end otherwise."""
    tries = 1
    while True:
        try:
            return work(task)
        except (KlogError, OSError) as exc:
            if tries >= TRIES or isinstance(exc, _SURE):
                known = dict(vars(exc)) if isinstance(exc, KlogError) else {}
                return _Raised(type(exc).__name__, str(exc), known)
        time.sleep(PAUSE_SECONDS * tries)
        tries += 1


class _Wave(Generic[Task]):
    """Pickled tasks, and apart from them what Spark must not show, by number."""

    def __init__(self) -> None:
        self.payloads: list[bytes] = []
        self.apart: list[Any] = []
        self._bytes = 0

    def add(self, task: Task) -> None:
        """Take one more task."""
        buffer = io.BytesIO()
        _Pickler(buffer, self.apart).dump(task)
        self.payloads.append(buffer.getvalue())
        self._bytes += len(self.payloads[-1])

    @property
    def is_full(self) -> bool:
        """Tell whether it has as much as one may have."""
        return len(self.payloads) >= WAVE_TASKS or self._bytes >= WAVE_BYTES


def _waves(tasks: Iterable[Task]) -> Iterator[_Wave[Task]]:
    wave = _Wave[Task]()
    for task in tasks:
        wave.add(task)
        if wave.is_full:
            yield wave
            wave = _Wave()
    if wave.payloads:
        yield wave


class _Pickler(pickle.Pickler):
    """Pickles a task with numbers in the place of what may be secret."""

    def __init__(self, to: io.BytesIO, apart: list[Any]) -> None:
        super().__init__(to)
        self._apart = apart

    def persistent_id(self, value: Any) -> int | None:
        """Give the number of what goes apart; None for all else."""
        if not (type(value) is Storage or (type(value) is str and _has_password(value))):
            return None
        if value not in self._apart:
            self._apart.append(value)
        return self._apart.index(value)


class _Unpickler(pickle.Unpickler):
    """Puts back what `_Pickler` took out."""

    def __init__(self, payload: io.BytesIO, apart: list[Any]) -> None:
        super().__init__(payload)
        self._apart = apart

    def persistent_load(self, number: Any) -> Any:
        """Give what has a number."""
        return self._apart[number]


def _unpickled(payload: bytes, apart: list[Any]) -> Any:
    return _Unpickler(io.BytesIO(payload), apart).load()


def _has_password(text: str) -> bool:
    return without_passwords(text) != text
