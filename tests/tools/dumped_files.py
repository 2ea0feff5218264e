"""Helpers of the tests of `klog dump`: files to dump, and the objects in the output."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.support.batch_bytes import plain
from tests.support.klog_command import CommandResult, Klog

NAME = f"{0:020}"
PLAIN_BYTES = len(plain(0))
LOG = plain(0) + plain(1, [b"a", b"b"], timestamp=2000) + plain(3, timestamp=1500)
"""Three batches; the second begins at `SECOND`, the third at `THIRD`."""
SECOND, THIRD = PLAIN_BYTES, PLAIN_BYTES + len(plain(1, [b"a", b"b"]))


def write_file(directory: Path, data: bytes, suffix: str = "log", name: str = NAME) -> Path:
    path = directory / f"{name}.{suffix}"
    path.write_bytes(data)
    return path


def dump(klog: Klog, *files: Path, flags: tuple[str, ...] = ()) -> CommandResult:
    return klog("dump", "--files", ",".join(map(str, files)), *flags)


def objects(result: CommandResult) -> list[dict[str, Any]]:
    return [json.loads(line) for line in result.out.splitlines()]


def findings(result: CommandResult) -> list[tuple[str, str]]:
    return [(line["what"], line["text"]) for line in objects(result) if line["kind"] == "finding"]
