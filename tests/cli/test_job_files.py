"""`klog jobs`, and the other ways to start klog that need nothing but the installed package."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from klog.cli.job_verbs import COMMANDS
from tests.support.klog_command import Klog
from tests.support.waiting import TIMEOUT_SECONDS


def started(*command: str) -> str:
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=TIMEOUT_SECONDS, check=True
    )
    return done.stdout


def test_jobs_are_listed(klog: Klog) -> None:
    lines = klog("jobs").out.decode().splitlines()
    assert [line.split()[0] for line in lines] == [command.verb for command in COMMANDS]
    assert all(len(line.split()) > 2 for line in lines)


@pytest.mark.parametrize("verb", [command.verb for command in COMMANDS])
def test_file_of_a_job_is_a_program(klog: Klog, verb: str) -> None:
    path = Path(klog("jobs", "--path", verb).out.decode().strip())
    assert path.is_absolute()
    assert '__name__ == "__main__"' in path.read_text()


def test_package_is_a_program() -> None:
    assert started(sys.executable, "-m", "klog", "--version").startswith("klog 0.")


def test_module_of_a_job_is_a_program() -> None:
    usage = started(sys.executable, "-m", "klog.jobs.compact", "--help")
    assert "--min-dirty-ratio" in usage
