"""Run scripts on a partition's directory: write batches, load it as a broker does, ask.

A script is a list of steps. `write` puts a segment there, its batches made of steps of their own;
`load`, `truncate` and steps that change a file act on the directory; all others are questions,
and a script returns their answers. A batch has one record unless a step has a count; record n of
the log has timestamp 1000 + n unless stated.
"""

from __future__ import annotations

import json
import struct
import tempfile
from collections.abc import Callable
from itertools import accumulate
from pathlib import Path
from typing import Any

from klog.connector.kafka_dir.offset_for_time import offset_for_time
from klog.connector.source.slice_contract import expand_task
from klog.errors import OffsetOutOfRangeError
from klog.logformat.batches.scan_batches import scan_batches
from tests.conformance.log_files import LogFiles, Writer, encoded
from tests.conformance.state_runs import Step
from tests.connector.log_dirs import offsets, open_log, open_segment, plan_tasks, read
from tests.support.broker_loader.leader_epoch_cache import epoch_for
from tests.support.broker_loader.load_partition import Partition
from tests.support.broker_loader.producer_state_manager import ProducerStateManager
from tests.support.broker_loader.split_segment import split

ENDLESS = 1 << 62
ABORTED, OFFSET_ENTRY, TIME_ENTRY = (
    struct.Struct(">hqqqq"),
    struct.Struct(">ii"),
    struct.Struct(">qi"),
)


def script(*steps: Step) -> list[Any]:
    """Return the answers to a script's questions."""
    directory = LogFiles()
    answers = []
    for name, *args in steps:
        if name in QUESTIONS:
            assert directory.partition is not None
            answers.append(QUESTIONS[name](directory.partition, *args))
        else:
            *words, options = args if args and isinstance(args[-1], dict) else (*args, {})
            getattr(directory, name)(*words, **options)
    return answers


def _segments(partition: Partition, suffix: str, entry: struct.Struct) -> list[tuple[int, ...]]:
    """Decode the entries of all segments' indexes, with the base offset of each."""
    return [
        (base, *fields)
        for base, files in partition.segments.items()
        for fields in entry.iter_unpack(files.get(suffix, b""))
    ]


def _producers(partition: Partition) -> dict[int, tuple[int, int, int]]:
    return {
        producer_id: (entry.last_sequence, entry.last_offset, entry.transaction_first_offset)
        for producer_id, entry in partition.producers.producers.items()
    }


def _unstable(partition: Partition) -> int | None:
    """Return the first unstable offset, with the high watermark at the log's end."""
    return partition.producers.first_unstable_offset(partition.log_start)


def _running(partition: Partition, high_watermark: int) -> ProducerStateManager:
    """Replay the log as a running broker does, with a high watermark below its end."""
    state = ProducerStateManager(partition.log_start)
    for log in partition.logs.values():
        state.replay(log, scan_batches(log, 0, len(log)))
    state.raise_high_watermark(high_watermark)
    return state


def _kept(partition: Partition) -> list[int]:
    """List the offsets of the retained batches."""
    retained = []
    for log in partition.logs.values():
        batches = scan_batches(log, 0, len(log))
        spans = zip(batches.base_offsets.tolist(), batches.next_offsets.tolist(), strict=True)
        retained += [offset for begin, end in spans for offset in range(begin, end)]
    return retained


def _read(
    partition: Partition, start: int, end: int | None = None, level: str = "read_uncommitted"
) -> list[int] | str:
    """Read offsets from `start` to before `end` through klog's source, or the error's name."""
    with tempfile.TemporaryDirectory(prefix="klog-") as root:
        _put(partition, Path(root))
        options = {"startingOffsets": json.dumps({"t": {"0": start}}), "isolationLevel": level}
        if end is not None:
            options["endingOffsets"] = json.dumps({"t": {"0": end}})
        try:
            return offsets(read(root, **options))
        except OffsetOutOfRangeError as exc:
            return type(exc).__name__


