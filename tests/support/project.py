"""Where the project's own files are, for tests that read or run them."""

from __future__ import annotations

from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
"""The root of the checkout."""
