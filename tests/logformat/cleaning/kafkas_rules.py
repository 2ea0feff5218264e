"""Kafka's cleaner in plain Python, a batch and a record at a time, so plain that it can be checked.

The rules are those of docs/format.md, 20, and nothing of klog is used. A partition's producers are
known as a broker that runs knows them: from what was appended, whatever was cleaned since.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from tests.encode import (
    ABORT,
    CONTROL,
    DELETE_HORIZON,
    LOG_APPEND_TIME,
    TRANSACTIONAL,
    Record,
    batch,
)
from tests.logformat.decoding import by_hand

_header = struct.Struct(">qiibIhiqqqhii").unpack


@dataclass(frozen=True, slots=True)
class Batch:
    """One uncompressed batch; `last_offset` is inclusive, `data` the bytes that it came as."""

    base_offset: int
    last_offset: int
    attributes: int
    leader_epoch: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    base_timestamp: int
    max_timestamp: int
    records: tuple[Record, ...]
    data: bytes = field(compare=False, default=b"")

    def has(self, flag: int) -> bool:
        return self.attributes & flag != 0

    @property
    def horizon(self) -> int | None:
        return self.base_timestamp if self.has(DELETE_HORIZON) else None

    @property
    def kind(self) -> int | None:
        """Give what a control batch decides, None if it was emptied."""
        if not self.records:
            return None
        key = self.records[0].key
        assert key is not None
        return int.from_bytes(key[2:4], "big")

    def encoded(self) -> bytes:
        """Write the batch from its fields."""
        return batch(
            self.records,
            base_offset=self.base_offset,
            base_timestamp=self.base_timestamp,
            max_timestamp=self.max_timestamp,
            last_offset_delta=self.last_offset - self.base_offset,
            attributes=self.attributes,
            leader_epoch=self.leader_epoch,
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            base_sequence=self.base_sequence,
        )


def batches(segment: bytes) -> list[Batch]:
    """Take a segment of batches v2 apart."""
    found = []
    while segment:
        base, length, epoch, _, _, attributes, delta, base_ts, max_ts, *rest = _header(segment[:61])
        data, segment = segment[: 12 + length], segment[12 + length :]
        producer, producer_epoch, sequence, _ = rest
        found.append(
            Batch(
                base,
                base + delta,
                attributes,
                epoch,
                producer,
                producer_epoch,
                sequence,
                base_ts,
                max_ts,
                tuple(by_hand(data)),
                data,
            )
        )
    return found


@dataclass(frozen=True, slots=True)
class Known:
    """A producer as the broker knows it; without `data` only a marker of this epoch is known."""

    epoch: int
    data: int | None
    timestamp: int


def producers(log: Sequence[Batch], known: dict[int, Known] | None = None) -> dict[int, Known]:
    """Take what was appended."""
    found = dict(known or {})
    for one in log:
        if one.producer_id < 0 or (one.has(CONTROL) and not one.records):
            continue
        before = found.get(one.producer_id)
        data: int | None = one.last_offset
        if one.has(CONTROL):
            is_same = before is not None and before.epoch == one.producer_epoch
            data = before.data if before is not None and is_same else None
        found[one.producer_id] = Known(one.producer_epoch, data, one.max_timestamp)
    return found


@dataclass(frozen=True, slots=True)
class Rules:
    """One cleaning: dirty from an offset on, up to before `end`; times in ms."""

    dirty_from: int
    end: int
    now: int
    retention: int
    active: dict[int, Known]

    def clean(self, log: Sequence[Batch]) -> Iterator[Batch]:
        """Give what is left of a whole log, in order."""
        gone = aborted(log)
        offsets = self._offsets(log, gone)
        met: set[int] = set()
        for one in log:
            if one.base_offset >= self.end:
                yield one
                continue
            is_spent = False
            if one.has(CONTROL):
                is_spent = one.producer_id not in met or not one.records
                met.discard(one.producer_id)
            elif one.has(TRANSACTIONAL):
                met.add(one.producer_id)
            fate = {"is_spent": is_spent, "is_aborted": one.base_offset in gone}
            kept = [each for each in one.records if self._stays(one, each, offsets, **fate)]
            yield from self._left(one, kept, needs_horizon=is_spent)

    def _offsets(self, log: Sequence[Batch], gone: set[int]) -> dict[bytes, int]:
        """Give each key's last offset in the dirty part."""
        return {
            record.key: record.offset
            for one in log
            if not one.has(CONTROL) and one.base_offset not in gone
            for record in one.records
            if record.key is not None and self.dirty_from <= record.offset < self.end
        }

    def _stays(
        self,
        one: Batch,
        record: Record,
        offsets: dict[bytes, int],
        is_spent: bool,
        is_aborted: bool,
    ) -> bool:
        is_past = one.horizon is not None and self.now >= one.horizon
        if one.has(CONTROL):
            return not (is_spent and is_past)
        if is_aborted or record.key is None:
            return False
        is_last = record.offset >= offsets.get(record.key, -1)
        return is_last and (record.value is not None or not is_past)

    def _left(self, one: Batch, kept: list[Record], *, needs_horizon: bool) -> Iterator[Batch]:
        if not one.has(CONTROL):
            needs_horizon = any(record.value is None for record in kept)
        needs_horizon = needs_horizon and one.horizon is None
        if kept and len(kept) == len(one.records) and not needs_horizon:
            yield one
        elif kept:
            yield self._anew(one, kept, needs_horizon)
        elif self._is_needed(one):
            attributes = one.attributes & ~DELETE_HORIZON & ~7
            yield replace(one, attributes=attributes, base_timestamp=-1, records=(), data=b"")

    def _anew(self, one: Batch, kept: list[Record], needs_horizon: bool) -> Batch:
        base_timestamp, attributes = kept[0].timestamp, one.attributes
        if needs_horizon:
            base_timestamp, attributes = self.now + self.retention, attributes | DELETE_HORIZON
        elif one.horizon is not None:
            base_timestamp = one.horizon
        latest = max(record.timestamp for record in kept)
        return replace(
            one,
            attributes=attributes,
            base_timestamp=base_timestamp,
            max_timestamp=one.max_timestamp if one.has(LOG_APPEND_TIME) else latest,
            records=tuple(kept),
            data=b"",
        )

    def _is_needed(self, one: Batch) -> bool:
        known = self.active.get(one.producer_id)
        if one.last_offset + 1 == self.end:
            return True
        if known is not None and known.data is None and one.has(CONTROL):
            return one.producer_epoch == known.epoch
        return known is not None and one.last_offset == known.data


def aborted(log: Sequence[Batch]) -> set[int]:
    """Give the base offsets of the data batches of aborted transactions."""
    found: set[int] = set()
    pending: dict[int, list[int]] = {}
    for one in log:
        if one.has(CONTROL):
            if one.kind is not None:
                own = pending.pop(one.producer_id, [])
                found.update(own if one.kind == ABORT else [])
        elif one.has(TRANSACTIONAL):
            pending.setdefault(one.producer_id, []).append(one.base_offset)
    return found
