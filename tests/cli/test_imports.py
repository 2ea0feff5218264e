"""What a command imports: its help only the options, a verb only what it uses."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.corpus import scene
from tests.support.verb_parsers import VERBS

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
        timeout=120,
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
    unused |= {"klog.connector.source.scan_planner", "klog.connector.sink.write_plan"}
    assert not modules & unused


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_loads(verb: str) -> None:
    """Run the function that imports a verb's implementation."""
    load = VERBS[verb].get_default("load")
    assert callable(load())
