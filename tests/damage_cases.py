"""Damage to logs as tables: what is done to a copy of which partition, and what klog answers.

The rule: a row is one damage; what is expected comes from the real consumer's account of the
undamaged scene, cut by offsets, never from klog. `tests/corpus/` holds the damage seen on brokers;
the kinds here are what hardware, an operator or a bad writer could do besides. A name begins with
the line of `kafka-seen.md` that it stands for.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

from klog.connector.log.raw import RawRoot
from klog.connector.options import read_options
from klog.connector.source import scan
from klog.errors import CorruptFileError
from tests.corpus import damage, leftovers, scene
from tests.corpus.damage import ABORTED_ENTRY, INDEX_ENTRY, Spot, batches, copy, segments

LEVELS = ("read_uncommitted", "read_committed")
MARKER = ".kafka_cleanshutdown"
RECOVERY_POINT = "recovery-point-offset-checkpoint"
LOG_START = "log-start-offset-checkpoint"

Levels = dict[str, list[int]]
"""Isolation level to the offsets read at it."""
Hurt = Callable[[Path], object]
"""Damages a partition directory; returns the spot where there is one."""


@dataclass(frozen=True, slots=True)
class Refused:
    """An error that names the damaged file, the position (that of the spot) and says `words`."""

    words: str = ""


Expected = Callable[[Levels, Spot], Levels]


@dataclass(frozen=True, slots=True)
class Case:
    """A row: what is done to a copy of which partition, and what klog must then answer."""

    name: str
    scene: str
    topic: str
    hurt: Hurt
    expected: Expected | Refused
    partition: int = 0

    def damaged(self, into: Path) -> tuple[Path, Spot]:
        """Make the damaged copy; a damage without a spot has one at the log's start."""
        directory = copied(self.scene, self.topic, into, self.partition)
        spot = self.hurt(directory)
        return directory, spot if isinstance(spot, Spot) else Spot(directory, 0, 0)


def copied(scene_name: str, topic: str, into: Path, partition: int = 0) -> Path:
    """Copy a partition with the files of its log dir."""
    return copy(scene(scene_name).partition_dir(topic, partition), into)


@cache
def truth(scene_name: str, topic: str, partition: int = 0) -> Levels:
    """Give the offsets that the real consumer read before the damage."""
    records = [
        r for r in scene(scene_name).records() if (r.topic, r.partition) == (topic, partition)
    ]
    return {
        "read_uncommitted": [r.offset for r in records],
        "read_committed": [r.offset for r in records if r.read_committed],
    }


def read(directory: Path, level: str, roots: list[Path] | None = None, **options: str) -> list[int]:
    """Give the offsets that klog reads of one partition directory, in order.

    `roots` are its log directories where they are not only the one above it.
    """
    topic, _, number = directory.name.rpartition("-")
    paths = [str(root) for root in roots or [directory.parent]]
    given = {"assign": json.dumps({topic: [int(number)]}), "isolationLevel": level, **options}
    parsed = read_options(given)
    root = RawRoot(paths)
    reader = scan.reader(paths, parsed)
    tasks = scan.slices(root, scan.pin(root, parsed), parsed)
    return [
        offset
        for task in tasks
        for rows in reader.read(task)
        for offset in rows.column("offset").to_pylist()
    ]


def read_both(directory: Path, **options: str) -> Levels:
    """Read at both isolation levels."""
    return {level: read(directory, level, None, **options) for level in LEVELS}


def by_partition(directory: Path, offset: int) -> str:
    """Write `startingOffsets` or `endingOffsets` for one partition."""
    topic, _, number = directory.name.rpartition("-")
    return json.dumps({topic: {number: offset}})


def check_refused(error: CorruptFileError, directory: Path, spot: Spot, words: str) -> None:
    """Check that an error says what a user needs: partition, file, position, reason."""
    said = str(error)
    assert (error.path, error.position) == (str(spot.file), spot.position), said
    assert error.topic_partition == directory.name
    for part in (directory.name, str(spot.file), f"position {spot.position}", words):
        assert part in said


