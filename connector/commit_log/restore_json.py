"""Holes and restores as JSON, in a commit and in a checkpoint (docs/commit-protocol.md, Restore).

The rule: offsets by partition have the partition as text in a commit, and are pairs in the metadata
of a checkpoint, as its other offsets are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from klog.connector.commit_log.commit import Hole, Restore
from klog.connector.commit_log.commit_log_paths import MAX_VERSION
from klog.connector.commit_log.json_fields import Fields
from klog.connector.commit_log.past_restores import PastRestore
from klog.errors import UnsupportedFormatError
from klog.logformat.broker_files.file_names import MAX_PARTITION


def hole_to_json(hole: Hole) -> dict[str, int]:
    """Return the fields of a hole in a commit.

    Args:
        hole: The hole.
    """
    return {
        "partition": hole.partition,
        "baseOffset": hole.base_offset,
        "nextOffset": hole.next_offset,
    }


def hole_from_json(fields: Mapping[str, Any]) -> Hole:
    """Parse a hole, whose fields may be anything.

    Args:
        fields: The JSON object.

    Raises:
        UnsupportedFormatError: A field is not what it must be.
    """
    hole_fields = Fields(fields)
    hole = Hole(
        hole_fields.number("partition", MAX_PARTITION),
        hole_fields.number("baseOffset"),
        hole_fields.number("nextOffset"),
    )
    if hole.next_offset <= hole.base_offset:
        raise UnsupportedFormatError(
            f"a hole of partition {hole.partition} is from {hole.base_offset} to {hole.next_offset}"
        )
    return hole


def restore_to_json(restore: Restore) -> dict[str, Any]:
    """Return the fields of a restore in a commit; empty ones are left out.

    Args:
        restore: The restore.
    """
    fields: dict[str, Any] = {
        "logStart": by_text(restore.log_start),
        "logEnd": by_text(restore.log_end),
        "cleanedTo": by_text(restore.cleaned_to),
        "holes": [hole_to_json(hole) for hole in restore.holes] or None,
    }
    present = {name: value for name, value in fields.items() if value is not None}
    return {"version": restore.version, **present}


def restore_from_json(fields: Fields) -> Restore:
    """Parse the restore of a commit.

    Args:
        fields: The fields, whose values may be anything.

    Raises:
        UnsupportedFormatError: A field is not what it must be.
    """
    return Restore(
        version=fields.number("version", MAX_VERSION),
        log_start=fields.by_partition("logStart"),
        log_end=fields.by_partition("logEnd"),
        cleaned_to=fields.by_partition("cleanedTo"),
        holes=tuple(map(hole_from_json, fields.objects("holes"))),
    )


def past_restore_to_json(restore: PastRestore) -> dict[str, Any]:
    """Return the fields of a past restore in a checkpoint.

    Args:
        restore: The restore.
    """
    return {
        "version": restore.version,
        "restored_version": restore.restored_version,
        "log_end": [list(pair) for pair in restore.log_end.items()],
    }


def past_restore_from_json(fields: Fields) -> PastRestore:
    """Parse a past restore of a checkpoint.

    Args:
        fields: The fields, whose values may be anything.

    Raises:
        UnsupportedFormatError: A field is not what it must be.
    """
    return PastRestore(
        fields.number("version", MAX_VERSION),
        fields.number("restored_version", MAX_VERSION),
        fields.pairs("log_end", MAX_PARTITION),
    )


def by_text(numbers: Mapping[int, int]) -> dict[str, int] | None:
    """Return numbers by partition as JSON has them; None if there are none.

    Args:
        numbers: The numbers.
    """
    return {str(partition): number for partition, number in numbers.items()} or None
