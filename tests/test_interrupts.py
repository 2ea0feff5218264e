"""SIGINT while modules load: exit code 130 and no output, for every way to start klog."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from klog.interrupts import ending_at_once
from tests.support.project import PROJECT
from tests.support.waiting import TIMEOUT_SECONDS

SIGNALS_ITSELF = """\
import os, signal, sys

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == os.environ["SIGINT_AT"]:
            sys.meta_path.remove(self)
            os.kill(os.getpid(), signal.SIGINT)
        return None

sys.meta_path.insert(0, Finder())
"""
KLOG = [str(Path(sys.executable).with_name("klog"))]
MODULE = [sys.executable, "-m", "klog.cli"]
JOBS = [
    path.stem for path in (PROJECT / "jobs").glob("*.py") if "start(" in path.read_text()
    and path.stem != "script_start"
]  # fmt: skip
REQUIRED = {
    "export_log": ["--to", "x"],
    "from_delta": ["--topic", "x", "--table", "x"],
    "import_files": ["--from", "x"],
    "import_log": ["--from", "x"],
    "to_delta": ["--topic", "x", "--table", "x"],
    "to_files": ["--to", "x"],
}
LOADED_BY_ALL = ["numpy", "pyarrow", "klog.errors", "klog.connector.commit_log.klog_root"]


def interrupted_at(module: str, command: list[str], tmp_path: Path) -> tuple[int, bytes, bytes]:
    (tmp_path / "sitecustomize.py").write_text(SIGNALS_ITSELF)
    done = subprocess.run(
        command,
        cwd=PROJECT,
        env={**os.environ, "PYTHONPATH": str(tmp_path), "SIGINT_AT": module},
        capture_output=True,
        timeout=TIMEOUT_SECONDS,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("module", ["klog.cli.command_line", "klog.cli.topics", *LOADED_BY_ALL])
@pytest.mark.parametrize("command", [KLOG, MODULE], ids=["klog", "python -m klog.cli"])
def test_the_command(command: list[str], module: str, tmp_path: Path) -> None:
    result = interrupted_at(module, [*command, "topics", "list", "--root", "/nowhere"], tmp_path)
    assert result == (130, b"", b"")


@pytest.mark.parametrize(
    ("job", "module"),
    [(job, "pyarrow") for job in JOBS] + [("merge", module) for module in LOADED_BY_ALL],
)
def test_a_job(job: str, module: str, tmp_path: Path) -> None:
    command = [sys.executable, f"jobs/{job}.py", *REQUIRED.get(job, []), "--root", "/nowhere"]
    assert interrupted_at(module, command, tmp_path) == (130, b"", b"")


def test_a_job_that_has_been_loaded(tmp_path: Path) -> None:
    command = [sys.executable, "jobs/merge.py", "--root", "/nowhere"]
    assert interrupted_at("pyspark.sql", command, tmp_path) == (130, b"", b"")


def test_all_jobs_are_tried() -> None:
    assert sorted(JOBS) == [
        "adopt", "compact", "export_log", "from_delta", "import_files", "import_log", "merge",
        "repair", "retain", "to_delta", "to_files", "vacuum", "verify",
    ]  # fmt: skip


def test_a_job_started_as_a_program_says_its_help() -> None:
    done = subprocess.run(
        [sys.executable, "jobs/verify.py", "--help"],
        cwd=PROJECT,
        capture_output=True,
        check=True,
        timeout=TIMEOUT_SECONDS,
    )
    assert b"usage: jobs/verify.py" in done.stdout


def test_the_usual_handler_comes_back() -> None:
    before = signal.getsignal(signal.SIGINT)
    assert before is signal.default_int_handler
    with ending_at_once():
        assert signal.getsignal(signal.SIGINT) is not before
    assert signal.getsignal(signal.SIGINT) is before
    with pytest.raises(ImportError), ending_at_once():
        raise ImportError
    assert signal.getsignal(signal.SIGINT) is before


def test_a_signal_that_is_ignored_stays_ignored() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with ending_at_once():
            assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_another_thread_changes_nothing() -> None:
    seen: list[object] = []

    def enter() -> None:
        with ending_at_once():
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    assert seen == [signal.default_int_handler]
