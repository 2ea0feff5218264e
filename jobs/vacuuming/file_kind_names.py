"""The kinds of files that vacuum deletes, as its help and its report call them."""

from __future__ import annotations

TEMPORARY = "leftover"  # codespell:ignore leftover
