"""The roots of a command: `--root`, opened once."""

from __future__ import annotations

from collections.abc import Iterable

from klog.connector.commit_log.klog_root import KlogRoot
from klog.connector.commit_log.root_discovery import find_root
from klog.connector.commit_log.topic_state import TopicState
from klog.connector.open_root import open_klog_root
from klog.connector.options.spark_paths import log_directories
from klog.errors import KlogError, OptionError


def directories(roots: Iterable[str]) -> list[str]:
    """Return the log directories of all `--root`, split at commas as `load` splits them."""
    return [path for root in roots for path in log_directories({"path": root})]


def single_directory(roots: Iterable[str]) -> str:
    """Return the directory that `--root` names, for commands that take one.

    Raises `OptionError` if it names several.
    """
    paths = directories(roots)
    if len(paths) > 1:
        raise OptionError(
            f"--root: must name one directory, got {', '.join(paths)}. Run the command once for "
            "each"
        )
    return paths[0]


def klog_root(roots: Iterable[str]) -> KlogRoot | None:
    """Return the klog root that `--root` names; None for a broker's log directories.

    Raises `OptionError` for a klog root among several directories: its topics are complete alone.
    """
    paths = directories(roots)
    klog_roots = [root for path in paths if (root := find_root(path)) is not None]
    if klog_roots and len(paths) > 1:
        raise OptionError(f"--root: {klog_roots[0].location} is a klog root. Give it alone")
    return klog_roots[0] if klog_roots else None


def root_with_log(roots: Iterable[str]) -> KlogRoot:
    """Return the klog root that `--root` names, for commands that need one.

    Raises `OptionError`, which says how to create one, if it names none.
    """
    return open_klog_root(
        single_directory(roots),
        next_step="klog does not write to a broker's directory. `klog topics create` creates a "
        "root in a directory of its own",
    )


def states(root: KlogRoot, topics: Iterable[str]) -> dict[str, TopicState | KlogError]:
    """Return the state of each topic that exists, or the error if its log cannot be read."""
    result: dict[str, TopicState | KlogError] = {}
    for topic in topics:
        try:
            state = root.log_to_read(topic).load()
        except KlogError as exc:
            result[topic] = exc
        else:
            if state.topic_id:
                result[topic] = state
    return result
