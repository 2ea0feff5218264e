"""Damage to a COPY of a real partition directory, one function for each kind seen on brokers.

The rule: a function changes one thing, names the row of docs/format.md, 19, that it stands for,
says what a broker does and what klog must answer, and returns the damaged spot. Files of a crash
and foreign files are in `crash_files.py`, hostile batches in `hostile.py`.
"""

from __future__ import annotations

import shutil
import struct
from dataclasses import dataclass
from pathlib import Path

HEADER_BYTES = 61
CONTROL = 0x20
INDEX_ENTRY = struct.Struct(">ii")
ABORTED_ENTRY = struct.Struct(">hqqqq")


@dataclass(frozen=True, slots=True)
class Spot:
    """Where the damage begins."""

    file: Path
    position: int  # bytes
    offset: int  # of the first damaged record, or of the next record to be written


@dataclass(frozen=True, slots=True)
class BatchAt:
    """A complete v2 batch in a `.log`."""

    position: int
    size: int
    base_offset: int
    last_offset: int
    attributes: int

    @property
    def is_control(self) -> bool:
        """Whether it is a transaction marker."""
        return bool(self.attributes & CONTROL)


def copy(partition: Path, into: Path) -> Path:
    """Copy a partition directory and the files of its log dir; return the copied directory."""
    log_dir = into / partition.parent.name
    log_dir.mkdir(parents=True, exist_ok=True)
    for path in partition.parent.iterdir():
        if path.is_file():
            shutil.copyfile(path, log_dir / path.name)
    return Path(shutil.copytree(partition, log_dir / partition.name))


def unclean(partition: Path) -> None:
    """Remove the clean-shutdown marker and the recovery point: a broker then recovers all logs."""
    for name in (".kafka_cleanshutdown", "recovery-point-offset-checkpoint"):
        (partition.parent / name).unlink(missing_ok=True)


def segments(partition: Path) -> list[Path]:
    """Return the `.log` files by base offset; the last is the active one."""
    return sorted(partition.glob("*.log"))


def batches(log: Path) -> list[BatchAt]:
    """Return the complete batches from the start, up to zeros or the end, without checking CRCs."""
    data = log.read_bytes()
    result = []
    position = 0
    while position + HEADER_BYTES <= len(data):
        base, length = struct.unpack_from(">qi", data, position)
        attributes, last_delta = struct.unpack_from(">hi", data, position + 21)
        if length < HEADER_BYTES - 12 or position + 12 + length > len(data):
            break
        result.append(BatchAt(position, 12 + length, base, base + last_delta, attributes))
        position += 12 + length
    return result


def flip_bit(partition: Path, segment: int = 0) -> Spot:
    """25: flip a bit in the last byte of a segment's middle batch.

    A broker truncates there at an unclean start and deletes every later segment; after a clean
    stop it notices nothing. klog: an error with file and position, nothing after it dropped.
    """
    log, batch = _middle(partition, segment)
    data = bytearray(log.read_bytes())
    data[batch.position + batch.size - 1] ^= 0x01
    log.write_bytes(data)
    return Spot(log, batch.position, batch.base_offset)


def set_magic(partition: Path, magic: int = 3, segment: int = 0) -> Spot:
    """26: write another magic into a segment's middle batch; the CRC does not cover it.

    Recovery and the dump tool pass it, a consumer fails. klog: corruption.
    """
    log, batch = _middle(partition, segment)
    _patch(log, batch.position + 16, bytes([magic]))
    return Spot(log, batch.position, batch.base_offset)


def set_base_offset(partition: Path, base_offset: int, segment: int = 0) -> Spot:
    """26: rewrite the base offset of a segment's middle batch; the CRC does not cover it.

    klog: corruption, both for an offset that does not increase and one past the next segment.
    """
    log, batch = _middle(partition, segment)
    _patch(log, batch.position, struct.pack(">q", base_offset))
    return Spot(log, batch.position, batch.base_offset)


def remove_txnindex(partition: Path) -> list[Path]:
    """27: remove every `.txnindex`; return their former paths.

    After a clean stop the broker serves aborted records to read_committed. klog: hides them.
    """
    indexes = sorted(partition.glob("*.txnindex"))
    for path in indexes:
        path.unlink()
    return indexes


def empty_txnindex(partition: Path) -> Spot:
    """27: the first `.txnindex` is there but empty. klog: the control batches decide."""
    return _write_txnindex(partition, b"")


def tear_txnindex(partition: Path) -> Spot:
    """27: the first `.txnindex` ends inside an entry. klog: the control batches decide."""
    return _write_txnindex(partition, _first(partition, "txnindex").read_bytes()[:-5])


def version_txnindex(partition: Path) -> Spot:
    """27: the first `.txnindex` has an entry of version 7. klog: the control batches decide."""
    return _write_txnindex(partition, b"\x00\x07" + _first(partition, "txnindex").read_bytes()[2:])


def falsify_txnindex(partition: Path) -> Spot:
    """27: the first `.txnindex` names an unknown producer and a marker below its segment.

    A broker calls the index corrupt and recovers the segment. klog: the control batches decide.
    """
    return _write_txnindex(partition, ABORTED_ENTRY.pack(0, 1 << 40, -9, -5, -4))


