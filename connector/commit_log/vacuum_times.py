"""How long vacuum keeps what readers, writers and the history may still need."""

from __future__ import annotations

READER_GRACE_MS = 24 * 3_600_000
"""The grace period: how long readers and writers may take."""
LOG_RETENTION_MS = 30 * 24 * 3_600_000
"""How long commits stay for the history."""