def whole(before: Levels, spot: Spot) -> Levels:
    """Expect what was there before the damage."""
    return before


def below(before: Levels, spot: Spot) -> Levels:
    """Expect what lies before the spot."""
    return {level: [o for o in offsets if o < spot.offset] for level, offsets in before.items()}


def nothing(before: Levels, spot: Spot) -> Levels:
    """Expect no record and no error."""
    return {level: [] for level in before}


def stable_below(last_stable_offset: int) -> Expected:
    """Expect what lies before the spot, and of that, read_committed, what is stable."""

    def expected(before: Levels, spot: Spot) -> Levels:
        cut = below(before, spot)
        stable = [o for o in cut["read_committed"] if o < last_stable_offset]
        return {**cut, "read_committed": stable}

    return expected


def without(first: int, last: int) -> Expected:
    """Expect all but the offsets from `first` to `last`."""

    def expected(before: Levels, spot: Spot) -> Levels:
        return {
            level: [o for o in offsets if not first <= o <= last]
            for level, offsets in before.items()
        }

    return expected


def replaced(later: str, topic: str, first: int, last: int) -> Expected:
    """Expect the truth of a later scene for these offsets, and the own one for the others."""

    def expected(before: Levels, spot: Spot) -> Levels:
        cleaned = truth(later, topic)
        kept = without(first, last)(before, spot)
        return {
            level: sorted(kept[level] + [o for o in cleaned[level] if first <= o <= last])
            for level in before
        }

    return expected


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
    """Give a segment the index file of another one."""

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
        found = [path for pattern in patterns for path in directory.glob(pattern)]
        assert found
        for path in found:
            path.unlink()

    return done


def append(tail: bytes) -> Hurt:
    """Append bytes to the active segment; the spot is behind its last batch."""

    def done(directory: Path) -> Spot:
        log = segments(directory)[-1]
        last = batches(log)[-1]
        size = log.stat().st_size
        log.write_bytes(log.read_bytes() + tail)
        return Spot(log, size, last.last_offset + 1)

    return done


def write_in_log_dir(name: str, content: bytes) -> Hurt:
    """Write a file beside the partition directories."""
    return lambda directory: (directory.parent / name).write_bytes(content)


def later_scene(name: str, topic: str) -> Path:
    """Give the same partition in a later scene."""
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
ZEROS = ("killed", "killed.preallocated")  # one segment, zeros behind 10 batches, nothing flushed
TXN = ("transactions", "txn.interleaved")  # clean, nine segments, stable to 257
COMPACTED = ("compacted-before", "compacted")
LENGTH, MAGIC, COUNT = 8, 16, 57  # bytes of a batch's header

