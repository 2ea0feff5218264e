"""A partition's files as a cleanly stopped broker leaves them, made of its batches as they come.

The rule: of a batch only what lies outside its CRC is written anew, and only where it must: base
offsets that are shifted, and leader epochs other than 0, which count the leaders of another
cluster. A broker whose own epoch is lower forgets such epochs, and no follower takes -1, so all of
the log is what the first leader of a partition would have written. Each segment keeps its own bytes
and rolls only where its files could not say it: last offsets beyond 2147483647 of the base, more
bytes than a position can say, a full index. What a broker has beside its logs follows from the
batches alone, whatever lay beside them before: offset and time indexes, aborted transactions,
leader epochs, the producers at the log's end. (docs/format.md, 7.1, 8 to 10, 12 and 13.)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from klog.errors import UnsupportedFormatError
from klog.logformat import batch as v2
from klog.logformat.checkpoint import encode_epoch_checkpoint
from klog.logformat.epochs import NO_EPOCHS
from klog.logformat.index import SEGMENT_INDEX_BYTES
from klog.logformat.indexing import INDEX_INTERVAL_BYTES, OpenIndexes, appends_of, no_entries
from klog.logformat.markers import At, end_transaction
from klog.logformat.metadata import encode_partition_metadata
from klog.logformat.names import segment_name
from klog.logformat.offset_index import MAX_POSITION, encode_offset_index
from klog.logformat.producers import ProducerState
from klog.logformat.restamp import restamp
from klog.logformat.rolling import OpenSegment, RollLimits, plan_rolls
from klog.logformat.segment_recovery import new_epochs
from klog.logformat.snapshot import encode_snapshot
from klog.logformat.time_index import encode_time_index
from klog.logformat.transaction_index import NONE_ABORTED, AbortedTransaction, encode_aborted

LEADER_EPOCH = 0
"""That of a partition's first leader."""
_NEVER_MS = (1 << 63) - 1


FEW_PRODUCERS = 1_000


@dataclass(frozen=True, slots=True)
class Piece:
    """What comes next in the file `name`; the pieces of a file come one after the other."""

    name: str
    data: bytes | memoryview


@dataclass(slots=True)
class _Open:
    """The segment in the making."""

    rolling: OpenSegment
    indexes: OpenIndexes
    aborted: list[AbortedTransaction] = field(default_factory=list)


