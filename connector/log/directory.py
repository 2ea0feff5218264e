"""One partition's directory: which files are its segments, seen as a starting broker sees them.

`.deleted` files are gone, `.cleaned` ones never were. `.swap` files are a finished cleaning: they
take the place of every segment that begins in the offsets they cover, unless they are at or above
a `.cleaned` one, when they are half of an unfinished split (format notes 4.11, steps 1 to 4).
Names that mean nothing here are left alone. Nothing is written.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from klog.connector.store.files import Entry
from klog.logformat.names import segment_file, snapshot_file, transitional_file


@dataclass(frozen=True, slots=True)
class Segment:
    """One segment: its log, and its indexes by suffix where they exist."""

    base_offset: int
    log: Entry
    indexes: dict[str, Entry]


@dataclass(frozen=True, slots=True)
class Directory:
    """What a partition's directory holds: segments by base offset, producer snapshots by offset."""

    path: str
    segments: tuple[Segment, ...]
    snapshots: dict[int, Entry]


def read_directory(
    path: str, entries: list[Entry], next_offset: Callable[[Entry], int]
) -> Directory:
    """Arrange a listing. `next_offset` reads a `.swap` log's end, only where there is one."""
    files: dict[tuple[int, str], Entry] = {}
    swaps: dict[tuple[int, str], Entry] = {}
    cleaned: list[int] = []
    snapshots: dict[int, Entry] = {}
    for entry in entries:
        if entry.is_directory:
            continue
        segment, moving = segment_file(entry.name), transitional_file(entry.name)
        snapshot = snapshot_file(entry.name)
        if segment is not None:
            files[segment] = entry
        elif snapshot is not None:
            snapshots[snapshot] = entry
        elif moving is not None and moving[2] == "swap":
            swaps[moving[0], moving[1]] = entry
        elif moving is not None and moving[2] == "cleaned":
            cleaned.append(moving[0])
    finished = {k: e for k, e in swaps.items() if not cleaned or k[0] < min(cleaned)}
    files = _replaced(files, finished, next_offset)
    by_base: dict[int, dict[str, Entry]] = {}
    for (base, suffix), entry in sorted(files.items()):
        by_base.setdefault(base, {})[suffix] = entry
    segments = [Segment(base, s.pop("log"), s) for base, s in by_base.items() if "log" in s]
    return Directory(path, tuple(segments), snapshots)


def _replaced(
    files: dict[tuple[int, str], Entry],
    swaps: dict[tuple[int, str], Entry],
    next_offset: Callable[[Entry], int],
) -> dict[tuple[int, str], Entry]:
    """Put finished swap files in the place of what they were cleaned from."""
    logs = [(base, entry) for (base, suffix), entry in swaps.items() if suffix == "log"]
    if not logs:
        return files | {k: e for k, e in swaps.items() if (k[0], "log") in files}
    lowest = min(base for base, _ in logs)
    highest = max(max(next_offset(entry), base + 1) for base, entry in logs)
    kept = {key: entry for key, entry in files.items() if not lowest <= key[0] < highest}
    return kept | swaps
