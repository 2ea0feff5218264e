"""The hooks find the modules, classes and functions of klog that they watch."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.spark_faults.drivers import HOOKS
from tests.support.waiting import TIMEOUT_SECONDS

IMPORT_ALL = """
import importlib, sitecustomize
for name in sitecustomize.WATCHED:
    importlib.import_module(name)
"""


def test_hooks_find_all_that_they_watch(tmp_path: Path) -> None:
    environment = {**os.environ, "KLOG_FAULTS": str(tmp_path), "PYTHONPATH": str(HOOKS)}
    process = subprocess.run(
        [sys.executable, "-c", IMPORT_ALL],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=TIMEOUT_SECONDS,
    )
    assert process.returncode == 0, process.stderr