class Handover:
    """One partition, segment by segment from its start; each call gives the pieces it has made.

    `now_ms` is when producers expire, for a broker forgets them as it starts, and the time of the
    markers that are written here.
    """

    def __init__(
        self,
        log_start: int,
        now_ms: int,
        segment_index_bytes: int = SEGMENT_INDEX_BYTES,
        index_interval_bytes: int = INDEX_INTERVAL_BYTES,
    ) -> None:
        """Begin with nothing; index limits are those of the topic's config."""
        self._limits = RollLimits(
            MAX_POSITION, _NEVER_MS, segment_index_bytes, index_interval_bytes
        )
        self._log_start, self._now_ms = log_start, now_ms
        self._epochs = NO_EPOCHS
        self._producers = ProducerState(log_start)
        self._left = FEW_PRODUCERS
        self._open: _Open | None = None
        self.base_offsets: list[int] = []
        self.next_offset = 0

    @property
    def open_transactions(self) -> dict[int, int]:
        """Give producer id to first offset of the transactions that no marker has ended so far."""
        return dict(self._producers.open_transactions)

    @property
    def producer_ids(self) -> list[int]:
        """Give the ids of the producers that a broker is going to know."""
        return sorted(self._producers.producers)

    def begin(self, base_offset: int) -> Iterator[Piece]:
        """Begin a segment of the log behind those before it."""
        yield from self._closed()
        self.base_offsets.append(base_offset)
        self._open = _Open(OpenSegment(base_offset, base_offset), no_entries(base_offset))
        yield Piece(segment_name(base_offset, "log"), b"")

    def add(self, data: bytes, batches: v2.Batches, offset_shift: int = 0) -> Iterator[Piece]:
        """Append batches, which lie in `data`, to the segment, at offsets so much higher.

        Raises `CorruptRecordError` with the position in `data` for control records that are none,
        `UnsupportedFormatError` for messages of formats v0 and v1 that are to be shifted, and
        `ValueError` where no segment is open or offsets do not rise from its base.
        """
        if self._open is None or not len(batches):
            if self._open is None:
                raise ValueError("begin a segment first")
            return
        if int(batches.base_offsets[0]) + offset_shift < self._open.rolling.base_offset:
            raise ValueError(f"a batch below its segment's base, shifted by {offset_shift}")
        stamped, batches = self._stamped(data, batches, offset_shift)
        appends = appends_of(batches)
        plan = plan_rolls(appends, self._open.rolling, self._limits)
        bounds = [*plan.starts.tolist(), len(batches)]
        for number, base in enumerate(plan.base_offsets.tolist()):
            if number:
                yield from self.begin(base)
            begin, end = bounds[number], bounds[number + 1]
            if begin == end:
                continue
            part, one = batches.part(begin, end), self._open
            one.indexes = one.indexes.with_appends(
                appends.part(begin, end), self._limits.index_interval_bytes
            )
            # Records lie where they lay, and only what is outside the CRC was written anew.
            one.aborted += [
                AbortedTransaction(
                    each.producer_id, each.first_offset, each.last_offset, each.last_stable_offset
                )
                for each in self._producers.replay(data, part)
                if each.is_aborted
            ]
            span = slice(int(part.starts[0]), int(part.ends[-1]))
            yield Piece(segment_name(base, "log"), memoryview(stamped)[span])
        self._open.rolling = plan.active
        self._epochs = self._epochs.assign_all(new_epochs(batches, self._epochs.latest_epoch))
        self.next_offset = int(batches.next_offsets[-1])

    def end_transaction(self, producer_id: int, kind: int, offset: int) -> Iterator[Piece]:
        """Append the marker that ends an open transaction, `ABORT` or `COMMIT`, at an offset.

        It has the epochs that are known of the producer, as a coordinator's that goes on has.
        """
        known = self._producers.producers[producer_id]
        at = At(offset, self._now_ms, LEADER_EPOCH)
        marker = end_transaction(
            at, kind, producer_id, known.epoch, max(known.coordinator_epoch, 0)
        )
        yield from self.add(marker, v2.scan(marker, 0, len(marker)))

    def finish(self, log_end: int, topic_id: str) -> Iterator[Piece]:
        """End the log, whose last offsets may have no batch any more.

        Then an empty segment says where it ends, as it does in a partition without records.
        """
        if self._open is None or self.next_offset < log_end:
            yield from self.begin(log_end)
        yield from self._closed()
        self._producers.expire(self._now_ms)
        if log_end > self._log_start:  # One that is not above the log start is never read.
            snapshot = encode_snapshot(self._producers.snapshot())
            yield Piece(segment_name(log_end, "snapshot"), snapshot)
        epochs = self._epochs.truncate_from_start(self._log_start)
        yield Piece("leader-epoch-checkpoint", encode_epoch_checkpoint(epochs.entries))
        yield Piece("partition.metadata", encode_partition_metadata(topic_id))

    def _closed(self) -> Iterator[Piece]:
        if self._open is None:
            return
        one, self._open = self._open, None
        base = one.rolling.base_offset
        offset_index, time_index = one.indexes.closed()
        yield Piece(segment_name(base, "index"), encode_offset_index(offset_index))
        yield Piece(segment_name(base, "timeindex"), encode_time_index(time_index))
        if one.aborted:
            aborted = encode_aborted(NONE_ABORTED.with_entries(one.aborted))
            yield Piece(segment_name(base, "txnindex"), aborted)
        # Of many writers few are known at a time: a log may have had one a commit. All are looked
        # at only when twice as many are known as were left the last time.
        if len(self._producers.producers) >= 2 * self._left:
            self._producers.expire(self._now_ms)
            self._left = max(len(self._producers.producers), FEW_PRODUCERS)

    def _stamped(
        self, data: bytes, batches: v2.Batches, offset_shift: int
    ) -> tuple[bytes | bytearray, v2.Batches]:
        """Give the bytes with offsets and epochs as they are to be; the same where they are."""
        is_v2 = ~batches.is_legacy
        if offset_shift and not is_v2.all():
            position = int(batches.starts[np.argmin(is_v2)])
            reason = "messages of formats v0 and v1 cannot be given other offsets"
            raise UnsupportedFormatError(reason, position)
        if not offset_shift and (batches.headers["leader_epoch"][is_v2] == LEADER_EPOCH).all():
            return data, batches
        stamped = bytearray(data)
        own = batches.where(is_v2)
        moved = restamp(stamped, own, own.base_offsets + offset_shift, LEADER_EPOCH)
        headers = batches.headers.copy()
        headers[is_v2] = moved.headers
        return stamped, v2.Batches(batches.starts, batches.ends, headers)
