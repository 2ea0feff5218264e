"""Fixtures that run the command `klog` in this process and return its output and exit code."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import pytest

from klog.cli import main
from klog.connector.commit_log import klog_root
from tests.connector.commit_log.memory_logs import Clock
from tests.corpus import scene
from tests.support.command_root import Root


@dataclass(frozen=True, slots=True)
class Said:
    code: int
    out: bytes
    err: str


Klog: TypeAlias = Callable[..., Said]


@pytest.fixture
def klog(capsysbinary: pytest.CaptureFixture[bytes]) -> Klog:
    def run(*arguments: str) -> Said:
        try:
            code = main(arguments)
        except SystemExit as exc:
            code = int(exc.code or 0)
        captured = capsysbinary.readouterr()
        return Said(code, captured.out, captured.err.decode())

    return run


@pytest.fixture
def on_scene(klog: Klog) -> Klog:
    """Run `klog VERB... --root <the log dirs of a scene>`: the scene's name comes first."""

    def run(name: str, *arguments: str) -> Said:
        roots = [part for path in scene(name).log_dirs for part in ("--root", str(path))]
        return klog(*arguments, *roots)

    return run


@pytest.fixture
def on_root(klog: Klog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Root:
    """Give a klog root that is not made yet; its clock stands at 2023-11-14T22:13:20Z."""
    clock = Clock()
    monkeypatch.setattr(klog_root, "now_ms", clock)
    return Root(klog, tmp_path / "root", clock)
