"""The command as a whole: roots, exit codes, and never a traceback."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from klog import __version__
from tests.corpus import scene
from tests.support.klog_command import Klog
from tests.support.waiting import TIMEOUT_SECONDS

KLOG = Path(sys.executable).with_name("klog")
JBOD = [str(path) for path in scene("jbod").log_dirs]
RECORDS = str(scene("records").log_dirs[0])


@pytest.mark.parametrize("roots", [[*JBOD], [",".join(JBOD)], [f" {JBOD[1]}, {JBOD[0]} "]])
def test_several_log_directories_are_one_broker(klog: Klog, roots: list[str]) -> None:
    arguments = [part for root in roots for part in ("--root", root)]
    result = klog("consume", "--topic", "spread", "-f", "%p", *arguments)
    expected = [record.partition for record in scene("jbod").records() if record.topic == "spread"]
    assert result.out.decode() == "".join(map(str, expected))


REFUSED = [
    (["topics", "list", "--root", "/nowhere"], "there is no directory /nowhere"),
    (["topics", "list", "--root", __file__], "is a file; give the log directory itself"),
    (["topics", "list", "--root", ""], "--root: give the log directory"),
    (["topics", "list", "--root", RECORDS, "--root", RECORDS], "both "),
    (["topics", "list", "--root", "nope://x"], "--root: cannot read nope:// here"),
    (["consume", "--topic", "x", "--root", "/nowhere"], "there is no directory /nowhere"),
]


@pytest.mark.parametrize(("arguments", "message"), REFUSED)
def test_refusals(klog: Klog, arguments: list[str], message: str) -> None:
    result = klog(*arguments)
    assert (result.code, result.out) == (1, b"")
    assert result.err.startswith("klog: ")
    assert result.err.count("\n") == 1
    assert message in result.err


USAGE = [
    ([], "required: VERB"),
    (["topics"], "required: ACTION"),
    (["topics", "create", "--root", RECORDS], "required: -t/--topic"),
    (["mirror"], "invalid choice: 'mirror'"),
    (["topics", "list"], "required: --root"),
    (["topics", "list", "--root", RECORDS, "--exclude"], "did you mean --exclude-internal?"),
    (["topics", "list", "--root", RECORDS, "--jsn=1"], "did you mean --json?"),
    (["topics", "list", "--root", RECORDS, "zzz"], "unknown argument zzz"),
]


@pytest.mark.parametrize(("arguments", "message"), USAGE)
def test_wrong_usage(klog: Klog, arguments: list[str], message: str) -> None:
    result = klog(*arguments)
    assert (result.code, result.out) == (2, b"")
    assert result.err.startswith("usage: klog")
    assert message in result.err


def test_help_lists_the_verbs(klog: Klog) -> None:
    result = klog("--help")
    assert result.code == 0
    verb_lines = result.out.decode().split("VERB\n")[-1].split("\n\n")[0]
    verbs = re.findall(r"^    (\S+)", verb_lines, re.MULTILINE)
    assert verbs == [
        *(
            "topics",
            "configs",
            "consume",
            "offsets",
            "count",
            "produce",
            "history",
            "delete-records",
            "restore",
            "checkpoint",
        ),
        *("compact", "merge", "retain", "vacuum", "verify", "repair", "export-log"),
        *("adopt", "import-log", "to-delta", "from-delta", "to-files", "import-files"),
        *("jobs", "jar"),
        *("verifiable-producer", "verifiable-consumer", "dump"),
    ]
    assert klog("--version").out.decode() == f"klog {__version__}\n"


def test_damage_is_reported_with_file_and_position(klog: Klog, tmp_path: Path) -> None:
    source = scene("records").partition_dir("batches.single", 0)
    shutil.copytree(source, tmp_path / source.name)
    log = tmp_path / source.name / "00000000000000000000.log"
    data = bytearray(log.read_bytes())
    data[70] ^= 1  # in the records of the first batch
    log.write_bytes(data)
    result = klog("consume", "--topic", "batches.single", "--root", str(tmp_path))
    assert (result.code, result.out) == (1, b"")
    assert result.err.startswith(f"klog: batches.single-0: corrupt log {log} at position 0")


def test_a_torn_append_is_reported_once(klog: Klog, tmp_path: Path) -> None:
    source = scene("records").partition_dir("batches.single", 0)
    shutil.copytree(source, tmp_path / source.name)
    log = tmp_path / source.name / "00000000000000000000.log"
    log.write_bytes(log.read_bytes()[:-7])
    result = klog("consume", "--topic", "batches.single", "--root", str(tmp_path), "-f", "%o ")
    assert result.code == 0
    assert result.out == b"".join(b"%d " % offset for offset in range(29))
    assert result.err.startswith("klog: warning: ")
    assert result.err.count("a torn append") == 1


def test_the_installed_command_refuses_in_one_line() -> None:
    result = subprocess.run(
        [KLOG, "consume", "--topic", "nope", "--root", RECORDS],
        capture_output=True,
        timeout=TIMEOUT_SECONDS,
        check=False,
    )
    assert (result.returncode, result.stdout) == (1, b"")
    assert result.stderr.startswith(b"klog: ")
    assert result.stderr.count(b"\n") == 1


def test_a_closed_pipe_ends_it_quietly() -> None:
    command = [str(KLOG), "consume", "--topic", "batches.large", "-f", r"%o %s %s %s %s\n"]
    with subprocess.Popen(
        [*command, "--root", RECORDS], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        assert running.stdout.readline().startswith(b"0 ")
        running.stdout.close()
        assert running.stderr.read() == b""
        assert running.wait(timeout=TIMEOUT_SECONDS) == 0
