"""Closed standard streams, and names that are not UTF-8: an error or their bytes, no traceback."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

import klog as klog_package
from tests.support.command_root import Root
from tests.support.klog_command import Klog
from tests.support.waiting import TIMEOUT_SECONDS

KLOG = str(Path(sys.executable).with_name("klog"))
NOT_UTF8 = os.fsdecode(b"a\xffb")


def in_shell(redirection: str, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        ["sh", "-c", f'exec "$0" "$@" {redirection}', KLOG, *arguments],
        capture_output=True,
        timeout=TIMEOUT_SECONDS,
        check=False,
    )


@pytest.mark.parametrize(
    ("redirection", "verb", "message"),
    [
        (">&-", ("topics", "list"), b"klog: stdout: it is closed. Send the output to a file"),
        ("<&-", ("produce", "--topic", "t"), b"klog: stdin: it is closed. Give the input on stdin"),
    ],
)
def test_a_closed_stream_is_one_error(
    on_root: Root, redirection: str, verb: tuple[str, ...], message: bytes
) -> None:
    on_root.does("topics", "create", "--topic", "t")
    result = in_shell(redirection, *verb, "--root", str(on_root.path))
    assert (result.returncode, result.stdout) == (1, b"")
    assert result.stderr.startswith(message)
    assert result.stderr.count(b"\n") == 1


@pytest.mark.parametrize("redirection", ["2>&-", "<&- 2>&-"])
def test_no_file_takes_the_place_of_a_closed_stream(on_root: Root, redirection: str) -> None:
    on_root.does("topics", "create", "--topic", "t")
    verb = (KLOG, "consume", "--topic", "t", "--follow", "--root", str(on_root.path), "-f", "%s")
    with subprocess.Popen(
        ["sh", "-c", f'exec "$0" "$@" {redirection}', *verb], stdout=subprocess.PIPE
    ) as process:
        try:
            assert process.stdout is not None
            klog_package.open(on_root.path).append("t", pa.table({"value": ["a"]}))
            assert process.stdout.read(1) == b"a"
            for descriptor in (0, 2) if "<" in redirection else (2,):
                assert Path(f"/proc/{process.pid}/fd/{descriptor}").readlink() == Path(os.devnull)
        finally:
            process.kill()


def test_a_job_needs_its_stdout(on_root: Root) -> None:
    on_root.does("topics", "create", "--topic", "t")
    job = (sys.executable, "-m", "klog.jobs.verify", "--root", str(on_root.path))
    result = subprocess.run(
        ["sh", "-c", 'exec "$0" "$@" >&-', *job],
        capture_output=True,
        timeout=TIMEOUT_SECONDS,
        check=False,
    )
    assert result.returncode == 1
    assert result.stderr.startswith(b"klog: stdout: it is closed. Send the output to a file")


def test_a_closed_stderr_changes_no_output(on_root: Root) -> None:
    result = in_shell("2>&-", "topics", "create", "--topic", "t", "--root", str(on_root.path))
    assert (result.returncode, result.stdout.splitlines()[-1]) == (0, b"Created topic t.")
    failed = in_shell("2>&-", "consume", "--topic", "u", "--root", str(on_root.path))
    assert (failed.returncode, failed.stdout) == (1, b"")


def test_a_root_whose_name_is_not_utf8(klog: Klog, tmp_path: Path) -> None:
    root = str(tmp_path / NOT_UTF8)
    created = klog("topics", "create", "--topic", "t", "--root", root)
    assert created.code == 0
    assert b"a\\udcffb" in created.out
    restored = klog("restore", "--topic", "t", "--version", "0", "--json", "--root", root)
    assert restored.code == 0
    assert json.loads(restored.out)


def test_records_of_a_root_whose_name_is_not_utf8(klog: Klog, tmp_path: Path) -> None:
    log = klog_package.open(tmp_path / NOT_UTF8)
    log.create_topic("t")
    log.append("t", pa.table({"value": ["a"]}))
    consumed = klog("consume", "--topic", "t", "--root", str(tmp_path / NOT_UTF8), "-f", "%s")
    assert (consumed.code, consumed.out) == (0, b"a")
    assert log.scan("t").read_all()["value"].to_pylist() == [b"a"]


def test_bytes_of_a_format_that_are_not_utf8_are_printed(on_scene: Klog) -> None:
    result = on_scene("records", "consume", "--topic", "codecs", "-c", "1", "-f", f"%o{NOT_UTF8}")
    assert result.out == b"0a\xffb"


def test_json_says_a_name_that_is_not_utf8(tmp_path: Path, klog: Klog) -> None:
    root = str(tmp_path / NOT_UTF8)
    klog("topics", "create", "--topic", "t", "--root", root)
    report = klog("vacuum", "--json", "--root", root)
    assert json.loads(report.out)["root"] == root
