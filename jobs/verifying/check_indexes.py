"""Check a segment's indexes: each exists, has its size, and fits the log.

The rule: an index that is missing or has another size than the commit says is a finding, and its
entries are not checked. `shared/index_entry_check.py` checks the entries of the others.
"""

from __future__ import annotations

from klog.connector.commit_log.segment_entries import SegmentEntry
from klog.connector.commit_log.segment_path import index_file_path, parse_segment_path
from klog.connector.store.readable_store import MAX_INDEX_BYTES, ReadableStore
from klog.errors import FileTooLargeError, KlogError
from klog.jobs.shared.index_entry_check import INDEX, TIME_INDEX, IndexCheck
from klog.jobs.verifying.findings import Findings
from klog.logformat.indexes.offset_index import ENTRY as OFFSET_ENTRY
from klog.logformat.indexes.time_index import ENTRY as TIME_ENTRY

_INDEXES = (
    (INDEX, "index_bytes", OFFSET_ENTRY.itemsize),
    (TIME_INDEX, "time_index_bytes", TIME_ENTRY.itemsize),
)


def read_indexes(
    store: ReadableStore, path: str, entry: SegmentEntry, findings: Findings
) -> IndexCheck:
    """Read both indexes of a segment, and return the check of their entries.

    Args:
        store: The store.
        path: The path of the segment's log, as the store spells it.
        entry: The segment's entry.
        findings: Gets what is wrong with the files themselves.
    """
    files: dict[str, bytes] = {}
    for kind, column, entry_bytes in _INDEXES:
        size_bytes = entry[column]
        if not size_bytes:
            continue  # Readers look for none.
        data = _read_index(
            store, index_file_path(path, kind), kind, size_bytes, entry_bytes, findings
        )
        if data is not None:
            files[kind] = data
    named = parse_segment_path(entry["file"])
    base_offset = (
        entry["base_offset"] - entry["offset_shift"] if named is None else named.first_offset
    )
    return IndexCheck(
        files.get(INDEX, b""),
        files.get(TIME_INDEX),
        base_offset,
        is_klogs=entry["origin"] == "append",
    )


def add_index_findings(check: IndexCheck, findings: Findings, *, is_complete: bool) -> None:
    """Add what a check has found.

    Args:
        check: The check, after the log was read.
        findings: The segment's findings.
        is_complete: Whether the whole log could be read.
    """
    for fault in check.faults(is_complete=is_complete):
        findings.add(
            fault.kind, fault.reason, fault.position, file=_index_file(findings, fault.kind)
        )


def _read_index(
    store: ReadableStore,
    path: str,
    kind: str,
    size_bytes: int,
    entry_bytes: int,
    findings: Findings,
) -> bytes | None:
    """Return the bytes of an index, None if it is not what the commit says."""
    file = _index_file(findings, kind)
    try:
        data = store.read(path, min(size_bytes, MAX_INDEX_BYTES))
    except FileNotFoundError:
        reason = f"the file is missing, and the commit log says it has {size_bytes} bytes"
        findings.add("missing", reason, file=file)
        return None
    except FileTooLargeError:
        reason = f"the file has more than the {size_bytes} bytes that the commit log says"
        findings.add(kind, reason, file=file)
        return None
    except (KlogError, OSError) as exc:
        findings.add("unreadable", f"the file cannot be read: {exc}", file=file)
        return None
    if len(data) != size_bytes:
        reason = f"the file has {len(data)} bytes, and the commit log says {size_bytes}"
        findings.add(kind, reason, file=file)
        return None
    if size_bytes % entry_bytes:
        reason = f"the file has {size_bytes} bytes, which are not whole entries of {entry_bytes}"
        findings.add(kind, reason, file=file)
        return None
    return data


def _index_file(findings: Findings, kind: str) -> str:
    return f"{findings.file.removesuffix('.log')}.{kind}"
