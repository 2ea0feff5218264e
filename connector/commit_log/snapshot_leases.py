"""Snapshot leases: a reader keeps a version for a plan that takes longer than the grace.

The rule: while a lease lasts, vacuum deletes no segment of its version. A reader without a lease,
as klog's own are, has the grace alone. A lease that cannot be read keeps every version until its
file is deleted.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass

from klog.connector.commit_log.commit_log import CommitLog
from klog.connector.commit_log.commit_log_paths import MAX_VERSION, is_lease_name
from klog.connector.commit_log.file_size_limits import MAX_SMALL_FILE_BYTES
from klog.connector.commit_log.json_fields import Fields, check_type
from klog.connector.store.readable_store import DirectoryEntry
from klog.errors import InvalidFileError, UnsupportedFormatError
from klog.logformat.broker_files.file_names import MAX_OFFSET


@dataclass(frozen=True, slots=True)
class Lease:
    """A lease as its file has it.

    Attributes:
        entry: The file.
        version: The version that it keeps.
        ends_ms: The time at which it ends.
    """

    entry: DirectoryEntry
    version: int
    ends_ms: int


def take_lease(log: CommitLog, lease_id: str, version: int, lease_ms: int) -> None:
    """Keep the segments of a version for a while, for a reader that takes longer than the grace.

    Args:
        log: The log of the topic.
        lease_id: Unique to the lease: 8 to 64 letters, digits, dashes and underscores, such as an
            id of `commit_info.random_uuid`.
        version: The version.
        lease_ms: The time that the lease lasts.

    Raises:
        ValueError: The id is not of this form, so that vacuum would not read the lease.
    """
    if not is_lease_name(f"{lease_id}.json"):
        raise ValueError(
            f"{lease_id!r} is not the id of a lease: it has 8 to 64 of A-Z a-z 0-9 _ -"
        )
    fields = {"version": version, "expiresMs": log.clock() + lease_ms}
    log.store.put(log.paths.lease(lease_id), [json.dumps(fields).encode()])


def release_lease(log: CommitLog, lease_id: str) -> None:
    """Delete a lease before it ends.

    Args:
        log: The log of the topic.
        lease_id: The id of the lease.
    """
    log.store.delete(log.paths.lease(lease_id))


def leased_versions(log: CommitLog) -> list[tuple[str, int]]:
    """Return file name and version of each lease, ended ones too.

    Args:
        log: The log of the topic.

    Returns:
        The pairs. The version of a lease that cannot be read is 0.
    """
    return [(lease.entry.name, lease.version) for lease in read_leases(log)]


def min_leased_version(log: CommitLog, leases: Iterable[Lease]) -> int | None:
    """Return the lowest version that a lease keeps; None if there is no lease.

    Args:
        log: The log of the topic.
        leases: The leases. One that cannot be read keeps version 0.
    """
    now_ms = log.clock()
    return min((lease.version for lease in leases if lease.ends_ms >= now_ms), default=None)


def read_leases(log: CommitLog) -> list[Lease]:
    """Read all leases: their files, versions and ends; one that cannot be read never ends.

    Args:
        log: The log of the topic.
    """
    leases = []
    for entry in log.entries(log.paths.leases):
        if not is_lease_name(entry.name):
            continue
        try:
            value = json.loads(
                log.store.read(f"{log.paths.leases}/{entry.name}", MAX_SMALL_FILE_BYTES)
            )
            fields = Fields(check_type("lease", value, dict))
            version, ends_ms = fields.number("version", MAX_VERSION), fields.number("expiresMs")
            leases.append(Lease(entry, version, ends_ms))
        except FileNotFoundError:
            continue
        except (ValueError, RecursionError, InvalidFileError, UnsupportedFormatError):
            leases.append(Lease(entry, 0, MAX_OFFSET))
    return leases


def delete_expired_leases(log: CommitLog, limit_ms: int) -> None:
    """Delete the leases of readers that neither released nor renewed them.

    Args:
        log: The log of the topic.
        limit_ms: Leases that ended before this time are deleted.
    """
    for lease in read_leases(log):
        if lease.ends_ms < limit_ms and not lease.entry.link:
            log.store.delete(f"{log.paths.leases}/{lease.entry.name}")
