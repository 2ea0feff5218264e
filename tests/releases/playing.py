"""Play a scene in a directory of its own: change files and run commands.

The rule: the output of a command is kept without its random parts, the scene's directory and the
attempts in names of segments. A later play begins at the time at which the release wrote its files:
what a command does depends on their age.
"""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from klog.connector import system_clock
from tests.releases import copy
from tests.releases.command import run
from tests.releases.scenes import HERE, Step

_COMMIT_TIME = re.compile(r'"timestampMs": ([0-9]+)')
_ATTEMPT = re.compile(r"(?<=[0-9]{10}-)[0-9a-f]{16}(?=\.)")


def play(scene: Mapping[str, Any], archive: Path, here: Path) -> list[Step]:
    """Play a scene in a new directory; return its steps with the output of commands."""
    here.mkdir()
    for name in scene["copies"]:
        copy(archive / name, here / name)
    return [_played(step, here) for step in scene["steps"]]


@contextmanager
def clock_of(archive: Path) -> Iterator[None]:
    """Let klog's clock go on from the last commit of an archive."""
    commits = archive.glob("*/_klog/topics/*/log/*.json")
    times = [int(time_ms) for path in commits for time_ms in _COMMIT_TIME.findall(path.read_text())]
    ahead_ns = time.time_ns() - max(times) * 1_000_000
    clock = SimpleNamespace(time_ns=lambda: time.time_ns() - ahead_ns)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(system_clock, "time", clock)
        yield


def _played(step: Step, here: Path) -> Step:
    if "run" not in step:
        _change(step, here)
        return step
    result = run(*(_expanded(argument, here) for argument in step["run"]))
    assert "Traceback" not in result.errors, result.errors
    output = [normal(value, here) for value in result.json_lines()]
    return {"run": step["run"], "code": result.code, "output": output}


def _expanded(argument: str, here: Path) -> str:
    if not argument.startswith(HERE) or "*" not in argument:
        return argument.replace(HERE, str(here))
    files: list[str] = []
    for pattern in argument.replace(f"{HERE}/", "").split(","):
        paths = sorted(here.glob(pattern)) if "*" in pattern else [here / pattern]
        assert paths, f"no file matches {pattern}"
        files += map(str, paths)
    return ",".join(files)


def _change(step: Step, here: Path) -> None:
    match step:
        case {"delete": pattern}:
            for path in _matches(here, pattern):
                path.unlink()
        case {"flip": pattern, "position": position}:
            for path in _matches(here, pattern):
                data = bytearray(path.read_bytes())
                data[position] ^= 1
                path.write_bytes(data)
        case {"write": name, "text": text}:
            (here / name).parent.mkdir(parents=True, exist_ok=True)
            (here / name).write_text(text)
        case {"edit": name, "replace": [old, new]}:
            text = (here / name).read_text()
            assert text.count(old) == 1, f"{name} has {text.count(old)} times {old}"
            (here / name).write_text(text.replace(old, new))
        case {"copy": [source, target]}:
            shutil.copy(here / source, here / target)
        case {"link": [name, target]}:
            (here / target).parent.mkdir(parents=True, exist_ok=True)
            shutil.move(here / name, here / target)
            (here / name).symlink_to(here / target)
        case _:
            raise ValueError(f"no such step: {step}")


def _matches(here: Path, pattern: str) -> list[Path]:
    paths = sorted(path for path in here.glob(pattern) if path.stat().st_size)
    assert paths, f"no file matches {pattern}"
    return paths


def normal(value: Any, here: Path) -> Any:
    """Return a JSON value without its random parts: the directory, and attempts in names."""
    if isinstance(value, dict):
        return {normal(key, here): normal(element, here) for key, element in value.items()}
    if isinstance(value, list):
        return [normal(element, here) for element in value]
    if isinstance(value, str):
        return _ATTEMPT.sub("<attempt>", value.replace(str(here), HERE))
    return value
