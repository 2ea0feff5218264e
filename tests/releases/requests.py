"""Requests to a klog of an earlier release, in a process of its own.

`python -m tests.releases.requests` reads lines from standard input, each a JSON list of requests,
and runs them with whichever klog can be imported. A request is `["account", ROOT]` or the words of
a command that prints one JSON value. The answer to each line is a line: the version, the file of
klog, and the result of each request.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any
from unittest.mock import patch

import klog
from tests.releases.account import root_account
from tests.releases.command import run


def answer(words: list[str]) -> Any:
    """Return the result of a request; raise `SystemExit` if a command prints no JSON."""
    if words[0] == "account":
        return root_account(Path(words[1]))
    result = run(*words)
    if not result.output:
        raise SystemExit(f"klog {' '.join(words)}: exit code {result.code}: {result.errors}")
    return json.loads(result.output)


def main() -> None:
    """Answer each line of standard input; no file is synced."""
    for line in sys.stdin:
        with patch.object(os, "fsync"):
            results = [answer(words) for words in json.loads(line)]
        response = {"version": klog.__version__, "file": klog.__file__, "results": results}
        sys.stdout.write(f"{json.dumps(response)}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