DAMAGED_BATCHES = [
    Case("25 in the middle", *SEGMENTS, damage.flip_bit, Refused("CRC-32C")),
    Case("25 the first batch", *SEGMENTS, flip(0, 0), Refused("CRC-32C")),
    Case("25 a segment in the middle", *SEGMENTS, flip(2, 5, 100), Refused("CRC-32C")),
    Case("25 the last batch of a rolled segment", *SEGMENTS, flip(1, -1), Refused("CRC-32C")),
    Case("25 the middle of the active segment", *SEGMENTS, flip(-1, 4), Refused("CRC-32C")),
    Case("25 unclean, in the middle", *SEGMENTS, unmarked(damage.flip_bit, 0), Refused("CRC-32C")),
    Case("25 unclean, first batch of all", *SEGMENTS, unmarked(flip(0, 0), 0), Refused("CRC-32C")),
    Case("25 unclean, active segment, an intact batch behind", *KILLED, flip(-1, 0), Refused()),
    Case("25 last batch, clean", *SEGMENTS, flip(-1, -1), Refused("flushed")),
    Case("25 last batch, flushed", *SEGMENTS, unmarked(flip(-1, -1)), Refused("flushed")),
    Case("30 last batch, not flushed", *SEGMENTS, unmarked(flip(-1, -1), 195), below),
    Case("30 last batch of a killed broker", *KILLED, flip(-1, -1), below),
    Case("30 last two batches, not flushed", *SEGMENTS,
         unmarked(both(flip(-1, -2), flip(-1, -1)), 190), below),
    Case("30 last batch, not flushed, zeros behind", *ZEROS, flip(0, -1), below),
    Case("30 last batch, not flushed, a torn one behind", *KILLED,
         both(flip(-1, -1), append(b"\x5a" * 500)), below),
    Case("30 last batch, not flushed, garbage that is not cut short behind", *KILLED,
         both(flip(-1, -1), append(b"\xff" * 500)), below),
    Case("25 length of a rolled segment's batch", *SEGMENTS, flip(0, 4, LENGTH, 3), Refused()),
    Case("25 length reaches past the active segment", *SEGMENTS, flip(-1, 4, LENGTH, 3), Refused()),
    Case("25 the same, unclean", *SEGMENTS, unmarked(flip(-1, 4, LENGTH, 3), 0), Refused()),
    Case("25 the same, unclean, first batch", *KILLED, flip(-1, 0, LENGTH, 3), Refused()),
    Case("25 length too short", *SEGMENTS, flip(-1, 4, LENGTH + 3, 5), Refused()),
    Case("25 length below a header", *SEGMENTS, flip(0, 4, LENGTH, 7), Refused("length")),
    Case("25 count of records", *SEGMENTS, flip(0, 4, COUNT + 3), Refused()),
    Case("26 magic 3", *SEGMENTS, damage.set_magic, Refused("magic 3")),
    Case("26 magic 3, active segment", *SEGMENTS, partial(damage.set_magic, segment=-1),
         Refused("magic 3")),
    Case("26 magic 3, last batch, not flushed", *KILLED, flip(-1, -1, MAGIC), Refused("magic 3")),
    Case("26 magic 3, first batch", *SEGMENTS, flip(0, 0, MAGIC), Refused("magic 3")),
    Case("26 magic 0", *SEGMENTS, partial(damage.set_magic, magic=0), Refused()),
    Case("26 magic 1, active segment", *SEGMENTS,
         partial(damage.set_magic, magic=1, segment=-1), Refused()),
    Case("26 base offset does not rise", *SEGMENTS, move(0, 4, 17), Refused("behind offset 19")),
    Case("26 base offset of the first batch below its segment", *SEGMENTS, move(1, 0, 35),
         Refused()),
    Case("26 base offset in the next segment", *SEGMENTS, move(0, -1, 45), Refused()),
    Case("26 the last offset in the next segment", *SEGMENTS, move(0, -1, 36), Refused()),
    Case("26 base offset far behind the log", *SEGMENTS, move(3, -1, 1 << 40), Refused()),
    Case("26 base offset no index can hold", *SEGMENTS, move(-1, -1, 1 << 40), Refused()),
    Case("26 base offset below 0", *SEGMENTS, move(0, 0, -5), Refused()),
    Case("26 base offset of the active segment's first batch", *KILLED, move(-1, 0, 79), Refused()),
]  # fmt: skip

