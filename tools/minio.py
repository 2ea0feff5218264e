"""Build MinIO, the S3 server with real policies, by Go alone.

The rule: the binary is complete or absent. Go builds it in a temporary folder next to the final
one, with caches of its own (2 GB) that are removed with the folder, and it is renamed into place.
It lies at
`${KLOG_CACHE:-${XDG_CACHE_HOME:-~/.cache}/klog}/bin/minio-<version>-unoptimized`; a second call
finds it there. It is a tool of the tests (AGPL), and never a part of klog. The first test on MinIO
builds it, which takes 3 minutes on two cores.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from tools.jars import cache

VERSION = "v0.0.0-20260212201848-7aac2a2c5b7c"
"""Of 12 February 2026, as Go's module proxy has it."""
BUILD_TIMEOUT_SECONDS = 1800


class MinioError(Exception):
    """MinIO cannot be built; the message says what to do next."""


def has_minio() -> bool:
    """Return whether MinIO is built or can be."""
    return _binary().exists() or shutil.which("go") is not None


def minio() -> Path:
    """Return the binary, building it the first time. Raises MinioError without Go."""
    binary = _binary()
    if not binary.exists():
        _build(binary)
    return binary


def _binary() -> Path:
    return cache() / "bin" / f"minio-{VERSION}-unoptimized"


def _build(binary: Path) -> None:
    go = shutil.which("go")
    if go is None:
        raise MinioError("no Go on PATH, and MinIO comes as its source only: install Go")
    binary.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="minio.", dir=binary.parent) as temporary:
        work = Path(temporary)
        environment = {
            **os.environ,
            "GOBIN": str(work / "bin"),
            "GOCACHE": str(work / "cache"),
            "GOMODCACHE": str(work / "modules"),
            "GOFLAGS": "-modcacherw",  # else the folder cannot be removed
            "CGO_ENABLED": "0",
        }
        command = [
            go,
            "install",
            "-trimpath",
            "-ldflags=-s -w",
            "-gcflags=all=-N -l -dwarf=false",  # to optimize takes a third of the CPU
            f"github.com/minio/minio@{VERSION}",
        ]
        try:
            done = subprocess.run(  # noqa: S603
                command,
                capture_output=True,
                text=True,
                env=environment,
                timeout=BUILD_TIMEOUT_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired as exc:
            raise MinioError(f"Go took over {BUILD_TIMEOUT_SECONDS} s to build MinIO") from exc
        if done.returncode != 0:
            raise MinioError(f"Go could not build MinIO; is its proxy up?\n{done.stderr[-2000:]}")
        (work / "bin" / "minio").replace(binary)
