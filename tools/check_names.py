"""Check names against docs/glossary.md: `python tools/check_names.py [PATH ...]`.

The rule: a name is a noun for the thing or a verb for what is done, in the words of the glossary. A
module's basename is unique in the tree. A docstring begins with a capital verb that says what the
function returns or does, never with "Give" or "Tell". What is public and takes arguments describes
them in a section `Args:`; a method whose base class does so says "See" and names that method.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

VAGUE = frozenset(
    [
        "anew",
        "asked",
        "found",
        "given",
        "made",
        "meant",
        "one",
        "others",
        "said",
        "some",
        "told",
        "wanted",
        "what",
        "whoever",
    ]
)
"""Names that do not say what the thing is."""
WORDS = frozenset(
    [
        "anew",
        "beside",
        "behind",
        "birth",
        "fate",
        "fates",
        "garbage",
        "handover",
        "leftover",
        "leftovers",
        "least",
        "most",
        "overtaken",
        "pinned",
        "rented",
        "thin",
        "thinned",
        "tidied",
        "unpin",
    ]
)
"""Words of names that the glossary replaces."""
FIRST_WORDS = frozenset(["Be", "Give", "Gives", "Say", "Says", "Tell", "Tells"])
"""No docstring begins with one of these."""
WITH_SECTIONS = (
    "logformat/", "connector/", "jobs/",
    "src/klog/__init__.py", "src/klog/errors.py", "src/klog/url_secrets.py",
)  # fmt: skip
"""Here public functions describe their arguments; `klog.cli` and `klog.tools` are programs."""
SAME_AT_BOTH_PLACES = frozenset({"__init__", "__main__", "conftest"})


def main(paths: list[str]) -> int:
    """Print each fault as `file:line: fault`; return 1 if there are any."""
    files = _files()
    faults = list(_same_basenames(files))
    for file in files:
        if not paths or any(str(file).startswith(path) for path in paths):
            faults += _faults(file)
            if str(file).startswith(WITH_SECTIONS):
                faults += _without_args(file, ast.parse(file.read_text()))
    print(*faults, sep="\n", end="\n" if faults else "")  # noqa: T201
    return 1 if faults else 0


def _files() -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "*.py"],  # noqa: S607
        capture_output=True,
        text=True,
        check=True,
    )
    files = [Path(line) for line in listed.stdout.splitlines()]
    return [file for file in files if file.is_file() and not file.is_symlink()]


def _same_basenames(files: list[Path]) -> Iterator[str]:
    places = defaultdict(list)
    for file in files:
        if file.stem not in SAME_AT_BOTH_PLACES:
            places[file.stem].append(str(file))
    for stem, (first, *more) in places.items():
        if more:
            yield f"{first}:1: basename {stem} is also at {', '.join(more)}"


def _faults(file: Path) -> Iterator[str]:
    tree = ast.parse(file.read_text())
    for node in ast.walk(tree):
        for name, line in _bound(node):
            words = set(re.split(r"_+|(?<=[a-z0-9])(?=[A-Z])", name))
            if name in VAGUE or {word.lower() for word in words} & WORDS:
                yield f"{file}:{line}: name {name}"
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            docstring = ast.get_docstring(node) or ""
            if docstring.split(" ", 1)[0] in FIRST_WORDS:
                yield f"{file}:{node.lineno}: docstring of {node.name}: {docstring.splitlines()[0]}"


def _without_args(file: Path, parent: ast.Module | ast.ClassDef) -> Iterator[str]:
    """Yield a fault for each public function that does not describe its arguments."""
    for node in parent.body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield from _without_args(file, node)
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            args = {arg.arg for arg in (*node.args.args, *node.args.kwonlyargs)}
            docstring = ast.get_docstring(node) or ""
            if args - {"self", "cls"} and not ("Args:" in docstring or docstring[:4] == "See "):
                yield f"{file}:{node.lineno}: docstring of {node.name} has no Args"


def _bound(node: ast.AST) -> Iterator[tuple[str, int]]:
    """Yield the names that a node binds, with their lines."""
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        yield node.id, node.lineno
    elif isinstance(node, ast.arg):
        yield node.arg, node.lineno
    elif isinstance(node, ast.FunctionDef | ast.ClassDef):
        yield node.name, node.lineno


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
