"""A step's CPU time is that of all its processes, also of those that outlive it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.waiting import TIMEOUT_SECONDS, wait_until

BUSY_SECONDS = 1.0
BUSY = f"import time\nwhile time.process_time() < {BUSY_SECONDS}: pass"


def cpu_seconds_of(*command: str) -> float:
    process = subprocess.Popen([sys.executable, "-m", "tools.step_process", *command])
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return usage.ru_utime + usage.ru_stime


def test_process_that_outlives_the_command_counts(tmp_path: Path) -> None:
    script = tmp_path / "busy.py"
    script.write_text(BUSY)
    in_background = f"{sys.executable} {script} >/dev/null 2>&1 &"

    assert cpu_seconds_of("sh", "-c", in_background) >= BUSY_SECONDS


@pytest.mark.parametrize(
    ("command", "code"), [("exit 0", 0), ("exit 3", 3), ("kill -TERM $$", 128 + signal.SIGTERM)]
)
def test_exit_code_is_the_command_s(command: str, code: int) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tools.step_process", "sh", "-c", command], check=False
    )

    assert done.returncode == code


def test_a_signal_to_the_group_is_waited_for(tmp_path: Path) -> None:
    """The step goes on for a moment after SIGTERM, and its process ends after it."""
    script = tmp_path / "step.sh"
    script.write_text(
        f"trap 'sleep 1; touch {tmp_path}/ended; exit 5' TERM\ntouch {tmp_path}/begun\n"
        "while :; do sleep 0.1; done\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-m", "tools.step_process", "bash", str(script)], start_new_session=True
    )
    wait_until((tmp_path / "begun").exists, "the step has begun")
    os.killpg(process.pid, signal.SIGTERM)

    assert process.wait(TIMEOUT_SECONDS) == 5
    assert (tmp_path / "ended").exists()


def test_process_that_stays_is_killed_and_named() -> None:
    without_patience = (
        "import sys; from tools import step_process; step_process.PATIENCE_SECONDS = 1.0; "
        "sys.exit(step_process.run(['sh', '-c', 'sleep 4321 >/dev/null & exit 0']))"
    )

    done = subprocess.run(
        [sys.executable, "-c", without_patience], capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stderr
    assert "still running, killed: sleep 4321" in done.stdout
