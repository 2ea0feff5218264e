"""The batches that remain of a partition after a cleaning, in a form that compares cleaners.

The rule: everything that a reader, a producer or the next cleaning can see is compared. Compression
and the time of a cleaning may differ: a delete horizon is the number of the cleaning that set it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from klog.connector.commit_log import segment_entries
from klog.connector.commit_log.klog_root import KlogRoot
from klog.logformat.batches import record_batch as v2
from klog.logformat.batches.batch_checksum import check_batch_crcs
from klog.logformat.batches.decode_records import decode_records
from klog.logformat.batches.scan_batches import scan_batches
from tests.support.broker_loader.reload_producers import reload_producers

COLUMNS = ("timestamp_ms", "timestamp_type", "key", "value", "headers")
SET_BEFORE = -1
"""The number of the cleaning if a horizon was set before the first one."""


@dataclass(frozen=True, slots=True)
class Window:
    """The time in which a cleaning ran; a horizon that it sets is that time plus the delay."""

    begin_ms: int
    end_ms: int
    delay_ms: int

    def holds(self, horizon_ms: int) -> bool:
        """Return whether a cleaning in this window set the horizon."""
        return self.begin_ms <= horizon_ms - self.delay_ms <= self.end_ms


@dataclass(frozen=True, slots=True)
class Batch:
    """One batch: its header, and its records as (offset, timestamp, type, key, value, headers).

    `base_timestamp` is None if a delete horizon stands in its place.
    """

    base_offset: int
    last_offset: int
    leader_epoch: int
    magic: int
    attributes: int
    base_timestamp: int | None
    horizon: int | None
    max_timestamp: int
    producer: tuple[int, int, int]
    count: int
    records: tuple[tuple[object, ...], ...]


def batches(logs: Iterable[bytes], windows: Sequence[Window]) -> list[Batch]:
    """Return all batches of the segments of a partition."""
    return [batch for log in logs for batch in _batches(log, windows)]


def _batches(log: bytes, windows: Sequence[Window]) -> Iterable[Batch]:
    scan = scan_batches(log, 0, len(log))
    check_batch_crcs(log, scan)
    for number in range(len(scan)):
        batch = scan.slice(number, number + 1)
        header = batch.headers[0]
        base = int(header["base_timestamp"])
        has_horizon = bool(int(header["attributes"]) & v2.DELETE_HORIZON)
        yield Batch(
            int(header["base_offset"]),
            int(batch.next_offsets[0]) - 1,
            int(header["leader_epoch"]),
            int(header["magic"]),
            int(header["attributes"]),
            None if has_horizon else base,
            _set_by(base, windows) if has_horizon else None,
            int(header["max_timestamp"]),
            tuple(int(header[name]) for name in ("producer_id", "producer_epoch", "base_sequence")),  # type: ignore[arg-type]
            int(header["count"]),
            _records(log, batch),
        )


def _set_by(horizon_ms: int, windows: Sequence[Window]) -> int:
    numbers = [number for number, window in enumerate(windows) if window.holds(horizon_ms)]
    return numbers[0] if numbers else SET_BEFORE


def _records(log: bytes, batch: v2.Batches) -> tuple[tuple[object, ...], ...]:
    if not int(batch.headers["count"][0]):
        return ()
    columns = decode_records(log, batch, COLUMNS)
    assert columns.timestamp_ms is not None
    assert columns.timestamp_type is not None
    assert columns.key is not None
    assert columns.value is not None
    assert columns.headers is not None
    headers = [
        tuple((header["key"], header["value"]) for header in row_headers or ())
        for row_headers in columns.headers.to_pylist()
    ]
    return tuple(
        zip(
            columns.offset.tolist(),
            columns.timestamp_ms.tolist(),
            columns.timestamp_type.tolist(),
            columns.key.to_pylist(),
            columns.value.to_pylist(),
            headers,
            strict=True,
        )
    )


def broker_logs(directory: Path) -> dict[int, bytes]:
    """Return the non-empty logs of a partition's directory by base offset."""
    logs = {int(path.stem): path.read_bytes() for path in sorted(directory.glob("*.log"))}
    return {base: log for base, log in logs.items() if log}


def klog_logs(root: KlogRoot, topic: str) -> dict[int, bytes]:
    """Return the logs of partition 0 of a topic by base offset."""
    own = segment_entries.rows_of_partition(root.log_to_read(topic).load().segments, 0).to_pylist()
    assert all(row["offset_shift"] == 0 for row in own)
    return {row["base_offset"]: root.store.read(f"{root.path}/{row['file']}") for row in own}


Producers = dict[int, tuple[int, int, int]]


def producers(logs: Mapping[int, bytes], log_end: int, alive: Iterable[int]) -> Producers:
    """Replay logs; return epoch, last sequence and last offset of the producers alive."""
    state = reload_producers(dict(logs), {}, 0, log_end).producers
    alive_ids = set(alive)
    return {
        entry.producer_id: (entry.epoch, entry.last_sequence, entry.last_offset)
        for entry in state.snapshot()
        if entry.producer_id in alive_ids
    }
