"""A partition written by klog, append by append, and what a consumer must read of it.

The rule: bytes come from klog's writers alone; the expected records are plain lists kept here, so
that neither depends on the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from klog.logformat.batches.batch_attributes import BatchAttributes
from klog.logformat.batches.encode_batches import empty_batch, encode_batch, encode_batches
from klog.logformat.batches.record_headers import HEADERS_TYPE
from klog.logformat.batches.records_to_write import Records
from klog.logformat.batches.scan_batches import scan_batches
from klog.logformat.broker_files.checkpoint_files import encode_epoch_checkpoint
from klog.logformat.broker_files.leader_epochs import NO_EPOCHS
from klog.logformat.indexes.index_building import Appends, batches_as_appends, build_indexes
from klog.logformat.indexes.offset_index import encode_offset_index
from klog.logformat.indexes.time_index import encode_time_index
from klog.logformat.indexes.transaction_index import (
    decode_aborted,
    encode_aborted,
)
from klog.logformat.producers.control_batches import AppendInfo, end_transaction
from klog.logformat.producers.control_records import ABORT, COMMIT
from klog.logformat.producers.producer_snapshot import encode_snapshot
from klog.logformat.producers.producer_state import ProducerState
from klog.logformat.segments.segment_rolling import OpenSegment, RollLimits, plan_rolls
from tests.corpus import Record
from tests.corpus.clients import Sent
from tests.support.broker_loader.index_updates import group_appends

COORDINATOR_EPOCH = 7


@dataclass(slots=True)
class Written:
    """A partition in the making; `limits` are those of its topic's config.

    `records` is the consumer's account, `markers` gives the kind of each marker by its offset,
    `aborted` what the transaction indexes must say, as (producer id, first offset, marker offset,
    last stable offset).
    """

    topic: str
    limits: RollLimits
    partition: int = 0
    next_offset: int = 0
    appends: list[list[bytes]] = field(default_factory=list)
    records: list[Record] = field(default_factory=list)
    markers: dict[int, str] = field(default_factory=dict)
    aborted: list[tuple[int, int, int, int]] = field(default_factory=list)
    _open: dict[int, int] = field(default_factory=dict)
    _undecided: dict[int, list[int]] = field(default_factory=dict)

    def append(self, rows: Sequence[Sent], form: BatchAttributes) -> None:
        """Append records, cut into batches as `form` has it; all of them are one append."""
        offsets = range(self.next_offset, self.next_offset + len(rows))
        self.appends.append(list(encode_batches(_columns(rows, self.next_offset), form)))
        self._tell(zip(offsets, rows, strict=True), form)
        self.next_offset += len(rows)

    def append_with_gaps(
        self, rows: Sequence[tuple[int, Sent]], form: BatchAttributes, offsets: int
    ) -> None:
        """Append one batch over `offsets` offsets, only some of them with a record.

        `rows` gives each record its delta.
        """
        base = self.next_offset
        records = _columns([sent for _, sent in rows], base)
        at = np.array([base + delta for delta, _ in rows], np.int64)
        self.appends.append([encode_batch(replace(records, offset=at), form, base, offsets - 1)])
        self._tell([(base + delta, sent) for delta, sent in rows], form)
        self.next_offset += offsets

    def append_empty(self, form: BatchAttributes, offsets: int, max_timestamp: int) -> None:
        """Append a batch without records."""
        self.appends.append([empty_batch(form, self.next_offset, offsets - 1, max_timestamp)])
        self.next_offset += offsets

    def end(self, producer_id: int, epoch: int, timestamp_ms: int, *, commit: bool) -> None:
        """Append the marker of a producer's transaction."""
        at = AppendInfo(self.next_offset, timestamp_ms, leader_epoch=0)
        kind = COMMIT if commit else ABORT
        self.appends.append([end_transaction(at, kind, producer_id, epoch, COORDINATOR_EPOCH)])
        self.markers[self.next_offset] = "COMMIT" if commit else "ABORT"
        first = self._open.pop(producer_id)
        if not commit:
            stable = min(self._open.values(), default=self.next_offset + 1)
            self.aborted.append((producer_id, first, self.next_offset, stable))
        for number in self._undecided.pop(producer_id):
            self.records[number] = replace(self.records[number], read_committed=commit)
        self.next_offset += 1

    def files(self) -> dict[str, bytes]:
        """Return the files of the partition's directory by name, without `partition.metadata`."""
        assert not self._open, "a log with an open transaction cannot be exported"
        data = b"".join(batch for append in self.appends for batch in append)
        batches = scan_batches(data, 0, len(data))
        counts = [len(append) for append in self.appends]
        appends = group_appends(batches_as_appends(batches), np.cumsum([0, *counts[:-1]]))
        plan = plan_rolls(appends, OpenSegment(0, 0), self.limits)
        files: dict[str, bytes] = {}
        state = ProducerState(0)
        ends = [*plan.starts[1:].tolist(), len(appends)]
        positions = np.append(appends.positions, len(data))
        for base, begin, end in zip(plan.base_offsets.tolist(), plan.starts.tolist(), ends,
                                    strict=True):  # fmt: skip
            if base:
                files[f"{base:020}.snapshot"] = encode_snapshot(state.snapshot())
            log = data[positions[begin] : positions[end]]
            files |= self._segment(base, log, appends.part(begin, end), state)
        files[f"{self.next_offset:020}.snapshot"] = encode_snapshot(state.snapshot())
        epochs = NO_EPOCHS.assign_batches(batches)
        files["leader-epoch-checkpoint"] = encode_epoch_checkpoint(epochs.entries)
        return files

    def _segment(
        self, base: int, log: bytes, appends: Appends, state: ProducerState
    ) -> dict[str, bytes]:
        offsets, times = build_indexes(appends, base, self.limits.index_interval_bytes)
        completed = state.replay(log, scan_batches(log, 0, len(log)))
        files = {
            f"{base:020}.log": log,
            f"{base:020}.index": encode_offset_index(offsets),
            f"{base:020}.timeindex": encode_time_index(times),
        }
        aborted = [transaction.index_entry() for transaction in completed if transaction.is_aborted]
        if aborted:
            files[f"{base:020}.txnindex"] = encode_aborted(
                decode_aborted(b"").with_entries(aborted)
            )
        return files

    def _tell(self, rows: Iterable[tuple[int, Sent]], form: BatchAttributes) -> None:
        if form.is_transactional:
            self._open.setdefault(form.producer_id, self.next_offset)
        for offset, sent in rows:
            if form.is_transactional:
                self._undecided.setdefault(form.producer_id, []).append(len(self.records))
            at_append = form.append_time_ms
            self.records.append(
                Record(
                    self.topic,
                    self.partition,
                    offset,
                    sent.timestamp if at_append is None else at_append,
                    0 if at_append is None else 1,
                    sent.key,
                    sent.value,
                    tuple(sent.headers),
                    read_committed=True,
                )
            )


def _columns(rows: Sequence[Sent], offset: int) -> Records:
    headers = [[{"key": name, "value": value} for name, value in row.headers] for row in rows]
    return Records(
        timestamp_ms=pa.array([row.timestamp for row in rows], pa.int64()),
        key=pa.array([row.key for row in rows], pa.binary()),
        value=pa.array([row.value for row in rows], pa.binary()),
        headers=pa.array(headers, HEADERS_TYPE),
        offset=offset,
    )
