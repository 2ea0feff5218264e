"""The golden slices that the JVM engine reads, as they are, copied and damaged."""

from __future__ import annotations

import json
import random
import shutil
from functools import cache
from pathlib import Path
from typing import Any

from tests.contracts import slice_runner
from tests.fuzz.seal import sealed_log
from tests.support.project import PROJECT

PATHS = sorted(slice_runner.FOLDER.glob("*.json"))


@cache
def read(path: Path) -> dict[str, Any]:
    case: dict[str, Any] = json.loads(path.read_text())
    return case


def absolute(values: dict[str, Any]) -> dict[str, Any]:
    """Return a slice with paths that any working directory finds."""
    paths = {name: str(PROJECT / values[name]) for name in ("root", "path")}
    return (
        values | paths | {"indexPath": values["indexPath"] and str(PROJECT / values["indexPath"])}
    )


def tasks(case: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        slice_runner.with_identity(absolute(values)) if "each" not in values else values
        for values in case["task"]
    ]


GOLDEN = [path for path in PATHS if not read(path)["isPythonOnly"] and "run" not in path.stem]
READABLE = [path for path in GOLDEN if "rows" in read(path)]


def copied(values: dict[str, Any], root: Path) -> Path:
    """Copy the directory of a slice to a root; return its segment there."""
    folder = root / "t-0"
    shutil.copytree(Path(values["path"]).parent, folder)
    return folder / Path(values["path"]).name


def whole_slice(values: dict[str, Any], path: Path) -> dict[str, Any]:
    """Return a slice that wants all records of a segment, whatever its bytes are now."""
    size = path.stat().st_size
    return values | {
        "root": str(path.parent.parent), "path": str(path), "crc32c": -1, "indexPath": "",
        "fileSizeBytes": size if values["isCommitted"] else -1,
        "startPosition": 0, "endPosition": size, "segmentSizeBytes": size,
        "firstOffset": -1, "startOffset": 0, "endOffset": 1 << 40, "limitOffset": 1 << 40,
    }  # fmt: skip


def damaged(data: bytes, source: random.Random) -> bytes:
    """Return bytes with a few changed; every second time with right checksums."""
    out = bytearray(data)
    for _ in range(source.choice((1, 1, 2, 5))):
        at = source.randrange(len(out))
        kind = source.random()
        if kind < 0.5:
            out[at] ^= 1 << source.randrange(8)
        elif kind < 0.8:
            out[at] = source.choice((0, 1, 0x7F, 0x80, 0xFF))
        elif kind < 0.9:
            del out[at : at + source.randrange(1, 9)]
        else:
            out[at:at] = source.randbytes(source.randrange(1, 9))
    return sealed_log(bytes(out)) if source.random() < 0.6 else bytes(out)
