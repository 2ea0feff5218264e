"""Random logs to clean: few keys, producers, transactions, tombstones, gaps, and segments."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

from tests.support.batch_bytes import (
    ABORT,
    COMMIT,
    CONTROL,
    LOG_APPEND_TIME,
    TRANSACTIONAL,
    Record,
    batch,
    control,
)

KEYS = (None, b"", b"a", b"b", b"long" * 5)
VALUES = (None, b"v", b"value")
TRANSACTIONAL_IDS, IDEMPOTENT_IDS = (1, 2), (3, 4)
START_MS = 1000


class Writer:
    """Appends batches as a leader does; epochs and sequences of producers rise."""

    def __init__(self, draw: st.DrawFn, codecs: Sequence[int]) -> None:
        self._draw, self._codecs = draw, codecs
        self.batches: list[bytes] = []
        self._offset = draw(st.integers(0, 3))
        self._epochs = dict.fromkeys((*TRANSACTIONAL_IDS, *IDEMPOTENT_IDS), 0)
        self._sequences = dict.fromkeys(self._epochs, 0)
        self._open: set[int] = set()

    def data(self, producer_id: int | None) -> None:
        """Append a batch of data, transactional for some producers."""
        draw, base = self._draw, self._offset
        offset, records = base + draw(st.integers(0, 1)), []
        for key, value, step in draw(
            st.lists(
                st.tuples(
                    st.sampled_from(KEYS),
                    st.sampled_from((None, b"v", b"value")),
                    st.integers(1, 2),
                ),
                min_size=1,
                max_size=4,
            )
        ):
            headers = (("h", key),) if step == 2 and value else ()
            time = START_MS + draw(st.integers(0, 60))
            records.append(Record(offset, time, key, value, headers))
            offset += step
        attributes = draw(st.sampled_from(self._codecs))
        if draw(st.integers(0, 7)) == 0:
            attributes |= LOG_APPEND_TIME
        epoch = sequence = -1
        if producer_id is not None:
            if producer_id in TRANSACTIONAL_IDS:
                attributes |= TRANSACTIONAL
                self._open.add(producer_id)
            epoch, sequence = self._epochs[producer_id], self._sequences[producer_id]
            self._sequences[producer_id] += offset - base
        self._put(
            batch(
                records,
                base_offset=base,
                base_timestamp=records[0].timestamp,
                last_offset_delta=offset - 1 - base,
                attributes=attributes,
                leader_epoch=draw(st.integers(0, 1)),
                producer_id=-1 if producer_id is None else producer_id,
                producer_epoch=epoch,
                base_sequence=sequence,
            ),
            offset,
        )

    def marker(self, producer_id: int, kind: int) -> None:
        """Append a marker, with a transaction to end or without; the epoch may rise with it."""
        if self._draw(st.booleans()):
            self._epochs[producer_id] += 1
            self._sequences[producer_id] = 0
        self._open.discard(producer_id)
        encoded = control(
            self._offset,
            kind,
            producer_id=producer_id,
            producer_epoch=self._epochs[producer_id],
            timestamp=START_MS + self._draw(st.integers(0, 60)),
            attributes=TRANSACTIONAL | CONTROL,
        )
        self._put(encoded, self._offset + 1)

    def end_transactions(self) -> None:
        """End the open transactions."""
        for producer_id in sorted(self._open):
            self.marker(producer_id, self._draw(st.sampled_from((ABORT, COMMIT))))

    def _put(self, encoded: bytes, next_offset: int) -> None:
        self.batches.append(encoded)
        self._offset = next_offset + self._draw(st.sampled_from((0, 0, 0, 1)))


@st.composite
def logs(draw: st.DrawFn, codecs: Sequence[int] = (0,), max_steps: int = 14) -> list[bytes]:
    """Draw the batches of a log in which every transaction is ended."""
    writer = Writer(draw, codecs)
    steps = st.sampled_from(
        (None, None, *IDEMPOTENT_IDS, *TRANSACTIONAL_IDS, *TRANSACTIONAL_IDS, -1, -2)
    )
    for step in draw(st.lists(steps, max_size=max_steps)):
        if step is None or step > 0:
            writer.data(step)
        else:
            writer.marker(-step, draw(st.sampled_from((ABORT, COMMIT))))
    writer.end_transactions()
    return writer.batches


@st.composite
def cuts(draw: st.DrawFn, batches: Sequence[bytes]) -> list[bytes]:
    """Cut a log into segments of at least one batch."""
    if not batches:
        return []
    segments = [batches[0]]
    for encoded in batches[1:]:
        if draw(st.integers(0, 2)) == 0:
            segments.append(encoded)
        else:
            segments[-1] += encoded
    return segments
