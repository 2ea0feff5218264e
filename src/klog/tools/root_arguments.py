"""The roots of a command: what `--root` named, opened once."""

from __future__ import annotations

from collections.abc import Iterable

from klog.connector.commit_log.klog_root import KlogRoot
from klog.connector.commit_log.root_discovery import find_root
from klog.connector.commit_log.topic_state import TopicState
from klog.connector.source.scan_planner import log_directories
from klog.errors import KlogError, OptionError


def directories(roots: Iterable[str]) -> list[str]:
    """Give the log directories of all `--root`, split at commas by the rule that `load` has."""
    return [path for root in roots for path in log_directories({"path": root})]


def klog_root(roots: Iterable[str]) -> KlogRoot | None:
    """Find the klog root that `--root` names; None for a broker's log directories.

    Raises `OptionError` for a klog root among others: its topics are whole there.
    """
    args = directories(roots)
    found = [root for path in args if (root := find_root(path)) is not None]
    if found and len(args) > 1:
        raise OptionError(f"--root: {found[0].location} is a klog root; give it alone")
    return found[0] if found else None


def root_with_log(roots: Iterable[str]) -> KlogRoot:
    """Find the klog root that `--root` names, for what only such a root has.

    Raises `OptionError` that says how to make one.
    """
    found = klog_root(roots)
    if found is None:
        (path, *_) = directories(roots)
        raise OptionError(
            f"{path} is no klog root, and klog writes nothing among a broker's files; "
            "`klog topics create` makes a root, in a directory of its own"
        )
    return found


def states(root: KlogRoot, topics: Iterable[str]) -> dict[str, TopicState | KlogError]:
    """Load the topics that are there; one whose log cannot be read gives its error."""
    found: dict[str, TopicState | KlogError] = {}
    for topic in topics:
        try:
            state = root.log_to_read(topic).load()
        except KlogError as exc:
            found[topic] = exc
        else:
            if state.topic_id:
                found[topic] = state
    return found
