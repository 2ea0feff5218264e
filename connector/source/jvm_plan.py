"""The plan of a read for the JVM shim: tasks, and whether the shim can read them.

The rule: Python alone plans, and says what the shim cannot read: slices whose markers lie in
another file, files whose identity only Python knows, and logs that a running broker compacts, whose
files change while they are read. If it cannot read one slice, Python reads all tasks, as Spark
refuses rows and columns in one scan. The plan travels as Spark's partitions: the first one is the
summary, each other one is a task, which Python could read, too.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping, Sequence
from itertools import compress, islice, repeat
from types import MappingProxyType
from typing import Any, TypedDict

from klog.connector.root_urls import is_on_local_disk
from klog.connector.source.load_plan import UNKNOWN_SIZE, LogSize
from klog.connector.source.slice_contract import EACH, TaskDict, slice_count

_NO_AGGREGATES: Mapping[str, int | None] = MappingProxyType({})


class PlanSummary(TypedDict):
    """What the shim is told about a plan; it travels as a plain dict.

    Attributes:
        format: 2.
        pythonReason: Why Python has to read; empty if the shim can.
        files: By root a file that is read: the shim finds out whether its JVM reaches it.
        arePathsAscii: Whether every Java has names for the files.
        segmentCount: How many segments the tasks read.
        sizeBytes: The bytes of them that are read.
        totalSegmentCount: How many segments the partitions have that the read names, -1 if that is
            not known.
        totalSizeBytes: The bytes of those segments; -1 if that is not known.
        offsetCount: The offsets that are wanted, which are at least as many as the records.
        taskPartitions: The partition number of each task; empty if a task reads several.
        aggregates: Those that commits know, if they were asked for, by name
            (`commit_aggregates`).
    """

    format: int
    pythonReason: str
    files: dict[str, str]
    arePathsAscii: bool
    segmentCount: int
    sizeBytes: int
    totalSegmentCount: int
    totalSizeBytes: int
    offsetCount: int
    taskPartitions: list[int]
    aggregates: Mapping[str, int | None]


def summarise(
    tasks: Sequence[TaskDict],
    *,
    python_reason: str = "",
    total_size: LogSize = UNKNOWN_SIZE,
    aggregates: Mapping[str, int | None] = _NO_AGGREGATES,
) -> PlanSummary:
    """Return what the shim is told about tasks.

    Args:
        tasks: The tasks.
        python_reason: Why Python has to read, whatever the tasks are; empty for no reason.
        total_size: The size of the partitions that the read names.
        aggregates: See `PlanSummary`.
    """
    runs = [run for task in tasks for run in task]
    size = _size_of(runs)
    return {
        "format": 2,
        "pythonReason": python_reason or next(filter(None, map(_python_reason, runs)), ""),
        "files": {run["root"]: _values(run, "path")[0] for run in runs},
        "arePathsAscii": all(
            path.isascii() for run in runs for path in (run["root"], *_values(run, "path"))
        ),
        "segmentCount": size.segment_count,
        "sizeBytes": size.size_bytes,
        "totalSegmentCount": total_size.segment_count,
        "totalSizeBytes": total_size.size_bytes,
        "offsetCount": sum(_difference(run, "endOffset", "startOffset") for run in runs),
        "taskPartitions": _task_partitions(tasks),
        "aggregates": dict(aggregates),
    }


def _task_partitions(tasks: Sequence[TaskDict]) -> list[int]:
    numbers = [{number for run in task for number in _values(run, "partition")} for task in tasks]
    return [number for (number,) in numbers] if all(len(n) == 1 for n in numbers) else []


def _size_of(runs: Sequence[Mapping[str, Any]]) -> LogSize:
    """Return the size of what slices read.

    Slices of one segment follow each other, and their bytes are neighbours or overlap.

    Args:
        runs: The slices.
    """
    paths, starts, ends = (
        [value for run in runs for value in _all_values(run, name)]
        for name in ("path", "startPosition", "endPosition")
    )
    # No loop: there may be a million segments.
    is_same = list(map(operator.eq, paths, islice(paths, 1, None)))
    overlaps = compress(map(operator.sub, ends, islice(starts, 1, None)), is_same)
    return LogSize(len(paths) - sum(is_same), sum(ends) - sum(starts) - sum(overlaps))


def _python_reason(run: Mapping[str, Any]) -> str:
    """Return why the shim cannot read a slice or a run; empty if it can."""
    name = f"{run['topic']}-{run['partition']}"
    if not run["isCommitted"] and not is_on_local_disk(run["root"]):
        return f"{name}: only Python knows whether a broker's file on this store has changed"
    if not all(_values(run, "areMarkersInFile")):
        return f"{name}: transactions may end in a later segment"
    if not all(_is_text(path) for path in (run["root"], *_values(run, "path"))):
        return f"{name}: Java has no name for a path that is not UTF-8"
    return ""


def _is_text(path: str) -> bool:
    """Return whether a path is UTF-8; the other bytes of a path are surrogates."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def _difference(run: Mapping[str, Any], end: str, start: str) -> int:
    """Return the sum of the differences of two fields over all slices."""
    count = slice_count([run])
    ends, starts = _values(run, end), _values(run, start)
    total: int = sum(ends) * (count // len(ends)) - sum(starts) * (count // len(starts))
    return total


def _all_values(run: Mapping[str, Any], name: str) -> Iterable[Any]:
    """Return the values of a field, one for each slice."""
    values = _values(run, name)
    return values if len(values) > 1 else repeat(values[0], slice_count([run]))


def _values(run: Mapping[str, Any], name: str) -> Sequence[Any]:
    """Return the values of a field in a slice or a run; one value if all slices have the same."""
    each = run.get(EACH)
    if each is None or name not in each:
        return (run[name],)
    values: Sequence[Any] = each[name]
    return values