TAILS = [
    Case("30 zeros, clean", *SEGMENTS, damage.append_zeros, whole),
    Case("30 zeros", *KILLED, damage.append_zeros, whole),
    Case("30 more zeros than are searched at once", *KILLED,
         partial(damage.append_zeros, count=(4 << 20) + 100), whole),
    Case("30 one zero", *KILLED, partial(damage.append_zeros, count=1), whole),
    Case("30 zeros of a header", *KILLED, partial(damage.append_zeros, count=61), whole),
    Case("30 preallocated", *ZEROS, lambda directory: None, whole),
    Case("30 garbage, clean", *SEGMENTS, damage.append_garbage, whole),
    Case("30 garbage", *KILLED, damage.append_garbage, whole),
    Case("30 garbage of a negative length", *KILLED, append(b"\xff" * 300), whole),
    Case("30 garbage in zeros", *KILLED, append(bytes(100) + b"\x5a" * 100 + bytes(100)), whole),
    Case("30 an open transaction before garbage", "killed", "killed.txn", damage.append_garbage,
         whole),
    Case("30 an open transaction before zeros", "killed", "killed.txn", damage.append_zeros, whole),
    Case("30 an open transaction before a torn batch", "transactions", "txn.open",
         unmarked(append(bytes(7) + b"\x35\x00\x00\x01\x00" + bytes(4) + b"\x02" + bytes(60)), 0),
         whole),
    Case("30 torn first batch", *KILLED, damage.tear_first_batch, below),
    Case("30 torn first batch of all", *SEGMENTS,
         unmarked(damage.tear_first_batch, 0), nothing, 1),
    Case("30 torn first batch of all, past its header", *SEGMENTS,
         unmarked(partial(damage.tear_first_batch, kept_bytes=200), 0), nothing, 1),
    Case("30 empty active segment", *KILLED, partial(damage.tear_first_batch, kept_bytes=0), below),
    Case("30 last batch of transactions torn", "transactions", "txn.java",
         unmarked(partial(damage.tear_last_batch, kept_bytes=50), 0), stable_below(60)),
    Case("25 rolled segment torn", *SEGMENTS, damage.tear_inside, Refused()),
    Case("25 rolled segment torn, unclean", *SEGMENTS, unmarked(damage.tear_inside, 0), Refused()),
    Case("25 rolled segment torn in a header", *SEGMENTS,
         partial(damage.tear_inside, segment=3, kept_bytes=7), Refused()),
    Case("25 segment torn before an empty active one", *SEGMENTS,
         both(partial(damage.tear_inside, segment=-2),
              partial(damage.tear_first_batch, kept_bytes=0)), Refused()),
    Case("25 a rolled segment's last batch is zeros", *SEGMENTS, zero(1, -1), Refused()),
    Case("25 zeros before an intact batch", *KILLED, zero(-1, 0), Refused()),
    Case("25 last batch is zeros, flushed", *SEGMENTS, zero(-1, -1), Refused()),
    Case("30 last batch is zeros, not flushed", *KILLED, zero(-1, -1), below),
    Case("25 last batch torn, clean", *SEGMENTS,
         partial(damage.tear_last_batch, kept_bytes=100), Refused()),
    Case("25 last batch torn, unclean but flushed", *SEGMENTS,
         unmarked(partial(damage.tear_last_batch, kept_bytes=100)), Refused()),
    Case("30 a segment lost", *SEGMENTS, damage.lose_segment, without(40, 79)),
    Case("30 the first segment lost", *SEGMENTS, partial(damage.lose_segment, segment=0),
         without(0, 39)),
]  # fmt: skip

