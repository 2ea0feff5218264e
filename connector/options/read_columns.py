"""The columns of a read: those of Spark's Kafka connector, in its order."""

from __future__ import annotations

COLUMNS = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType", "headers")
DEFAULT_COLUMNS = COLUMNS[:-1]
"""The columns without `includeHeaders`."""
