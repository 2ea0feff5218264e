"""Fields of reports: for people, a figure before and after; for machines, names in camelCase."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from klog.jobs.shared.job_failures import Failure
from klog.url_secrets import without_passwords


def before_and_after(before: int, after: int, *, is_done: bool) -> str:
    """Return a figure as `before -> after`, or before alone if nothing was done.

    Args:
        before: The figure before the job.
        after: The figure after the job.
        is_done: Whether the job changed anything.
    """
    return f"{before:,} -> {after:,}" if is_done else f"{before:,}"


def partitions_json(
    root: str, dry_run: bool, partitions: Sequence[Any], seconds: float, **more: Any
) -> dict[str, Any]:
    """Return a report over partitions for machines.

    Args:
        root: The root, as the caller gave it.
        dry_run: Whether nothing was written.
        partitions: Dataclasses, one for each partition.
        seconds: How long the job took.
        **more: Other fields of the report.
    """
    return {
        "root": without_passwords(root),
        "dryRun": dry_run,
        **more,
        "partitions": [dataclass_json(partition) for partition in partitions],
        "seconds": round(seconds, 3),
    }


def dataclass_json(value: Any) -> dict[str, Any]:
    """Return the fields of a dataclass, named as JSON has them.

    Args:
        value: The dataclass; its fields have values of JSON, or failures.
    """
    return camel_case({field.name: _as_json(getattr(value, field.name)) for field in fields(value)})


def camel_case(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return values with their names in camelCase.

    Args:
        values: The values by name in snake_case.
    """
    return {
        "".join([head, *map(str.capitalize, tail)]): value
        for name, value in values.items()
        for head, *tail in [name.split("_")]
    }


def _as_json(value: Any) -> Any:
    return value.as_json() if isinstance(value, Failure) else value