TRANSACTIONS = [
    Case(f"27 {how} in {name} {topic}-{partition}", name, topic, hurt, whole, partition)
    for how, hurt in (
        ("removed", damage.remove_txnindex),
        ("empty", damage.empty_txnindex),
        ("torn", damage.tear_txnindex),
        ("other version", damage.version_txnindex),
        ("falsified", damage.falsify_txnindex),
        ("an entry lost", shorten(".txnindex", 0, 34)),
        ("snapshots lost", remove("*.snapshot")),
        ("snapshots lost, .txnindex too", remove("*.snapshot", "*.txnindex")),
        ("snapshots flipped", lambda directory: flip_snapshots(directory)),
    )
    for name, topic, partition in (
        ("transactions", "txn.interleaved", 0),
        ("transactions", "txn.aborted", 0),
        ("killed", "killed.txn", 1),
        ("compacted-before", "compacted.txn", 0),
        ("compacted-after", "compacted.txn", 0),
    )
] + [
    Case("27 an entry whose marker lies in no segment of the index", "killed", "killed.txn",
         write_aborted(0, 4, 10**6), whole),
    Case("27 an entry whose marker lies in the next segment", "killed", "killed.txn",
         write_aborted(0, 4, 30), whole),
    Case("29 marker lost: aborted", "transactions", "txn.aborted",
         unmarked(damage.lose_marker, 0), stable_below(10)),
    Case("29 marker lost: committed", "transactions", "txn.fenced",
         unmarked(damage.lose_marker, 0), stable_below(6)),
    Case("29 marker lost: epoch bumped", "transactions", "txn.java",
         unmarked(damage.lose_marker, 0), stable_below(60)),
    Case("29 marker lost: in the last segment", "killed", "killed.txn", damage.lose_marker,
         stable_below(111)),
    Case("29 marker torn", "transactions", "txn.fenced",
         unmarked(partial(damage.tear_last_batch, kept_bytes=77), 0), stable_below(6)),
]  # fmt: skip

INDEXES = [
    Case(f"28 {how} in {topic}", name, topic, hurt, whole)
    for how, hurt in (
        ("past the end", damage.point_index_past_end),
        ("past the end, unclean", unmarked(damage.point_index_past_end, 0)),
        ("torn", damage.tear_index),
        ("torn, active", partial(damage.tear_index, segment=-1)),
        ("zeros behind", damage.pad_index),
        ("zeros behind, active", partial(damage.pad_index, segment=-1)),
        ("only zeros", lambda directory: fill_with_zeros(directory, "*.index", 512)),
        ("missing", remove("*.index")),
        ("empty", lambda directory: fill_with_zeros(directory, "*.index", 0)),
        ("an entry lost", shorten(".index", 0, 8)),
        ("all indexes missing", remove("*.index", "*.timeindex")),
        ("into a batch", write_index(0, [(3, 700)])),
        ("into a batch, active", write_index(-1, [(3, 700)])),
        ("into a batch, the last entry right", write_index(0, [(3, 100), (14, 500)])),
        ("falling", write_index(0, [(14, 500), (3, 250)])),
        ("of another segment", take_from(0, 2, ".index")),
        ("of another segment, active", take_from(-1, 1, ".index")),
        ("offsets too low", write_index(0, [(1, 500), (2, 1000)])),
        ("offsets too high", write_index(0, [(24, 500), (34, 1000)])),
        ("offsets far too high", write_index(1, [(10_000, 500), (20_000, 1000)])),
        ("negative", write_index(0, [(-5, -500), (14, 500)])),
        ("without a log", lambda directory: orphan_index(directory)),
    )
    for name, topic in (SEGMENTS, TXN, COMPACTED)
]

