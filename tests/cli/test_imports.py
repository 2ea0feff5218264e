"""What a command imports: its help only the options, a verb only what it uses."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

import pytest

from klog.cli import verb_table
from klog.cli.command_line import command_line
from tests.corpus import scene
from tests.support.verb_parsers import VERBS
from tests.support.waiting import TIMEOUT_SECONDS

KLOG = Path(sys.executable).with_name("klog")
HEAVY = {"asyncio", "fsspec", "numpy", "obstore", "pandas", "pyarrow", "pyspark"}
"""Packages that take long to import."""
LISTS_LOADED = """\
import atexit, sys
atexit.register(lambda: open(sys.argv[0] + ".modules", "w").write(" ".join(
    name for name, module in sys.modules.items() if module is not None
)))
"""


def modules_of(tmp_path: Path, *arguments: str) -> set[str]:
    """Run the installed command and return the modules that it had imported at its end."""
    script = tmp_path / "klog"
    script.write_text(KLOG.read_text())
    (tmp_path / "sitecustomize.py").write_text(LISTS_LOADED)
    subprocess.run(
        [sys.executable, script, *arguments],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        check=True,
        timeout=TIMEOUT_SECONDS,
    )
    return set(script.with_name("klog.modules").read_text().split())


def packages_of(modules: set[str]) -> set[str]:
    return {module.partition(".")[0] for module in modules}


def test_the_help_imports_no_heavy_package(tmp_path: Path) -> None:
    modules = modules_of(tmp_path, "--help")
    assert "klog.cli.consume_options" in modules
    assert not packages_of(modules) & HEAVY


@pytest.mark.parametrize("verb", ["consume", "vacuum", "dump", "topics delete"])
def test_the_help_of_a_verb_imports_no_heavy_package(tmp_path: Path, verb: str) -> None:
    modules = modules_of(tmp_path, *verb.split(), "--help")
    assert not packages_of(modules) & HEAVY


def test_sigint_is_taken_over_before_other_imports() -> None:
    """What is imported before it is a time in which Ctrl-C prints a traceback."""
    printed = subprocess.run(
        [sys.executable, "-c", "import sys, klog.cli; print(*sys.modules)"],
        capture_output=True, check=True, text=True, timeout=TIMEOUT_SECONDS,
    ).stdout.split()  # fmt: skip
    assert {name for name in printed if name.partition(".")[0] == "klog"} == {
        "klog", "klog.version", "klog.cli", "klog.interrupt_exit"
    }  # fmt: skip
    assert not {"argparse", "contextlib", "pathlib", "threading", "typing"} & set(printed)


def test_a_verb_imports_the_options_of_no_other(tmp_path: Path) -> None:
    modules = modules_of(tmp_path, "dump", "--help")
    assert {name for name in modules if name.endswith("_options")} <= {
        "klog.jobs.shared.common_options", "klog.tools.dump_options", "klog.tools.kafka_options"
    }  # fmt: skip


def test_the_verbs_are_those_of_the_whole_command_line() -> None:
    for verb in VERBS:
        (choices,) = [
            action.choices
            for action in command_line(verb.split()[0])._actions
            if isinstance(action, argparse._SubParsersAction)
        ]
        assert verb.split()[0] in choices
    assert list(dict.fromkeys(verb.split()[0] for verb in VERBS)) == list(verb_table.VERBS)


@pytest.mark.parametrize("kind", ["klog", "broker"])
def test_a_list_of_topics_imports_what_it_reads(tmp_path: Path, kind: str) -> None:
    if kind == "klog":
        root = tmp_path / "root"
        modules_of(tmp_path, "topics", "create", "--topic", "a", "--root", str(root))
    else:
        root = scene("records").log_dirs[0]
    modules = modules_of(tmp_path, "topics", "list", "--root", str(root))
    assert packages_of(modules) & HEAVY == {"numpy", "pyarrow"}
    other_kind = {
        "klog": "klog.connector.kafka_dir.raw_root",
        "broker": "klog.connector.commit_log.topic_admin",
    }
    unused = {other_kind[kind], "klog.cli.consume", "klog.jobs.vacuum", "pyarrow.dataset"}
    unused |= {"pyarrow.compute", "klog.connector.decoded_offsets"}
    unused |= {"klog.connector.source.scan_planner", "klog.connector.sink.write_plan"}
    assert not modules & unused


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_loads(verb: str) -> None:
    """Run the function that imports a verb's implementation."""
    load = VERBS[verb].get_default("load")
    assert callable(load())
