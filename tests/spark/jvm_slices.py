"""Run a golden case of the slice through the JVM engine, in the Java process of a Spark session.

The rule: as `slice_runner`, which runs it through Python. No job runs: the classes of klog's jar
are called from Python, and a column crosses as one text.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from tests.contracts.slice_runner import row_of

_ERRORS = {
    "klog.slice.CorruptFileError": "corrupt",
    "klog.slice.MissingFileError": "corrupt",
    "klog.slice.SliceChangedError": "changed",
    "klog.slice.UnsupportedFormatError": "format",
}

_ANY_TIME = -(1 << 63)


class JvmSlices:
    """Reads tasks with the classes of klog's jar."""

    def __init__(self, spark: SparkSession) -> None:
        """Take the session whose Java process has the jar."""
        self._jvm: Any = spark._jvm
        assert self._jvm is not None
        self._wanted = self._jvm.klog.logformat.WantedColumns(True, True, True, True, True, True)
        self._stores = self._jvm.klog.store.SegmentStores()

    def run(
        self, task: Sequence[Mapping[str, Any]], start_timestamp_ms: int = _ANY_TIME
    ) -> dict[str, Any]:
        """Read a task; return its rows, or the name of its error, as a golden case has them.

        Rows before a time may be left out.
        """
        try:
            return {"rows": list(self._rows(task, start_timestamp_ms))}
        except Py4JJavaError as exc:
            name = exc.java_exception.getClass().getName()
            if name not in _ERRORS:
                raise
            return {"error": _ERRORS[name]}

    def _rows(
        self, task: Sequence[Mapping[str, Any]], start_timestamp_ms: int
    ) -> Iterator[dict[str, Any]]:
        values = self._jvm.net.razorvine.pickle.Unpickler().loads(pickle.dumps(list(task), 3))
        slices = self._jvm.klog.slice.Slice.expandTask(values)
        reader = self._jvm.klog.slice.TaskReader(
            slices, self._wanted, self._stores, start_timestamp_ms
        )
        try:
            while reader.next():
                yield from self._batch(reader.rows())
        finally:
            reader.close()

    def _batch(self, rows: Any) -> Iterator[dict[str, Any]]:
        count, data, headers = rows.count(), bytes(rows.data()), rows.headers()
        columns = [
            self._numbers(column, count)
            for column in (
                rows.offsets(), rows.timestampsUs(), rows.timestampTypes(),
                rows.keys().starts(), rows.keys().lengths(),
                rows.values().starts(), rows.values().lengths(),
                rows.firstHeaders(), rows.headerCounts(),
            )
        ]  # fmt: skip
        names = (headers.keys(), headers.values())
        fields = [
            self._numbers(part, headers.count())
            for each in names
            for part in (each.starts(), each.lengths())
        ]

        def content(start: int, length: int) -> bytes | None:
            return None if length < 0 else data[start : start + length]

        for offset, time_us, kind, key, key_size, value, value_size, first, number in zip(
            *columns, strict=True
        ):
            pairs = [
                (str(content(*at[:2]), "utf-8"), content(*at[2:]))  # type: ignore[arg-type]
                for at in zip(*(field[first : first + number] for field in fields), strict=True)
            ]
            yield row_of(
                offset, time_us // 1000, kind, content(key, key_size), content(value, value_size),
                pairs,
            )  # fmt: skip

    def _numbers(self, array: Any, count: int) -> list[int]:
        """Return the first numbers of an array, which may have room for many more."""
        arrays = self._jvm.java.util.Arrays
        text = arrays.toString(arrays.copyOf(array, count))[1:-1]
        return [int(number) for number in text.split(", ")] if text else []
