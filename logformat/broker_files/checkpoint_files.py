"""The checkpoint files of a broker: a version, a count, a line an entry (docs/format.md, 13).

    0                          0
    2                          2
    my-topic 0 120             0 0
    t.x 11 0                   3 120

On the left an offset checkpoint, `<topic> <partition> <offset>`: `log-start-`, `recovery-point-`,
`replication-` and `cleaner-offset-checkpoint`. On the right `leader-epoch-checkpoint`, `<epoch>
<start offset>`. White space separates fields and may follow the last one. A file that is empty, or
ends before its count, is an empty checkpoint. The `decode` functions raise for a malformed file;
`parse_offset_checkpoint` returns None, as a broker treats such a checkpoint as empty. (Kafka's
`CheckpointFile`.)
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from klog.errors import CorruptRecordError
from klog.logformat.batches.record_batch import MAX_LEADER_EPOCH
from klog.logformat.broker_files.file_names import MAX_OFFSET, MAX_PARTITION
from klog.logformat.broker_files.leader_epochs import NO_EPOCHS, EpochEntry, LeaderEpochs
from klog.logformat.topic_partition import TopicPartition

VERSION = 0
_OFFSET_FIELDS = re.compile(rb"(\S{1,255})[ \t\v\f]+([0-9]{1,19})[ \t\v\f]+([0-9]{1,19})[ \t\v\f]*")
_EPOCH_FIELDS = re.compile(rb"([0-9]{1,19})[ \t\v\f]+([0-9]{1,19})[ \t\v\f]*")
_NUMBER = re.compile(rb"[0-9]{1,19}")


def decode_offset_checkpoint(data: bytes) -> dict[TopicPartition, int]:
    """Decode an offset checkpoint: the offset of each partition.

    Args:
        data: The whole file.

    Raises:
        CorruptRecordError: With the position of the malformed line.
    """
    offsets: dict[TopicPartition, int] = {}
    for position, line in _entries(data):
        fields = _OFFSET_FIELDS.fullmatch(line)
        if fields is None or not line.isascii():
            raise CorruptRecordError("a line that is not `<topic> <partition> <offset>`", position)
        partition, offset = int(fields[2]), int(fields[3])
        if partition > MAX_PARTITION or offset > MAX_OFFSET:
            raise CorruptRecordError(
                f"partition {partition} or offset {offset} is out of range", position
            )
        offsets[TopicPartition(fields[1].decode("ascii"), partition)] = offset
    return offsets


def parse_offset_checkpoint(data: bytes) -> dict[TopicPartition, int] | None:
    """Decode an offset checkpoint; None if it is malformed.

    Args:
        data: The whole file.
    """
    try:
        return decode_offset_checkpoint(data)
    except CorruptRecordError:
        return None


def encode_offset_checkpoint(offsets: Mapping[TopicPartition, int]) -> bytes:
    """Encode an offset checkpoint.

    Args:
        offsets: The offset of each partition; entries keep their order.

    Raises:
        ValueError: For a name with white space, or a negative number.
    """
    lines = [f"{name.topic} {name.partition} {offset}" for name, offset in offsets.items()]
    return _encode_lines(lines, _OFFSET_FIELDS)


def decode_epoch_checkpoint(data: bytes) -> LeaderEpochs:
    """Decode a `leader-epoch-checkpoint`; entries that contradict earlier ones replace them.

    Args:
        data: The whole file.

    Raises:
        CorruptRecordError: With the position of the malformed line.
    """
    return NO_EPOCHS.assign_all(_epoch_starts(data))


def encode_epoch_checkpoint(entries: Iterable[EpochEntry]) -> bytes:
    """Encode a `leader-epoch-checkpoint`.

    Args:
        entries: In order.

    Raises:
        ValueError: For a negative number.
    """
    lines = [f"{entry.epoch} {entry.start_offset}" for entry in entries]
    return _encode_lines(lines, _EPOCH_FIELDS)


def _epoch_starts(data: bytes) -> Iterator[tuple[int, int]]:
    for position, line in _entries(data):
        fields = _EPOCH_FIELDS.fullmatch(line)
        if fields is None:
            raise CorruptRecordError("a line that is not `<epoch> <start offset>`", position)
        epoch, offset = int(fields[1]), int(fields[2])
        if epoch > MAX_LEADER_EPOCH or offset > MAX_OFFSET:
            raise CorruptRecordError(f"epoch {epoch} or offset {offset} is out of range", position)
        yield epoch, offset


def _entries(data: bytes) -> list[tuple[int, bytes]]:
    """Return the lines after the count with their positions; check version and count."""
    lines = []
    position = 0
    for raw_line in data.splitlines(keepends=True):
        lines.append((position, raw_line.rstrip(b"\r\n")))
        position += len(raw_line)
    if not lines:
        return []
    version = _number(*lines[0])
    if version != VERSION:
        raise CorruptRecordError(f"checkpoint version {version}, must be {VERSION}")
    if len(lines) == 1:
        return []
    count = _number(*lines[1])
    if count != len(lines) - 2:
        raise CorruptRecordError(f"{len(lines) - 2} lines where the count is {count}", lines[1][0])
    return lines[2:]


def _number(position: int, line: bytes) -> int:
    if _NUMBER.fullmatch(line) is None:
        raise CorruptRecordError(
            f"the first two lines must be numbers, got {line[:40]!r}", position
        )
    return int(line)


def _encode_lines(lines: list[str], fields: re.Pattern[bytes]) -> bytes:
    """Encode a checkpoint whose lines can be decoded."""
    for line in lines:
        if fields.fullmatch(line.encode()) is None or not line.isascii():
            raise ValueError(f"a checkpoint cannot have the line {line!r}")
    return "".join(f"{line}\n" for line in [str(VERSION), str(len(lines)), *lines]).encode()
