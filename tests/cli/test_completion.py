"""Completion of the command line in a real bash, as docs/command-line.md sets it up."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

import klog
from tests.support.waiting import TIMEOUT_SECONDS

BIN = Path(sys.executable).parent
COMPLETE = """\
eval "$(register-python-argcomplete klog)"
COMP_LINE=$1 COMP_POINT=${#1} COMP_TYPE=9
read -ra COMP_WORDS <<< "$1"
[[ $1 == *" " ]] && COMP_WORDS+=("")
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
_python_argcomplete klog "${COMP_WORDS[-1]}" "${COMP_WORDS[-2]}"
printf '%s\\n' "${COMPREPLY[@]}"
"""
"""Bash calls a command's function like this when the user types the tab key."""


def completions(typed: str, folder: Path, **environment: str) -> set[str]:
    """Return the words that bash offers after what is typed."""
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-c", COMPLETE, "bash", typed],
        cwd=folder,
        env={**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}", **environment},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
        check=True,
    )
    assert done.stderr == ""
    return {word.strip() for word in done.stdout.splitlines() if word.strip()}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("completion")
    log = klog.open(folder / "root")
    for topic in ("orders", "orders-copy", "payments"):
        log.create_topic(topic)
    log.append("orders", pa.table({"value": ["v"]}))
    return folder


def test_verbs_actions_options_and_values(folder: Path) -> None:
    assert completions("klog co", folder) == {"compact", "configs", "consume", "count"}
    assert completions("klog topics de", folder) == {"delete", "describe"}
    assert completions("klog vacuum --ex", folder) == {"--execute"}
    values = completions("klog consume --isolation-level ", folder)
    assert values == {"read_committed", "read_uncommitted"}


def test_topics_come_from_the_root(folder: Path) -> None:
    assert completions("klog consume --root root -t or", folder) == {"orders", "orders-copy"}
    assert completions("klog history -t ", folder, KLOG_ROOT="root") == {
        "orders", "orders-copy", "payments",
    }  # fmt: skip


def test_names_before_a_comma_stay(folder: Path) -> None:
    assert completions("klog consume --root root -t orders,pay", folder) == {"orders,payments"}


def test_a_broker_directory_has_topics_too(folder: Path) -> None:
    corpus = Path(__file__).parents[1] / "corpus" / "broker-4.2.0" / "records" / "log"
    assert "segments" in completions(f"klog consume --root {corpus} -t seg", folder)


@pytest.mark.parametrize("root", ["nowhere", "nope://x", ""])
def test_a_root_that_cannot_be_read_has_no_topics(root: str, folder: Path) -> None:
    assert completions("klog consume -t ", folder, KLOG_ROOT=root) == set()


def test_directories_are_completed(folder: Path) -> None:
    assert "root/" in completions("klog topics list --root ro", folder)
