"""Logs for a cleaner to clean, made from a seed: producers, transactions and deletes.

The rule: a seed gives the same bytes for the same time, so that a log on which two cleaners differ
can be made again. Times are far from every limit that a config sets: records are three hours old or
a minute, producers that have expired two days. A round is what is written between two cleanings,
and begins with a segment of its own; every transaction ends in the round in which it began.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from klog.logformat.batches.batch_attributes import BatchAttributes
from klog.logformat.batches.encode_batches import empty_batch, encode_batch
from klog.logformat.batches.record_headers import HEADERS_TYPE
from klog.logformat.batches.records_to_write import Records
from klog.logformat.batches.sequence_numbers import increment_sequence
from klog.logformat.producers.control_batches import AppendInfo, end_transaction
from klog.logformat.producers.control_records import ABORT, COMMIT

ROUNDS = 3
MINUTE_MS, HOUR_MS = 60_000, 3_600_000
DAY_MS = 24 * HOUR_MS
FIRST_PRODUCER_ID = 500_000
"""Far above those that the cluster of a test gives out, and as low as a broker's."""
HEADERS = (("one", b"1"), ("none", None))
Config = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Round:
    """What is written before a cleaning, logs by base offset, and the config of the cleaning.

    `log_start` is the new log start, `None` if it does not move; `is_left` says that a broker does
    not clean the topic.
    """

    logs: dict[int, bytes]
    log_end: int
    config: Config
    log_start: int | None = None
    is_left: bool = False


@dataclass(slots=True)
class _Writer:
    """A producer; with `bumps` its epoch rises at each transaction's end."""

    producer_id: int
    is_transactional: bool
    bumps: bool
    codec: int
    older_ms: int
    epoch: int = 0
    sequence: int = 0
    is_open: bool = False


