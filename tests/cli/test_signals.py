"""SIGINT at any moment of a verb, counted in calls: exit code 130 and nothing on stderr."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

import klog
from tests.support.waiting import TIMEOUT_SECONDS

KLOG = Path(sys.executable).with_name("klog")
SIGNALS_AT_CALL = """\
import os, signal, sys

left = int(os.environ["SIGINT_AT_CALL"])
started = False

def count(frame, event, arg):
    global left, started
    started = started or (event == "return" and frame.f_code.co_name == "end_on_sigint")
    left -= started and event == "call"
    if not left:
        sys.setprofile(None)
        open(os.environ["HIT"], "w").close()
        os.kill(os.getpid(), signal.SIGINT)

sys.setprofile(count)
"""
CALLS = [40, 300, 2_000, 6_000, 12_000, 20_000, 28_000, 40_000]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = str(tmp_path_factory.mktemp("signals") / "root")
    log = klog.open(path)
    log.create_topic("a", partitions=1, config={"cleanup.policy": "compact"})
    for _ in range(3):
        log.append("a", pa.table({"key": ["k"] * 10, "value": ["v"] * 10}))
    return path


def run(arguments: list[str], root: str, tmp_path: Path, calls: int) -> tuple[bool, int, bytes]:
    """Run the command; return whether it got the signal, its exit code and its stderr."""
    (tmp_path / "sitecustomize.py").write_text(SIGNALS_AT_CALL)
    hit = tmp_path / "hit"
    environment = {"PYTHONPATH": str(tmp_path), "SIGINT_AT_CALL": str(calls), "HIT": str(hit)}
    done = subprocess.run(
        [sys.executable, KLOG, *arguments, "--root", root],
        env={**os.environ, **environment},
        capture_output=True,
        timeout=TIMEOUT_SECONDS,
        check=False,
    )
    return hit.exists(), done.returncode, done.stderr


@pytest.mark.parametrize("calls", CALLS)
@pytest.mark.parametrize(
    "verb", ["topics list", "consume -t a", "compact", "topics create -t new --if-not-exists"]
)
def test_a_signal_at_a_call(verb: str, calls: int, root: str, tmp_path: Path) -> None:
    is_hit, code, errors = run(verb.split(), root, tmp_path, calls)
    assert (code, errors) == (130 if is_hit else 0, b"")


@pytest.mark.parametrize("verb", ["topics list", "consume -t a"])
def test_the_moments_are_in_the_run(verb: str, root: str, tmp_path: Path) -> None:
    assert run(verb.split(), root, tmp_path, CALLS[3])[0]


def test_a_signal_at_the_end_of_the_interpreter(root: str, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import atexit, os, signal\natexit.register(os.kill, os.getpid(), signal.SIGINT)\n"
    )
    done = subprocess.run(
        [sys.executable, KLOG, "topics", "list", "--root", root],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        timeout=TIMEOUT_SECONDS,
        check=False,
    )
    assert done.stderr == b""
    assert done.returncode == 130
