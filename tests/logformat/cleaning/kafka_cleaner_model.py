"""A model of Kafka's cleaner in plain Python, one batch and one record at a time.

The rules are those of docs/format.md, 20, and no code of klog is used. The producers of a partition
are those of a running broker: it knows them from what was appended, whatever was cleaned since.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from tests.logformat.reference_decoder import by_hand
from tests.support.batch_bytes import (
    ABORT,
    CONTROL,
    DELETE_HORIZON,
    LOG_APPEND_TIME,
    TRANSACTIONAL,
    Record,
    batch,
)

_header = struct.Struct(">qiibIhiqqqhii").unpack


@dataclass(frozen=True, slots=True)
class Batch:
    """One uncompressed batch; `last_offset` is inclusive, `data` are the bytes that it had."""

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
    def delete_horizon(self) -> int | None:
        return self.base_timestamp if self.has(DELETE_HORIZON) else None

    @property
    def control_type(self) -> int | None:
        """Return the type of a control batch, None if it was emptied."""
        if not self.records:
            return None
        key = self.records[0].key
        assert key is not None
        return int.from_bytes(key[2:4], "big")

    def encoded(self) -> bytes:
        """Return the bytes of the batch, from its fields."""
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
    """Decode a segment of batches v2."""
    decoded = []
    while segment:
        base_offset, length, leader_epoch, _, _, attributes, delta, base_ts, max_ts, *fields = (
            _header(segment[:61])
        )
        data, segment = segment[: 12 + length], segment[12 + length :]
        producer_id, producer_epoch, base_sequence, _ = fields
        decoded.append(
            Batch(
                base_offset,
                base_offset + delta,
                attributes,
                leader_epoch,
                producer_id,
                producer_epoch,
                base_sequence,
                base_ts,
                max_ts,
                tuple(by_hand(data)),
                data,
            )
        )
    return decoded


@dataclass(frozen=True, slots=True)
class ActiveProducer:
    """A producer that the broker knows; without `data_offset`, by a marker of this epoch alone."""

    epoch: int
    data_offset: int | None
    timestamp: int


def active_producers(log: Sequence[Batch]) -> dict[int, ActiveProducer]:
    """Return the producers of a log that was appended."""
    producers: dict[int, ActiveProducer] = {}
    for appended in log:
        if appended.producer_id < 0 or (appended.has(CONTROL) and not appended.records):
            continue
        before = producers.get(appended.producer_id)
        data_offset: int | None = appended.last_offset
        if appended.has(CONTROL):
            is_same_epoch = before is not None and before.epoch == appended.producer_epoch
            data_offset = before.data_offset if before is not None and is_same_epoch else None
        producers[appended.producer_id] = ActiveProducer(
            appended.producer_epoch, data_offset, appended.max_timestamp
        )
    return producers


@dataclass(frozen=True, slots=True)
class CleanerModel:
    """One cleaning: dirty from an offset on, cleaned up to before `end`; times in ms."""

    dirty_from: int
    end: int
    now: int
    retention: int
    producers: dict[int, ActiveProducer]

    def clean(self, log: Sequence[Batch]) -> Iterator[Batch]:
        """Yield what is retained of a complete log, in order."""
        aborted = aborted_offsets(log)
        last_offsets = self._last_offsets(log, aborted)
        with_data: set[int] = set()
        for cleaned in log:
            if cleaned.base_offset >= self.end:
                yield cleaned
                continue
            is_removable = False
            if cleaned.has(CONTROL):
                is_removable = cleaned.producer_id not in with_data or not cleaned.records
                with_data.discard(cleaned.producer_id)
            elif cleaned.has(TRANSACTIONAL):
                with_data.add(cleaned.producer_id)
            is_aborted = cleaned.base_offset in aborted
            retained = [
                record
                for record in cleaned.records
                if self._is_retained(
                    cleaned, record, last_offsets, is_removable=is_removable, is_aborted=is_aborted
                )
            ]
            yield from self._after(cleaned, retained, needs_horizon=is_removable)

    def _last_offsets(self, log: Sequence[Batch], aborted: set[int]) -> dict[bytes, int]:
        """Return each key's last offset in the dirty part."""
        return {
            record.key: record.offset
            for read in log
            if not read.has(CONTROL) and read.base_offset not in aborted
            for record in read.records
            if record.key is not None and self.dirty_from <= record.offset < self.end
        }

    def _is_retained(
        self,
        cleaned: Batch,
        record: Record,
        last_offsets: dict[bytes, int],
        *,
        is_removable: bool,
        is_aborted: bool,
    ) -> bool:
        horizon = cleaned.delete_horizon
        is_past_horizon = horizon is not None and self.now >= horizon
        if cleaned.has(CONTROL):
            return not (is_removable and is_past_horizon)
        if is_aborted or record.key is None:
            return False
        is_last = record.offset >= last_offsets.get(record.key, -1)
        return is_last and (record.value is not None or not is_past_horizon)

    def _after(
        self, cleaned: Batch, retained: list[Record], *, needs_horizon: bool
    ) -> Iterator[Batch]:
        if not cleaned.has(CONTROL):
            needs_horizon = any(record.value is None for record in retained)
        needs_horizon = needs_horizon and cleaned.delete_horizon is None
        if retained and len(retained) == len(cleaned.records) and not needs_horizon:
            yield cleaned
        elif retained:
            yield self._rewritten(cleaned, retained, needs_horizon)
        elif self._retains_offset(cleaned):
            attributes = cleaned.attributes & ~DELETE_HORIZON & ~7
            yield replace(cleaned, attributes=attributes, base_timestamp=-1, records=(), data=b"")

    def _rewritten(self, cleaned: Batch, retained: list[Record], needs_horizon: bool) -> Batch:
        base_timestamp, attributes = retained[0].timestamp, cleaned.attributes
        if needs_horizon:
            base_timestamp, attributes = self.now + self.retention, attributes | DELETE_HORIZON
        elif cleaned.delete_horizon is not None:
            base_timestamp = cleaned.delete_horizon
        max_timestamp = max(record.timestamp for record in retained)
        return replace(
            cleaned,
            attributes=attributes,
            base_timestamp=base_timestamp,
            max_timestamp=cleaned.max_timestamp if cleaned.has(LOG_APPEND_TIME) else max_timestamp,
            records=tuple(retained),
            data=b"",
        )

    def _retains_offset(self, cleaned: Batch) -> bool:
        producer = self.producers.get(cleaned.producer_id)
        if cleaned.last_offset + 1 == self.end:
            return True
        if producer is not None and producer.data_offset is None and cleaned.has(CONTROL):
            return cleaned.producer_epoch == producer.epoch
        return producer is not None and cleaned.last_offset == producer.data_offset


def aborted_offsets(log: Sequence[Batch]) -> set[int]:
    """Return the base offsets of the data batches of aborted transactions."""
    aborted: set[int] = set()
    pending: dict[int, list[int]] = {}
    for read in log:
        if read.has(CONTROL):
            if read.control_type is not None:
                offsets = pending.pop(read.producer_id, [])
                aborted.update(offsets if read.control_type == ABORT else [])
        elif read.has(TRANSACTIONAL):
            pending.setdefault(read.producer_id, []).append(read.base_offset)
    return aborted