def point_index_past_end(partition: Path) -> Spot:
    """28: the active `.index` gets an entry after the end of the log, at its last offset.

    After a clean stop the broker silently drops the tail. klog: reads it.
    """
    log = segments(partition)[-1]
    last = batches(log)[-1]
    index = log.with_suffix(".index")
    relative = last.last_offset - int(log.stem)
    end = log.stat().st_size
    index.write_bytes(index.read_bytes() + INDEX_ENTRY.pack(relative, end + 4096))
    return Spot(index, index.stat().st_size - INDEX_ENTRY.size, last.base_offset)


def tear_index(partition: Path, segment: int = 0) -> Spot:
    """28: an `.index` whose size is not a multiple of 8. klog: reads every record."""
    index = segments(partition)[segment].with_suffix(".index")
    content = index.read_bytes()
    index.write_bytes(content[:-3] if content else b"\x00\x00\x00")
    return Spot(index, len(content), int(index.stem))


def pad_index(partition: Path, segment: int = 0, padding_bytes: int = 4096) -> Spot:
    """3, 28: zeros after the entries of an `.index`, as a kill leaves it.

    A broker counts 8 zero bytes as an entry. klog: reads every record.
    """
    index = segments(partition)[segment].with_suffix(".index")
    size = index.stat().st_size
    _append(index, bytes(padding_bytes))
    return Spot(index, size, int(index.stem))


def lose_marker(partition: Path) -> Spot:
    """29: cut the last transaction marker off the end of the log, and all that follows it.

    The transaction is open again: read_committed stops before its first record, in both.
    """
    for log in reversed(segments(partition)):
        markers = [batch for batch in batches(log) if batch.is_control]
        if markers:
            _drop(partition, segments(partition).index(log) + 1)
            _truncate(log, markers[-1].position)
            return Spot(log, markers[-1].position, markers[-1].base_offset)
    raise ValueError(f"{partition} has no transaction marker")


def append_zeros(partition: Path, count: int = 4096) -> Spot:
    """30: a zero tail on the active segment. A broker truncates it; klog ignores it."""
    return _append_tail(partition, bytes(count))


def append_invalid_bytes(partition: Path, count: int = 500) -> Spot:
    """30: a tail that is not a batch. A broker truncates it at an unclean start.

    klog: the log ends before it, because it claims more bytes (0x5a5a5a5a) than the file has.
    """
    return _append_tail(partition, b"\x5a" * count)


def tear_last_batch(partition: Path, kept_bytes: int) -> Spot:
    """30: keep only the first bytes of the active segment's last batch.

    A broker truncates them at an unclean start. klog: the records before it, no error.
    """
    log = segments(partition)[-1]
    last = batches(log)[-1]
    if not 0 < kept_bytes < last.size:
        raise ValueError(f"the last batch has {last.size} bytes: keep fewer and at least one")
    _truncate(log, last.position + kept_bytes)
    return Spot(log, last.position, last.base_offset)


def tear_first_batch(partition: Path, kept_bytes: int = 30) -> Spot:
    """30: no complete batch is left in the active segment. A broker leaves a 0-byte `.log`.

    klog: the log ends at the active segment's base offset, no error.
    """
    log = segments(partition)[-1]
    _truncate(log, kept_bytes)
    return Spot(log, 0, int(log.stem))


def tear_inside(partition: Path, segment: int = 0, kept_bytes: int = 30) -> Spot:
    """25: the last batch of a segment that is NOT the active one is torn. klog: an error."""
    log = segments(partition)[segment]
    if log == segments(partition)[-1]:
        raise ValueError(f"{log} is the active segment")
    last = batches(log)[-1]
    _truncate(log, last.position + kept_bytes)
    return Spot(log, last.position, last.base_offset)


def lose_segment(partition: Path, segment: int = 1) -> Spot:
    """30: remove a middle segment with its indexes and its snapshot.

    A broker serves the gap without a warning, as compacted logs have gaps. klog must report it;
    the spot is the first lost offset.
    """
    log = segments(partition)[segment]
    offset = int(log.stem)
    for path in list(partition.glob(f"{log.stem}.*")):
        path.unlink()
    return Spot(log, 0, offset)


def _middle(partition: Path, segment: int) -> tuple[Path, BatchAt]:
    log = segments(partition)[segment]
    log_batches = batches(log)
    if len(log_batches) < 3:
        raise ValueError(f"{log} has {len(log_batches)} batches, none in the middle")
    return log, log_batches[len(log_batches) // 2]


def _first(partition: Path, suffix: str) -> Path:
    return min(partition.glob(f"*.{suffix}"))


def _write_txnindex(partition: Path, content: bytes) -> Spot:
    index = _first(partition, "txnindex")
    index.write_bytes(content)
    return Spot(index, 0, int(index.stem))


def _append_tail(partition: Path, tail: bytes) -> Spot:
    log = segments(partition)[-1]
    log_batches = batches(log)
    size = log.stat().st_size
    _append(log, tail)
    return Spot(log, size, log_batches[-1].last_offset + 1 if log_batches else int(log.stem))


def _drop(partition: Path, first: int) -> None:
    for log in segments(partition)[first:]:
        for path in list(partition.glob(f"{log.stem}.*")):
            path.unlink()


def _patch(path: Path, position: int, content: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(position)
        file.write(content)


def _append(path: Path, content: bytes) -> None:
    with path.open("ab") as file:
        file.write(content)


def _truncate(path: Path, size: int) -> None:
    with path.open("r+b") as file:
        file.truncate(size)
