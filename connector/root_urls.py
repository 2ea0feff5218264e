"""The name of a root: a URL, or a path on local disk.

The rule: a URL has a scheme with `://`, or begins with `file:` or `memory:`. Everything else is a
path, which may have a colon, and is made absolute where a user gives it: other processes work in
other directories. `~` at its start is the user's home directory.
"""

from __future__ import annotations

from pathlib import Path


def url_scheme(root: str) -> str:
    """Return the scheme of a URL; "" for a path.

    Args:
        root: The path or URL.
    """
    if "://" in root or root.startswith(("file:", "memory:")):
        return root.split(":", 1)[0]
    return ""


def is_on_local_disk(root: str) -> bool:
    """Return whether a root is on local disk: a path, or a URL of `file:`.

    Args:
        root: The path or URL.
    """
    return url_scheme(root) in ("", "file")


def absolute_root(root: str) -> str:
    """Return a URL unchanged, a path absolute.

    Args:
        root: The path or URL.
    """
    return root if url_scheme(root) else str(Path(expand_home(root)).absolute())


def expand_home(path: str) -> str:
    """Return a path with the home directory in place of a `~` at its start.

    `~name` is not the home of another user: it may be a directory of this name.

    Args:
        path: The path or URL.
    """
    return str(Path(path).expanduser()) if path == "~" or path.startswith("~/") else path
