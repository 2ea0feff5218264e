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
class CommandResult:
    """The exit code and the output of a command."""

    code: int
    out: bytes
    err: str


Klog: TypeAlias = Callable[..., CommandResult]


@pytest.fixture
def klog(capsysbinary: pytest.CaptureFixture[bytes]) -> Klog:
    def run(*arguments: str) -> CommandResult:
        try:
            code = main(arguments)
        except SystemExit as exc:
            code = int(exc.code or 0)
        captured = capsysbinary.readouterr()
        return CommandResult(code, captured.out, captured.err.decode())

    return run


@pytest.fixture
def on_scene(klog: Klog) -> Klog:
    """Return a function that runs `klog VERB... --root <log dirs>` on the named scene."""

    def run(name: str, *arguments: str) -> CommandResult:
        roots = [part for path in scene(name).log_dirs for part in ("--root", str(path))]
        return klog(*arguments, *roots)

    return run


@pytest.fixture
def on_root(klog: Klog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Root:
    """Return a klog root that does not exist yet; its clock is at 2023-11-14T22:13:20Z."""
    clock = Clock()
    monkeypatch.setattr(klog_root, "now_ms", clock)
    return Root(klog, tmp_path / "root", clock)
