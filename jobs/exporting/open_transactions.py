"""What `export-log` does with transactions that have no marker."""

from __future__ import annotations

END = "end"
"""The value of `open_transactions` that writes their markers after the log."""
