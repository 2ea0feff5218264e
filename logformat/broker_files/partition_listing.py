"""Which files of a partition's directory count when a broker loads it.

The rule (docs/format.md, 14, steps 1 and 2; Kafka's `LogLoader`): `.deleted` files are deleted, and
`.cleaned` files are an unfinished cleaning. `.swap` files are a finished one: they replace every
file in the range of offsets that they cover, unless they are at or above a `.cleaned` file; then
they are half of an unfinished split. An index without its log does not count. Unknown names are
left alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from klog.logformat.broker_files.file_names import (
    parse_segment_file,
    parse_snapshot_file,
    parse_transitional_file,
    segment_file_name,
)

LOG = "log"


@dataclass(frozen=True, slots=True)
class PartitionListing:
    """What a broker does with the files of a partition's directory.

    Attributes:
        deleted: The names of files to delete.
        renamed: The swap files to rename after that, and their final names.
        segments: Base offset to suffix to the name that was listed.
        snapshots: Offset to the name that was listed.
    """

    deleted: tuple[str, ...]
    renamed: tuple[tuple[str, str], ...]
    segments: dict[int, dict[str, str]]
    snapshots: dict[int, str]


def resolve_files(names: Iterable[str], next_offset: Callable[[str], int]) -> PartitionListing:
    """Return which files of a directory count.

    Args:
        names: The names of all files in the directory.
        next_offset: Reads the end offset of a `.swap` log, by name; called only if there is one.
    """
    files: dict[tuple[int, str], str] = {}
    swaps: dict[tuple[int, str], str] = {}
    snapshots: dict[int, str] = {}
    deleted: list[str] = []
    cleaned_offsets: list[int] = []
    for name in sorted(names):
        if (segment_key := parse_segment_file(name)) is not None:
            files[segment_key] = name
        elif (snapshot_offset := parse_snapshot_file(name)) is not None:
            snapshots[snapshot_offset] = name
        elif (transitional := parse_transitional_file(name)) is not None:
            offset, suffix, kind = transitional
            if kind == "swap":
                swaps[offset, suffix] = name
            else:
                deleted.append(name)
                cleaned_offsets += [offset] if kind == "cleaned" else []
    unfinished = {key for key in swaps if cleaned_offsets and key[0] >= min(cleaned_offsets)}
    deleted += [swaps.pop(key) for key in unfinished]
    swap_logs = {base: name for (base, suffix), name in swaps.items() if suffix == LOG}
    covered = _covered_offsets(swap_logs, next_offset)
    replaced = {key for key in files if key[0] in covered}
    stale = {offset for offset in snapshots if offset in covered}
    deleted += [files.pop(key) for key in replaced] + [snapshots.pop(key) for key in stale]
    files |= swaps
    without_log = {key for key in files if (key[0], LOG) not in files}
    deleted += [files.pop(key) for key in without_log]
    renamed = [
        (name, segment_file_name(*key)) for key, name in swaps.items() if key not in without_log
    ]
    segments: dict[int, dict[str, str]] = {}
    for (base_offset, suffix), name in sorted(files.items()):
        segments.setdefault(base_offset, {})[suffix] = name
    return PartitionListing(tuple(sorted(deleted)), tuple(sorted(renamed)), segments, snapshots)


def _covered_offsets(swap_logs: dict[int, str], next_offset: Callable[[str], int]) -> range:
    """Return the offsets whose files finished swap logs replace; an empty log covers its base."""
    if not swap_logs:
        return range(0)
    ends = (max(next_offset(name), base_offset + 1) for base_offset, name in swap_logs.items())
    return range(min(swap_logs), max(ends))