def _segments_read(partition: Partition, start: int, end: int) -> list[int] | str:
    """List the base offsets of the segments that a plan reads, or the error's name."""
    with tempfile.TemporaryDirectory(prefix="klog-") as root:
        _put(partition, Path(root))
        bounds = {"startingOffsets": start, "endingOffsets": end}
        options = {name: json.dumps({"t": {"0": offset}}) for name, offset in bounds.items()}
        try:
            tasks = plan_tasks([root], isolationLevel="read_uncommitted", **options)
        except OffsetOutOfRangeError as exc:
            return type(exc).__name__
        return sorted({slice_.base_offset for task in tasks for slice_ in expand_task(task)})


def _at_time(partition: Partition, timestamp_ms: int) -> tuple[int, int] | None:
    """Return the offset at a time and the leader epoch it was written in."""
    with tempfile.TemporaryDirectory(prefix="klog-") as root:
        _put(partition, Path(root))
        offset = offset_for_time(open_log(Path(root)), timestamp_ms, ENDLESS)
    return None if offset is None else (offset, epoch_for(partition.epochs, offset))


def _put(partition: Partition, root: Path) -> None:
    (root / ".kafka_cleanshutdown").write_text("{}")
    (root / "t-0").mkdir()
    for name, data in encoded(partition).items():
        (root / "t-0" / name).write_bytes(data)


def _position(partition: Partition, base: int, offset: int) -> int:
    """Return the position at which klog begins to read for an offset."""
    with tempfile.TemporaryDirectory(prefix="klog-") as root:
        _put(partition, Path(root))
        reader = open_segment(Path(root) / "t-0", base)
        try:
            return reader.position_before(offset)
        finally:
            reader.close()


QUESTIONS: dict[str, Callable[..., Any]] = {
    "bounds": lambda p: (p.log_start, p.log_end),
    "bases": lambda p: sorted(p.segments),
    "sizes": lambda p: [len(log) for log in p.logs.values()],
    "files": lambda p: sorted(encoded(p)),
    "file": lambda p, name: encoded(p).get(name),
    "snapshots": lambda p: sorted(p.snapshots),
    "epochs": lambda p: [(entry.epoch, entry.start_offset) for entry in p.epochs.entries],
    "aborted": lambda p: [fields[2:] for fields in _segments(p, "txnindex", ABORTED)],
    "index": lambda p: [(b + o, at) for b, o, at in _segments(p, "index", OFFSET_ENTRY)],
    "index offsets": lambda p: [b + o for b, o, _ in _segments(p, "index", OFFSET_ENTRY)],
    "times": lambda p: [(ts, b + o) for b, ts, o in _segments(p, "timeindex", TIME_ENTRY)],
    "producers": _producers,
    "coordinators": lambda p: {
        pid: entry.coordinator_epoch for pid, entry in p.producers.producers.items()
    },
    "map end": lambda p: p.producers.end_offset,
    "unstable": _unstable,
    "running unstable": lambda p, watermark: _running(p, watermark).first_unstable_offset(),
    "lso": lambda p, watermark: _running(p, watermark).last_stable_offset(watermark, p.log_start),
    "offsets": _kept,
    "read": _read,
    "segments read": _segments_read,
    "at time": _at_time,
    "position": _position,
}


def parts(base_offset: int, *steps: Step) -> list[tuple[int, list[int]]]:
    """Split a segment whose offsets overflow: base offset and first offsets of each part."""
    batches = Writer().write(*steps)
    log = b"".join(batches)
    starts = [0, *accumulate(map(len, batches))][:-1]
    bases = scan_batches(log, 0, len(log)).base_offsets.tolist()
    return [
        (
            part.base_offset,
            [b for at, b in zip(starts, bases, strict=True) if part.start <= at < part.end],
        )
        for part in split(log, scan_batches(log, 0, len(log)), base_offset)
    ]


def scanned(*steps: Step) -> list[int]:
    """Return the base offsets of batches; CorruptRecordError if offsets do not increase."""
    log = b"".join(Writer().write(*steps))
    return list(scan_batches(log, 0, len(log)).base_offsets.tolist())
