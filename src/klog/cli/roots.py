"""The roots of a command: what `--root` named, opened once."""

from __future__ import annotations

from collections.abc import Iterable

from klog.connector.log.root import KlogRoot, find_root
from klog.connector.log.state import State
from klog.connector.source.scan import log_directories
from klog.errors import KlogError, OptionError


def directories(roots: Iterable[str]) -> list[str]:
    """Give the log directories of all `--root`, split at commas by the rule that `load` has."""
    return [path for root in roots for path in log_directories({"path": root})]


def klog_root(roots: Iterable[str]) -> KlogRoot | None:
    """Find the klog root that `--root` names; None for a broker's log directories.

    Raises `OptionError` for a klog root among others: its topics are whole there.
    """
    given = directories(roots)
    found = [root for path in given if (root := find_root(path)) is not None]
    if found and len(given) > 1:
        raise OptionError(f"--root: {found[0].given} is a klog root; give it alone")
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


def states(root: KlogRoot, topics: Iterable[str]) -> dict[str, State | KlogError]:
    """Load the topics that are there; one whose log cannot be read gives its error."""
    found: dict[str, State | KlogError] = {}
    for topic in topics:
        try:
            state = root.log_to_read(topic).load()
        except KlogError as exc:
            found[topic] = exc
        else:
            if state.topic_id:
                found[topic] = state
    return found
