"""Files on storage of each release of klog, read and continued by the current code.

The rule: the format on storage is a promise (docs/commit-protocol.md, Versions). `archives/` has
one archive for each release, written by that release and never again: roots, checkpoints of
streams, the records that a reader got, and the JSON reports of its commands. Tests read them,
continue with them, and run the commands again. This code uses only public names that each version
has: `klog.open`, the command `klog`, Spark's format `klog`. `make.py` says how a release adds its
archive.
"""

from __future__ import annotations

import json
import shutil
import tarfile
from functools import cache
from pathlib import Path
from typing import Any

ARCHIVES = Path(__file__).parent / "archives"
EXPECTED = "expected.json"
REPORTS = "reports.json"
STREAMS = "streams"


@cache
def versions() -> tuple[str, ...]:
    """Return the versions that have an archive."""
    names = (path.name for path in ARCHIVES.glob("klog-*.tar.gz"))
    return tuple(sorted(name[len("klog-") : -len(".tar.gz")] for name in names))


def unpack(version: str, target: Path) -> Path:
    """Unpack the archive of a version to the new folder `target`."""
    with tarfile.open(ARCHIVES / f"klog-{version}.tar.gz") as archive:
        archive.extractall(target, filter="data")
    return target


def read_json(path: Path) -> Any:
    """Return the value of a JSON file."""
    return json.loads(path.read_text())


def copy(source: Path, target: Path) -> Path:
    """Copy a directory with its symbolic links."""
    shutil.copytree(source, target, symlinks=True)
    return target
