"""The code blocks of a page of docs/, run one after another in one session of Spark.

The rule: a page's blocks run as they stand, but for the places that a test cannot have: `/data/` is
a folder of the test, and a scene replaces others. `spark`, `root` and `df` are those of the reader:
a session, the root `/data/klog`, and rows to write.
"""

from __future__ import annotations

import io
import json
import os
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from tests.pages.page_scene import Scene, scene_of
from tests.support.page_blocks import (
    PYTHON,
    SHELL,
    Block,
    blocks_of,
    check_output,
    link_project,
    run_in,
)
from tests.support.project import PROJECT

DOCS = PROJECT / "docs"
JSON, SQL = "json", "sql"
RUNNABLE = {PYTHON, SHELL, SQL, JSON}
"""The languages whose blocks run; JSON is parsed."""


def run_page(name: str, folder: Path, spark: SparkSession) -> None:
    """Run the blocks of a page, such as `values.md`; each prints what the page says, if it does."""
    page = PageRun(folder, spark, scene_of(name, folder, spark))
    for block in blocks_of((DOCS / name).read_text()):
        check_output(block, page.run(block))


class PageRun:
    """One page's run: its folder, its session, and the names that its Python blocks share."""

    def __init__(self, folder: Path, spark: SparkSession, scene: Scene) -> None:
        """Take the folder of the run, a session, and what the page supposes."""
        self._folder, self._spark = folder, spark
        self._names: dict[str, Any] = {"spark": spark, **scene.names}
        self._replacements = {**scene.replacements, "/data/": f"{folder}/data/"}
        link_project(folder)

    def run(self, block: Block) -> str:
        """Run a block and return what it prints."""
        code = block.code
        for text, replacement in self._replacements.items():
            code = code.replace(text, replacement)
        if block.language == PYTHON:
            return self._run_python(code)
        if block.language == SHELL:
            return run_in(self._folder, "bash", "-euc", code)
        if block.language == SQL:
            for statement in filter(str.strip, code.split(";")):
                self._spark.sql(statement).collect()
            return ""
        json.loads(code)
        return ""

    def _run_python(self, code: str) -> str:
        printed = io.StringIO()
        before = Path.cwd()
        os.chdir(self._folder)
        try:
            with redirect_stdout(printed):
                exec(compile(code, "<page>", "exec"), self._names)
        finally:
            os.chdir(before)
        return printed.getvalue()
