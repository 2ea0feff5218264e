"""What a cleaning has left of a partition, batch by batch, in words that two cleaners share.

The rule: nothing that a reader, a producer or the next cleaning could ever see is left out. What
may differ is how records are compressed, and the time of a cleaning: a delete horizon is said as
the number of the cleaning that set it.
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
"""The number of a cleaning for a horizon that was there at the beginning."""


@dataclass(frozen=True, slots=True)
class Window:
    """From when to when a cleaning may have run; what it gave as horizon is that and the delay."""

    begin_ms: int
    end_ms: int
    delay_ms: int

    def holds(self, horizon_ms: int) -> bool:
        """Tell whether a cleaning in it set the horizon."""
        return self.begin_ms <= horizon_ms - self.delay_ms <= self.end_ms


@dataclass(frozen=True, slots=True)
class Batch:
    """One batch: its header, and its records as (offset, timestamp, type, key, value, headers).

    `base_timestamp` is None where a delete horizon stands in its place.
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
    """Give all batches of the segments of a partition."""
    return [one for log in logs for one in _batches(log, windows)]


def _batches(log: bytes, windows: Sequence[Window]) -> Iterable[Batch]:
    found = scan_batches(log, 0, len(log))
    check_batch_crcs(log, found)
    for number in range(len(found)):
        one = found.slice(number, number + 1)
        header = one.headers[0]
        base = int(header["base_timestamp"])
        has_horizon = bool(int(header["attributes"]) & v2.DELETE_HORIZON)
        yield Batch(
            int(header["base_offset"]),
            int(one.next_offsets[0]) - 1,
            int(header["leader_epoch"]),
            int(header["magic"]),
            int(header["attributes"]),
            None if has_horizon else base,
            _set_by(base, windows) if has_horizon else None,
            int(header["max_timestamp"]),
            tuple(int(header[name]) for name in ("producer_id", "producer_epoch", "base_sequence")),  # type: ignore[arg-type]
            int(header["count"]),
            _records(log, one),
        )


def _set_by(horizon_ms: int, windows: Sequence[Window]) -> int:
    found = [number for number, one in enumerate(windows) if one.holds(horizon_ms)]
    return found[0] if found else SET_BEFORE


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
        tuple((each["key"], each["value"]) for each in some or ())
        for some in columns.headers.to_pylist()
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
    """Give the logs of a partition's directory by base offset, but for those without a byte."""
    found = {int(path.stem): path.read_bytes() for path in sorted(directory.glob("*.log"))}
    return {base: log for base, log in found.items() if log}


def klog_logs(root: KlogRoot, topic: str) -> dict[int, bytes]:
    """Give the logs of partition 0 of a topic by base offset."""
    own = segment_entries.rows_of_partition(root.log_to_read(topic).load().segments, 0).to_pylist()
    assert all(one["offset_shift"] == 0 for one in own)
    return {one["base_offset"]: root.store.read(f"{root.path}/{one['file']}") for one in own}


Producers = dict[int, tuple[int, int, int]]


def producers(logs: Mapping[int, bytes], log_end: int, alive: Iterable[int]) -> Producers:
    """Replay logs: of producers that are alive the epoch, last sequence and its offset."""
    state = reload_producers(dict(logs), {}, 0, log_end).producers
    wanted = set(alive)
    return {
        one.producer_id: (one.epoch, one.last_sequence, one.last_offset)
        for one in state.snapshot()
        if one.producer_id in wanted
    }
