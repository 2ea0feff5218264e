"""The paths that Spark's `load()`, `save()` and `start()` were called with.

The rule: Spark's tasks may run on another machine and in another directory, so a local path is made
absolute, and `memory:`, which one process has, is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from klog.connector.options.read_option_table import READ_PATH, READ_PATHS
from klog.connector.options.write_option_table import WRITE_PATH
from klog.connector.root_urls import absolute_root, expand_home
from klog.errors import OptionError


def read_paths(options: Mapping[str, str], is_directory: Callable[[str], bool]) -> list[str]:
    """Return the log directories that `load()` was called with: one, a list, or one with commas.

    Args:
        options: All options as Spark hands them over.
        is_directory: Returns whether a path is a directory. A path with commas that is one is not
            split.

    Raises:
        OptionError: There is no path, it is one of `memory:`, or `paths` is not a list of paths.
    """
    by_lower = {key.lower(): text for key, text in options.items()}
    path = by_lower.get(READ_PATH.name, "")
    if by_lower.get(READ_PATHS.name):
        paths = READ_PATHS.parse(by_lower[READ_PATHS.name])
    elif "," in path and not is_directory(expand_home(path)):
        paths = [part.strip() for part in path.split(",") if part.strip()]
    else:
        paths = [path] if path else []
    if not paths:
        raise OptionError("path: give the log directory to load(), as in .load('/var/lib/kafka')")
    return [_absolute(path) for path in paths]


def log_directories(options: Mapping[str, str]) -> list[str]:
    """Return the roots that `load()` names.

    Args:
        options: All options as Spark hands them over.

    Raises:
        OptionError: As `read_paths`.
    """
    return read_paths(options, lambda path: Path(path).is_dir())


def write_path(options: Mapping[str, str]) -> str:
    """Return the root that `save()` or `start()` was called with.

    Args:
        options: All options as Spark hands them over.

    Raises:
        OptionError: There is no path, or it is one of `memory:`.
    """
    path = {key.lower(): text for key, text in options.items()}.get(WRITE_PATH.name, "")
    if not path:
        raise OptionError("path: give the root to save() or start(), as in .save('/data/klog')")
    return _absolute(path)


def _absolute(path: str) -> str:
    if path.startswith("memory:"):
        raise OptionError(
            f"path: {path} lives in one process, and Spark's tasks are other processes. Use a "
            "directory or a URL that all of them reach"
        )
    return absolute_root(path)
