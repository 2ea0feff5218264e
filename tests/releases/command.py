"""The command `klog` in this process: its exit code and what it printed."""

from __future__ import annotations

import io
import json
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from typing import Any

from klog.cli import main


@dataclass(frozen=True, slots=True)
class Result:
    """A command's exit code and output."""

    code: int
    output: str
    errors: str

    def json_lines(self) -> list[Any]:
        """Return the JSON value of each line of the output."""
        return [json.loads(line) for line in self.output.splitlines()]


def run(*arguments: str) -> Result:
    """Run a command."""
    output, errors = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.StringIO()
    with redirect_stdout(output), redirect_stderr(errors):
        try:
            code = main(arguments)
        except SystemExit as exc:
            code = int(exc.code or 0)
    output.seek(0)
    return Result(code, output.read(), errors.getvalue())


def done(*arguments: str) -> Result:
    """Run a command that must succeed; the assertion's message has its errors."""
    result = run(*arguments)
    assert result.code == 0, f"klog {' '.join(arguments)}\n{result.output}{result.errors}"
    return result
