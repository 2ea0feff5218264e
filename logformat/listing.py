"""Which files of a partition's directory count, when a broker loads it.

`.deleted` files are gone, `.cleaned` ones never were. `.swap` files are a finished cleaning: they
take the place of every file that begins in the offsets they cover, unless they are at or above a
`.cleaned` one, when they are half of an unfinished split. An index without its log is nothing.
Names that mean nothing here are left alone. (docs/format.md, 14, steps 1 and 2; Kafka's
`LogLoader`.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from klog.logformat.names import segment_file, segment_name, snapshot_file, transitional_file

LOG = "log"


@dataclass(frozen=True, slots=True)
class Listing:
    """What a broker makes of the names in a directory.

    `deleted` are the names that go, then `renamed` swap files get their final names. `segments`
    gives for each base offset the files by suffix, `snapshots` for each offset the file: both under
    the names that were listed.
    """

    deleted: tuple[str, ...]
    renamed: tuple[tuple[str, str], ...]
    segments: dict[int, dict[str, str]]
    snapshots: dict[int, str]


def arrange(names: Iterable[str], next_offset: Callable[[str], int]) -> Listing:
    """Arrange the names of a directory's files.

    `next_offset` reads the end of a `.swap` log, by name; it is asked only where there is one.
    """
    files: dict[tuple[int, str], str] = {}
    swaps: dict[tuple[int, str], str] = {}
    snapshots: dict[int, str] = {}
    deleted: list[str] = []
    cleaned: list[int] = []
    for name in sorted(names):
        segment, moving, snapshot = segment_file(name), transitional_file(name), snapshot_file(name)
        if segment is not None:
            files[segment] = name
        elif snapshot is not None:
            snapshots[snapshot] = name
        elif moving is not None:
            if moving[2] == "swap":
                swaps[moving[:2]] = name
            else:
                deleted.append(name)
                cleaned += [moving[0]] if moving[2] == "cleaned" else []
    unfinished = {key for key in swaps if cleaned and key[0] >= min(cleaned)}
    deleted += [swaps.pop(key) for key in unfinished]
    covered = _covered(
        {base: name for (base, kind), name in swaps.items() if kind == LOG}, next_offset
    )
    replaced = {key for key in files if key[0] in covered}
    stale = {offset for offset in snapshots if offset in covered}
    deleted += [files.pop(key) for key in replaced] + [snapshots.pop(key) for key in stale]
    files |= swaps
    orphans = {key for key in files if (key[0], LOG) not in files}
    deleted += [files.pop(key) for key in orphans]
    renamed = [(name, segment_name(*key)) for key, name in swaps.items() if key not in orphans]
    segments: dict[int, dict[str, str]] = {}
    for (base, suffix), name in sorted(files.items()):
        segments.setdefault(base, {})[suffix] = name
    return Listing(tuple(sorted(deleted)), tuple(sorted(renamed)), segments, snapshots)


def _covered(logs: dict[int, str], next_offset: Callable[[str], int]) -> range:
    """Give the offsets whose files finished swap logs replace; an empty log its own base alone."""
    if not logs:
        return range(0)
    return range(min(logs), max(max(next_offset(name), base + 1) for base, name in logs.items()))
