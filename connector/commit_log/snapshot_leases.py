"""Pins: a reader's lease on a version, for a plan that takes longer than the grace.

The rule: while a pin lasts, no segment goes that its version has. A reader that puts none, as
klog's own do not, has the grace alone. A pin that cannot be read keeps everything, for as long as
it lies there.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from klog.connector.commit_log.commit_log import CommitLog
from klog.connector.commit_log.commit_log_paths import MAX_VERSION, is_lease_name
from klog.connector.commit_log.file_size_limits import MAX_SMALL_FILE_BYTES
from klog.connector.commit_log.json_fields import Fields, check_type
from klog.connector.store.readable_store import DirectoryEntry
from klog.errors import InvalidFileError, UnsupportedFormatError
from klog.logformat.broker_files.file_names import MAX_OFFSET

Lease = tuple[DirectoryEntry, int, int]
"""A pin's file, its version and when it ends."""


def take_lease(log: CommitLog, pin_id: str, version: int, lease_ms: int) -> None:
    """Keep the segments of a version for a while, for a reader that takes longer than the grace.

    `pin_id` is new for each pin: 8 to 64 letters, digits, dashes and underscores, such as an id of
    `author.random_uuid`; others, which no vacuum would look at, are a `ValueError`.
    """
    if not is_lease_name(f"{pin_id}.json"):
        raise ValueError(f"{pin_id!r} is no id of a pin: 8 to 64 of A-Z a-z 0-9 _ -")
    said = {"version": version, "expiresMs": log.clock() + lease_ms}
    log.store.put(log.paths.lease(pin_id), [json.dumps(said).encode()])


def release_lease(log: CommitLog, pin_id: str) -> None:
    """Give a pin back before it ends."""
    log.store.delete(log.paths.lease(pin_id))


def leased_versions(log: CommitLog) -> list[tuple[str, int]]:
    """Return each pin's file name and version, ended ones too; 0 of one that cannot be read."""
    return [(entry.name, version) for entry, version, _ in read_leases(log)]


def min_leased_version(log: CommitLog, pins: Iterable[Lease]) -> int | None:
    """Return the oldest version that a pin keeps; a pin that cannot be read keeps version 0."""
    now_ms = log.clock()
    return min((version for _, version, ends_ms in pins if ends_ms >= now_ms), default=None)


def read_leases(log: CommitLog) -> list[Lease]:
    """Read all pins: their files, versions and ends; one that cannot be read never ends."""
    found = []
    for entry in log.entries(log.paths.leases):
        if not is_lease_name(entry.name):
            continue
        try:
            said = json.loads(
                log.store.read(f"{log.paths.leases}/{entry.name}", MAX_SMALL_FILE_BYTES)
            )
            fields = Fields(check_type("pin", said, dict))
            version, ends_ms = fields.number("version", MAX_VERSION), fields.number("expiresMs")
            found.append((entry, version, ends_ms))
        except FileNotFoundError:
            continue
        except (ValueError, RecursionError, InvalidFileError, UnsupportedFormatError):
            found.append((entry, 0, MAX_OFFSET))
    return found


def delete_expired_leases(log: CommitLog, limit_ms: int) -> None:
    """Delete the pins of readers that never gave them back and were not renewed for long."""
    for entry, _, ends_ms in read_leases(log):
        if ends_ms < limit_ms and not entry.link:
            log.store.delete(f"{log.paths.leases}/{entry.name}")
