"""The plan of a read for the JVM shim: tasks, and whether the shim can read them.

The rule: Python alone plans, and says what the shim cannot read: slices whose markers lie in
another file, files whose identity only Python knows, and logs that a running broker compacts, whose
files change while they are read. If it cannot read one slice, Python reads all tasks, as Spark
refuses rows and columns in one scan. The plan travels as Spark's partitions: the first one is the
summary, each other one is a task, which Python could read, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

from klog.connector.root_urls import is_on_local_disk, url_scheme
from klog.connector.source.slice_contract import EACH, TaskDict, slice_count


class PlanSummary(TypedDict):
    """What the shim is told about a plan; it travels as a plain dict.

    Attributes:
        format: 1.
        pythonReason: Why Python has to read; empty if the shim can.
        schemes: The schemes of the roots: the shim knows which of them its JVM reads.
        arePathsAscii: Whether every Java has names for the files.
        sliceCount: How many slices the tasks have.
        sizeBytes: The bytes of their byte ranges.
        offsetCount: The offsets that are wanted, which are at least as many as the records.
        recordCount: How many records there are, if that was asked for and commits say it; else -1.
    """

    format: int
    pythonReason: str
    schemes: list[str]
    arePathsAscii: bool
    sliceCount: int
    sizeBytes: int
    offsetCount: int
    recordCount: int


def summarise(
    tasks: Sequence[TaskDict], record_count: int = -1, python_reason: str = ""
) -> PlanSummary:
    """Return what the shim is told about tasks.

    Args:
        tasks: The tasks.
        record_count: See `PlanSummary`.
        python_reason: Why Python has to read, whatever the tasks are; empty for no reason.
    """
    runs = [run for task in tasks for run in task]
    return {
        "format": 1,
        "pythonReason": python_reason or next(filter(None, map(_python_reason, runs)), ""),
        "schemes": sorted({url_scheme(run["root"]) for run in runs}),
        "arePathsAscii": all(
            path.isascii() for run in runs for path in (run["root"], *_values(run, "path"))
        ),
        "sliceCount": sum(map(slice_count, tasks)),
        "sizeBytes": sum(_difference(run, "endPosition", "startPosition") for run in runs),
        "offsetCount": sum(_difference(run, "endOffset", "startOffset") for run in runs),
        "recordCount": record_count,
    }


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


def _values(run: Mapping[str, Any], name: str) -> Sequence[Any]:
    """Return the values of a field in a slice or a run; one value if all slices have the same."""
    each = run.get(EACH)
    if each is None or name not in each:
        return (run[name],)
    values: Sequence[Any] = each[name]
    return values