LEFTOVERS = [
    Case("30 .deleted", *SEGMENTS, leftovers.leave_deleted, whole),
    Case("30 .deleted of a segment that is gone", *SEGMENTS,
         both(leftovers.leave_deleted, partial(damage.lose_segment, segment=0)), without(0, 39)),
    Case("30 .cleaned", *COMPACTED, leftovers.leave_cleaned, whole),
    Case("30 strangers", *SEGMENTS, leftovers.add_strangers, whole),
    Case("30 a folder named as a segment", *SEGMENTS,
         lambda directory: (directory / f"{500:020}.log").mkdir(), whole),
    Case("30 .swap of the first segment", *COMPACTED,
         lambda d: leftovers.leave_swap(d, later_scene("compacted-after", "compacted"), 0),
         replaced("compacted-after", "compacted", 0, 53)),
    Case("30 .swap of a middle segment", *COMPACTED,
         lambda d: leftovers.leave_swap(d, later_scene("compacted-after", "compacted"), 54),
         replaced("compacted-after", "compacted", 54, 107)),
    Case("30 .swap of several into one", "compacted-after", "compacted",
         lambda d: leftovers.leave_swap(d, later_scene("compacted-again", "compacted"), 0),
         replaced("compacted-again", "compacted", 0, 161)),
    Case("30 .swap of transactions", "compacted-before", "compacted.txn",
         lambda d: leftovers.leave_swap(d, later_scene("compacted-after", "compacted.txn"), 0),
         replaced("compacted-after", "compacted.txn", 0, 36)),
    Case("30 .swap of transactions, several into one", "compacted-after", "compacted.txn",
         lambda d: leftovers.leave_swap(d, later_scene("compacted-again", "compacted.txn"), 0),
         replaced("compacted-again", "compacted.txn", 0, 176)),
    Case("30 .swap below a .cleaned", *COMPACTED,
         both(lambda d: leftovers.leave_swap(d, later_scene("compacted-after", "compacted"), 0),
              partial(leftovers.leave_cleaned, segment=1)),
         replaced("compacted-after", "compacted", 0, 53)),
    Case("30 .swap above a .cleaned is half of a split", *COMPACTED,
         both(lambda d: leftovers.leave_swap(d, later_scene("compacted-after", "compacted"), 54),
              leftovers.leave_cleaned), whole),
    Case("27 .swap renamed but for its indexes", "compacted-before", "compacted.txn",
         lambda d: leftovers.leave_swap_beside_log(
             d, later_scene("compacted-after", "compacted.txn"), 0),
         replaced("compacted-after", "compacted.txn", 0, 36)),
]  # fmt: skip

CHECKPOINTS = [
    Case("6 log start in a segment", *SEGMENTS,
         lambda d: write_checkpoint(d, LOG_START, 17), without(0, 16)),
    Case("6 log start at a segment", *SEGMENTS,
         lambda d: write_checkpoint(d, LOG_START, 120), without(0, 119)),
    Case("6 log start at the end", *SEGMENTS,
         lambda d: write_checkpoint(d, LOG_START, 200), nothing),
    Case("6 log start behind the end", *SEGMENTS,
         lambda d: write_checkpoint(d, LOG_START, 5000), nothing),
    Case("6 log start below the first segment", "records", "retained",
         lambda d: write_checkpoint(d, LOG_START, 5), whole),
    Case("6 log start below 0", *SEGMENTS, lambda d: write_checkpoint(d, LOG_START, -7), whole),
    Case("6 log start larger than any offset", *SEGMENTS,
         lambda d: write_checkpoint(d, LOG_START, 10**30), whole),
    Case("6 log start in an aborted transaction", *TXN,
         lambda d: write_checkpoint(d, LOG_START, 30), without(0, 29)),
    Case("6 checkpoint missing", *SEGMENTS, lambda d: (d.parent / LOG_START).unlink(), whole),
] + [
    Case(f"6 checkpoint {how}", *SEGMENTS, write_in_log_dir(LOG_START, content), whole)
    for how, content in (
        ("empty", b""),
        ("of another version", b"7\n1\nsegments 0 17\n"),
        ("of a wrong count", b"0\n3\nsegments 0 17\n"),
        ("of two fields", b"0\n1\nsegments 17\n"),
        ("not a number", b"0\n1\nsegments 0 x\n"),
        ("not ASCII", b"0\n1\ns\xff\xfe 0 17\n"),
        ("zeros", bytes(64)),
    )
] + [
    Case("25 recovery point unreadable", *SEGMENTS,
         unmarked(both(flip(-1, -1), write_in_log_dir(RECOVERY_POINT, b"\0\0\0"))), below),
]  # fmt: skip

CASES = DAMAGED_BATCHES + TAILS + TRANSACTIONS + INDEXES + LEFTOVERS + CHECKPOINTS
REFUSED = [case for case in CASES if isinstance(case.expected, Refused)]
ANSWERED = [case for case in CASES if not isinstance(case.expected, Refused)]
