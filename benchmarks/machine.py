"""Describe the machine of the figures.

The rule: everything that changes a figure, and nothing that names a person, a host or a path.
"""

from __future__ import annotations

import os
import platform
from importlib.metadata import version
from pathlib import Path

import psutil

LIBRARIES = (
    "pyarrow", "numpy", "google-crc32c", "lz4", "zstandard", "cramjam",
    "zlib-ng", "pyspark", "kafka-python", "crc32c", "aiokafka",
)  # fmt: skip


def describe() -> dict[str, str]:
    """Return the facts in the order to print them."""
    return {
        "processor": f"{_processor()}, {len(os.sched_getaffinity(0))} cores for this process",
        "memory": f"{psutil.virtual_memory().total / (1 << 30):.0f} GiB",
        "system": f"{platform.system()} {platform.machine()}",
        "Python": platform.python_version(),
        "libraries": ", ".join(f"{name} {version(name)}" for name in LIBRARIES),
    }


def load() -> str:
    """Return the load average of 1, 5 and 15 minutes; a figure above the cores is noise."""
    return ", ".join(f"{average:.1f}" for average in os.getloadavg())


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor()