class Workload:
    """One partition in the making."""

    def __init__(self, seed: int, now_ms: int) -> None:
        chance = self._chance = random.Random(f"cleaning {seed}")
        self._now_ms = self._step_ms = now_ms
        self._next_offset = 0
        self._logs: dict[int, list[bytes]] = {}
        self._base = -1
        self._quiet: list[int] = []
        """Offsets at which no transaction was open."""
        self._codecs = chance.choice(([0], [0], [1, 4], [2, 3], [0, 1, 2, 3, 4]))
        self._keys = chance.choice((4, 12, 60))
        self._tombstones = chance.choice((0.0, 0.2, 0.5))
        self._null_keys = chance.choice((0.0, 0.1))
        self._is_deleting = chance.random() < 0.2
        self._writers = list(self._make_writers())

    def rounds(self) -> list[Round]:
        """Return all rounds."""
        starts = self._chance.random() < 0.2
        config, later = self._configs()
        if starts:
            # A broker counts the segment with the log start as clean and as dirty, klog as dirty.
            ratio = {"min.cleanable.dirty.ratio": "0.0"}
            config, later = {**config, **ratio}, {**later, **ratio}
        rounds = []
        for number in range(ROUNDS):
            is_lagging = "min.compaction.lag.ms" in config and number < ROUNDS - 1
            self._write(self._chance.randint(15, 60), is_lagging=is_lagging, first=number == 0)
            logs = {base: b"".join(parts) for base, parts in self._logs.items()}
            self._logs, self._base = {}, -1
            start = (
                self._chance.randrange(self._next_offset // 2) if starts and not number else None
            )
            round_config = later if number == ROUNDS - 1 else config
            rounds.append(Round(logs, self._next_offset, round_config, start))
        return rounds

    def _configs(self) -> tuple[Config, Config]:
        """Choose how the first rounds are cleaned, and how the last one."""
        chance = self._chance
        config = {
            "cleanup.policy": "compact",
            "delete.retention.ms": chance.choice(("0", "1", str(DAY_MS), str(DAY_MS))),
            "min.cleanable.dirty.ratio": chance.choice(("0.0", "0.01", "0.3", "0.6", "0.9")),
        }
        if self._is_deleting:
            config |= {"cleanup.policy": "compact,delete", "retention.ms": str(12 * HOUR_MS)}
        elif chance.random() < 0.3:
            # Records a minute old hold the cleaner back, until the last round.
            config["min.compaction.lag.ms"] = str(HOUR_MS)
            return config, config | {"min.compaction.lag.ms": "0"}
        elif chance.random() < 0.3:
            # Long overdue, whatever is dirty.
            config |= {"min.cleanable.dirty.ratio": "1", "max.compaction.lag.ms": str(HOUR_MS)}
        return config, config

    def _make_writers(self) -> Iterator[_Writer]:
        chance = self._chance
        bumps = chance.random() < 0.5
        for number in range(chance.randint(1, 5)):
            yield _Writer(
                FIRST_PRODUCER_ID + number,
                is_transactional=chance.random() < 0.7,
                bumps=bumps,
                codec=chance.choice(self._codecs),
                older_ms=2 * DAY_MS if chance.random() < 0.25 and not self._is_deleting else 0,
                epoch=chance.choice((0, 0, 7)),
            )

    def _write(self, steps: int, *, is_lagging: bool, first: bool) -> None:
        chance = self._chance
        rate = chance.choice((0.05, 0.15, 0.4))
        writing = [writer for writer in self._writers if first or chance.random() < 0.6]
        for step in range(steps):
            self._step_ms = self._now_ms - 3 * HOUR_MS + 1000 * step
            if is_lagging and step > steps // 2:
                self._step_ms = self._now_ms - MINUTE_MS + step
            if self._is_deleting and first and step < steps // 3:
                self._step_ms -= 2 * DAY_MS
            if chance.random() < rate:
                self._roll()
            if not any(writer.is_open for writer in self._writers):
                self._quiet.append(self._next_offset)
            if step and chance.random() < 0.04:
                self._next_offset += chance.randint(1, 5)
            if not writing or chance.random() < 0.15:
                self._append(BatchAttributes(codec=chance.choice(self._codecs), leader_epoch=0), 0)
            else:
                self._turn(chance.choice(writing))
            if self._is_deleting and first and step == steps // 3 - 1:
                self._end_all()
                self._roll()
        self._end_all()

    def _turn(self, writer: _Writer) -> None:
        """Let a producer do one thing."""
        chance = self._chance
        if not writer.is_transactional:
            if chance.random() < 0.05:
                writer.epoch, writer.sequence = writer.epoch + 1, 0
            self._send(writer)
        elif chance.random() < 0.4 and writer.is_open:
            self._end(writer, commit=chance.random() < 0.5)
        elif chance.random() < 0.03 and not writer.is_open:
            self._end(writer, commit=False)  # A transaction whose batches were all rejected.
        else:
            self._send(writer)

    def _send(self, writer: _Writer) -> None:
        form = BatchAttributes(
            codec=writer.codec,
            leader_epoch=0,
            producer_id=writer.producer_id,
            producer_epoch=writer.epoch,
            base_sequence=writer.sequence,
            is_transactional=writer.is_transactional,
        )
        before = self._next_offset
        self._append(form, writer.older_ms)
        writer.sequence = increment_sequence(writer.sequence, self._next_offset - before)
        writer.is_open = writer.is_transactional

    def _end(self, writer: _Writer, *, commit: bool) -> None:
        # A coordinator that aborts by itself raises the epoch before it does.
        raised = writer.bumps or (not commit and self._chance.random() < 0.2)
        if raised:
            writer.epoch, writer.sequence = writer.epoch + 1, 0
        at = AppendInfo(self._next_offset, self._time(writer.older_ms), leader_epoch=0)
        kind = COMMIT if commit else ABORT
        self._put(end_transaction(at, kind, writer.producer_id, writer.epoch, 0), 1)
        writer.is_open = False

    def _end_all(self) -> None:
        for writer in self._writers:
            if writer.is_open:
                self._end(writer, commit=self._chance.random() < 0.5)

    def _append(self, form: BatchAttributes, older_ms: int) -> None:
        """Append one batch, sometimes as an earlier cleaning has left it."""
        chance = self._chance
        count = chance.choice((1, 1, 2, 3, 4, 8))
        kind = chance.random()
        if kind < 0.05 and form.producer_id >= 0:
            batch = empty_batch(form, self._next_offset, count - 1, self._time(older_ms))
            self._put(batch, count)
            return
        rows = list(range(count))
        if kind < 0.15:
            rows = sorted(chance.sample(rows, chance.randint(1, count)))
        if kind > 0.95:
            form = replace(form, append_time_ms=self._time(older_ms))
        elif kind > 0.9:
            past = chance.random() < 0.5
            horizon = self._now_ms + (-DAY_MS if past else DAY_MS)
            form = replace(form, delete_horizon_ms=horizon)
        records = self._records(rows, older_ms)
        self._put(encode_batch(records, form, self._next_offset, count - 1), count)

    def _records(self, rows: Sequence[int], older_ms: int) -> Records:
        chance = self._chance
        keys, values, headers, times = [], [], [], []
        for _ in rows:
            key: bytes | None = b"k%d" % chance.randrange(self._keys)
            keys.append(None if chance.random() < self._null_keys else key)
            is_deleted = chance.random() < self._tombstones
            values.append(None if is_deleted else b"v%d" % chance.randrange(1 << 40))
            row_headers = HEADERS if chance.random() < 0.1 else ()
            headers.append([{"key": name, "value": value} for name, value in row_headers] or None)
            times.append(self._time(older_ms))
        return Records(
            timestamp_ms=pa.array(times, pa.int64()),
            key=pa.array(keys, pa.binary()),
            value=pa.array(values, pa.binary()),
            headers=pa.array(headers, HEADERS_TYPE),
            offset=np.array([self._next_offset + row for row in rows], np.int64),
        )

    def _time(self, older_ms: int) -> int:
        return self._step_ms - older_ms + self._chance.randint(0, 999)

    def _roll(self) -> None:
        self._base = -1

    def _put(self, batch: bytes, offsets: int) -> None:
        if self._base < 0:
            self._base = self._next_offset
        self._logs.setdefault(self._base, []).append(batch)
        self._next_offset += offsets
