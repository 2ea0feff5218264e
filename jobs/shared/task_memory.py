"""The memory that a task of a job may take."""

from __future__ import annotations

MAP_BYTES = 128 << 20
"""The map of keys of one task: a broker's `log.cleaner.dedupe.buffer.size`."""
