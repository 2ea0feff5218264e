"""Which topics of a root a job is about, and how its figures are named in reports."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from klog.connector.log.root import KlogRoot, find_root
from klog.connector.log.state import State
from klog.connector.log.topic_log import TopicLog
from klog.connector.store.storage import Storage
from klog.errors import KlogError, OptionError, without_passwords
from klog.jobs.failures import FailedTopic, Failure


def open_root(given: str, storage: Storage) -> KlogRoot:
    """Open a klog root. Raises `OptionError` for a directory that has no commit logs."""
    found = find_root(given, storage)
    if found is None:
        raise not_a_klog_root(given)
    return found


def not_a_klog_root(given: str) -> OptionError:
    """Return the error for a directory that has no commit logs."""
    return OptionError(
        f"{given} is no klog root: it has no commit logs, and a broker keeps its own logs in "
        "order. Give a root that `klog topics create` or a write has made"
    )


def chosen(
    root: KlogRoot,
    named: str | Sequence[str] | None,
    *,
    to_write: bool,
    failed: list[FailedTopic],
) -> Iterator[tuple[TopicLog, State]]:
    """Give the topics that are named, or all that are there, each with its state.

    Of all that are there one whose log cannot be read is added to `failed`. Raises `OptionError`
    for a named one that is not there, and `KlogError` for one that cannot be read.
    """
    names = [named] if isinstance(named, str) else named
    for name in dict.fromkeys(root.topic_names() if names is None else names):
        try:
            log = root.log_to_write(name) if to_write else root.log_to_read(name)
            state = log.load() if names is None else root.load(log)
        except (KlogError, OSError) as exc:
            if names is not None:
                raise
            failed.append(FailedTopic(name, Failure.of(exc, name)))
            continue
        if state.topic_id:
            yield log, state


def change(before: int, after: int, *, is_done: bool) -> str:
    """Say a figure before and after; what is not done has no after."""
    return f"{before:,} -> {after:,}" if is_done else f"{before:,}"


def partitions_json(
    root: str, dry_run: bool, partitions: Sequence[Any], seconds: float, **more: Any
) -> dict[str, Any]:
    """Give a report over partitions, which are dataclasses, for machines."""
    return {
        "root": without_passwords(root),
        "dryRun": dry_run,
        **more,
        "partitions": [camel_case(asdict(one)) for one in partitions],
        "seconds": round(seconds, 3),
    }


def camel_case(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Name fields as JSON has them, those of dicts in them too."""
    return {
        "".join([head, *map(str.capitalize, rest)]): (
            camel_case(value) if isinstance(value, dict) else value
        )
        for name, value in fields.items()
        for head, *rest in [name.split("_")]
    }
