"""The columns of a read: those of Spark's Kafka connector, in its order."""

from __future__ import annotations

from collections.abc import Iterable

COLUMNS = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType", "headers")
DEFAULT_COLUMNS = COLUMNS[:-1]
"""The columns without `includeHeaders`."""


def known_columns(names: Iterable[str]) -> tuple[str, ...]:
    """Return columns by their exact names, in the order given.

    Args:
        names: The names, in any case.

    Raises:
        ValueError: There is no such column.
    """
    by_lower = {column.lower(): column for column in COLUMNS}
    columns = []
    for name in names:
        if name.lower() not in by_lower:
            raise ValueError(f"there is no column {name!r}")
        columns.append(by_lower[name.lower()])
    return tuple(columns)
