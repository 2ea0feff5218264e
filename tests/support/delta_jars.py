"""The jars of Delta for a Spark session of a test, without those that Spark brings itself."""

from __future__ import annotations

from pathlib import Path

from tools.jars import jars

_OWN = ("delta-", "unitycatalog-")


def delta_jars() -> list[Path]:
    """Return the jars, fetched the first time."""
    return sorted(path for path in jars("delta").glob("*.jar") if path.name.startswith(_OWN))
