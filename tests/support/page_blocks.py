"""The code blocks of a page, run as a reader pastes them.

The rule: a `text` block is the output of the block above it. Blocks run in a folder of their own,
with links to the repository's files. Python blocks share one process; a shell block between them
runs where it stands. A directive of the site, such as `{toctree}`, is not a block.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tests.support.project import PROJECT
from tests.support.waiting import TIMEOUT_SECONDS

PYTHON, SHELL, TEXT = "python", "sh", "text"
_FENCE = re.compile(r"^```([^\n`]*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_MARK = "---- next block"
_RUN_SHELL = "import subprocess as _s; print(_s.check_output(['bash', '-ec', {code!r}], text=True))"


class Block(NamedTuple):
    """A block: its language, its code, and what it prints if the page says it."""

    language: str
    code: str
    prints: str | None


def blocks_of(page: str) -> list[Block]:
    """Return the blocks of a page in Markdown that can be run."""
    fences = [fence for fence in _fences(page) if not fence[0].startswith("{")]
    following = [*fences, ("", "")][1:]
    return [
        Block(language, code, text if after == TEXT else None)
        for (language, code), (after, text) in zip(fences, following, strict=True)
        if language != TEXT
    ]


def texts_of(page: str) -> list[str]:
    """Return the `text` blocks of a page."""
    return [code for language, code in _fences(page) if language == TEXT]


def _fences(page: str) -> list[tuple[str, str]]:
    """Return language and code of each fence, also of directives."""
    return [(info.partition(" ")[0], code) for info, code in _FENCE.findall(page)]


def prints(printed: str, expected: str) -> bool:
    """Return whether an output has the lines that a page shows, one after another.

    A page may show a part of a line, from word to word: times and sizes differ from run to run.
    """
    lines, shown = (
        [line.rstrip() for line in text.strip("\n").splitlines()] for text in (printed, expected)
    )
    starts = range(len(lines) - len(shown) + 1)
    return any(all(map(_has_words, lines[start:], shown)) for start in starts)


def _has_words(line: str, words: str) -> bool:
    """Return whether a line has these words; `0` is not a word of `40` or of `0.5`."""
    return re.search(rf"(?<![\w.]){re.escape(words)}(?!\w|\.\d)", line) is not None


def check_output(block: Block, printed: str) -> None:
    """Assert that a block has printed what its page says, if the page says it."""
    if block.prints is not None:
        assert prints(printed, block.prints), (block.code, printed)


def link_project(folder: Path) -> None:
    """Link every file of the repository but `build` into a folder."""
    for path in PROJECT.iterdir():
        if path.name != "build":
            (folder / path.name).symlink_to(path)


def project_with_settings(parent: Path, settings: str) -> tuple[Path, Path]:
    """Make a folder that `link_project` has filled, and a folder of Spark's configuration.

    Args:
        parent: The folder in which both are made.
        settings: The content of `spark-defaults.conf`.

    Returns:
        The folder of the project, and what `SPARK_CONF_DIR` has to be.
    """
    folder, conf = parent / "project", parent / "conf"
    for path in (folder, conf):
        path.mkdir()
    (conf / "spark-defaults.conf").write_text(settings)
    link_project(folder)
    return folder, conf


def run_in(
    folder: Path, *command: str, timeout_seconds: float = TIMEOUT_SECONDS, **environment: str
) -> str:
    """Run a command in a folder, with this environment's `klog` first, and return its output."""
    executable = Path(sys.executable)
    done = subprocess.run(
        command,
        cwd=folder,
        env={
            **os.environ,
            "PATH": f"{executable.parent}:{os.environ['PATH']}",
            "PYSPARK_PYTHON": str(executable),
            "SPARK_LOCAL_IP": "127.0.0.1",
            **environment,
        },
        capture_output=True,
        text=True,
        timeout=timeout_seconds,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


def run_blocks(folder: Path, blocks: Sequence[Block], **environment: str) -> None:
    """Run blocks one after another; each prints what its page says, or anything.

    A page may start a driver in each of its blocks, so each has the time of a wait.
    """
    codes = [
        block.code if block.language == PYTHON else _RUN_SHELL.format(code=block.code)
        for block in blocks
    ]
    script = f"\nprint({_MARK!r}, flush=True)\n".join(codes)
    timeout = TIMEOUT_SECONDS * len(blocks)
    command = (sys.executable, "-c", script)
    printed = run_in(folder, *command, timeout_seconds=timeout, **environment).split(_MARK)
    assert len(printed) == len(blocks)
    for block, output in zip(blocks, printed, strict=True):
        check_output(block, output)
