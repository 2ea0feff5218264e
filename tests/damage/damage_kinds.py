"""Kinds of damage besides those seen on brokers: by hardware, an operator or a bad writer.

Each changes one thing in a copy of a partition directory; `tests/corpus/damage.py` has the others.
"""

from __future__ import annotations

import struct
from pathlib import Path

from tests.corpus import scene
from tests.corpus.damage import ABORTED_ENTRY, INDEX_ENTRY, Spot, batches, segments
from tests.damage.damage_cases import MARKER, RECOVERY_POINT, Hurt


def unmarked(hurt: Hurt, recovery_point: int | None = None) -> Hurt:
    """Take the clean-shutdown marker away as well, and let the broker have flushed to an offset.

    None leaves the recovery point as the scene's broker wrote it.
    """

    def done(directory: Path) -> object:
        (directory.parent / MARKER).unlink(missing_ok=True)
        if recovery_point is not None:
            write_checkpoint(directory, RECOVERY_POINT, recovery_point)
        return hurt(directory)

    return done


def both(first: Hurt, second: Hurt) -> Hurt:
    """Do one damage, then another; the spot is the first one's."""

    def done(directory: Path) -> object:
        spot = first(directory)
        second(directory)
        return spot

    return done


def write_checkpoint(directory: Path, name: str, offset: int) -> None:
    """Write a checkpoint file of the log dir that knows this partition only."""
    topic, _, number = directory.name.rpartition("-")
    (directory.parent / name).write_text(f"0\n1\n{topic} {number} {offset}\n")


def rolled(hurt: Hurt, *contents: bytes) -> Hurt:
    """Damage the last segment of a broker that had just rolled: add segments of `contents`.

    Their indexes are preallocated, as a broker that was killed leaves them.
    """

    def done(directory: Path) -> object:
        end = batches(segments(directory)[-1])[-1].last_offset + 1
        spot = hurt(directory)
        for number, content in enumerate(contents):
            log = directory / f"{end + 10 * number:020}.log"
            log.write_bytes(content)
            for suffix in (".index", ".timeindex"):
                log.with_suffix(suffix).write_bytes(bytes(4092))
        return spot

    return done


def flip(segment: int, batch: int, byte: int = -1, bit: int = 0) -> Hurt:
    """Flip a bit of a batch: `byte` counts from its start, or its end where negative."""

    def done(directory: Path) -> Spot:
        log = segments(directory)[segment]
        at = batches(log)[batch]
        data = bytearray(log.read_bytes())
        data[at.position + byte % at.size] ^= 1 << bit
        log.write_bytes(data)
        return Spot(log, at.position, at.base_offset)

    return done


def zero(segment: int, batch: int) -> Hurt:
    """Write zeros over a batch, as a page that never reached the disk."""

    def done(directory: Path) -> Spot:
        log = segments(directory)[segment]
        at = batches(log)[batch]
        data = bytearray(log.read_bytes())
        data[at.position : at.position + at.size] = bytes(at.size)
        log.write_bytes(data)
        return Spot(log, at.position, at.base_offset)

    return done


def move(segment: int, batch: int, base_offset: int) -> Hurt:
    """Rewrite the base offset of any batch; it lies outside the CRC."""

    def done(directory: Path) -> Spot:
        log = segments(directory)[segment]
        at = batches(log)[batch]
        data = bytearray(log.read_bytes())
        struct.pack_into(">q", data, at.position, base_offset)
        log.write_bytes(data)
        return Spot(log, at.position, at.base_offset)

    return done


def write_index(segment: int, entries: list[tuple[int, int]]) -> Hurt:
    """Write an `.index` of these (relative offset, position)."""

    def done(directory: Path) -> None:
        content = b"".join(INDEX_ENTRY.pack(*entry) for entry in entries)
        segments(directory)[segment].with_suffix(".index").write_bytes(content)

    return done


def write_aborted(producer: int, first: int, marker: int) -> Hurt:
    """Write a first `.txnindex` with one entry: its marker ought to lie in its segment."""

    def done(directory: Path) -> None:
        entry = ABORTED_ENTRY.pack(0, producer, first, marker, marker + 1)
        segments(directory)[0].with_suffix(".txnindex").write_bytes(entry)

    return done


def take_from(segment: int, other: int, suffix: str) -> Hurt:
    """Replace the index file of a segment with that of another one."""

    def done(directory: Path) -> None:
        logs = segments(directory)
        content = logs[other].with_suffix(suffix).read_bytes()
        logs[segment].with_suffix(suffix).write_bytes(content)

    return done


def shorten(suffix: str, segment: int, size: int) -> Hurt:
    """Cut bytes off the end of a file of a segment."""

    def done(directory: Path) -> None:
        path = segments(directory)[segment].with_suffix(suffix)
        content = path.read_bytes()
        assert len(content) >= size
        path.write_bytes(content[:-size])

    return done


def remove(*patterns: str) -> Hurt:
    """Remove the files of a partition directory that match."""

    def done(directory: Path) -> None:
        paths = [path for pattern in patterns for path in directory.glob(pattern)]
        assert paths
        for path in paths:
            path.unlink()

    return done


def append(tail: bytes) -> Hurt:
    """Append bytes to the active segment; the spot is after its last batch."""

    def done(directory: Path) -> Spot:
        log = segments(directory)[-1]
        last = batches(log)[-1]
        size = log.stat().st_size
        log.write_bytes(log.read_bytes() + tail)
        return Spot(log, size, last.last_offset + 1)

    return done


def write_in_log_dir(name: str, content: bytes) -> Hurt:
    """Write a file next to the partition directories."""
    return lambda directory: (directory.parent / name).write_bytes(content)


def later_scene(name: str, topic: str) -> Path:
    """Return the same partition in a later scene."""
    return scene(name).partition_dir(topic, 0)


def fill_with_zeros(directory: Path, pattern: str, zeros: int) -> None:
    """Write nothing but zeros into the files that match."""
    for path in directory.glob(pattern):
        path.write_bytes(bytes(zeros))


def flip_snapshots(directory: Path) -> None:
    """Flip a bit in the last byte of every producer snapshot."""
    for path in directory.glob("*.snapshot"):
        data = bytearray(path.read_bytes())
        data[-1] ^= 1
        path.write_bytes(data)


def orphan_index(directory: Path) -> None:
    """Leave an index whose log is gone."""
    index = segments(directory)[0].with_suffix(".index")
    (directory / f"{7:020}.index").write_bytes(index.read_bytes())


SEGMENTS = ("records", "segments")  # clean, flushed to 200, five segments of 8 batches
KILLED = ("killed", "killed")  # three segments, the last of two batches, flushed to 80
