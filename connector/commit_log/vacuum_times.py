"""How long vacuum waits for writers; for readers the topic's configs say it (`past_retention`)."""

from __future__ import annotations

WRITER_GRACE_MS = 24 * 3_600_000
"""The grace period of writers: how long one may take from its first file to its commit."""
