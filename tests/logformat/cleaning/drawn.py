"""Logs of many shapes to be cleaned: few keys, producers, transactions, tombstones, gaps, cuts."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

from tests.encode import (
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
    """Appends batches as a leader would; its producers' epochs and sequences rise."""

    def __init__(self, draw: st.DrawFn, codecs: Sequence[int]) -> None:
        self._draw, self._codecs = draw, codecs
        self.batches: list[bytes] = []
        self._offset = draw(st.integers(0, 3))
        self._epochs = dict.fromkeys((*TRANSACTIONAL_IDS, *IDEMPOTENT_IDS), 0)
        self._sequences = dict.fromkeys(self._epochs, 0)
        self._open: set[int] = set()

    def data(self, producer: int | None) -> None:
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
        if producer is not None:
            if producer in TRANSACTIONAL_IDS:
                attributes |= TRANSACTIONAL
                self._open.add(producer)
            epoch, sequence = self._epochs[producer], self._sequences[producer]
            self._sequences[producer] += offset - base
        self._put(
            batch(
                records,
                base_offset=base,
                base_timestamp=records[0].timestamp,
                last_offset_delta=offset - 1 - base,
                attributes=attributes,
                leader_epoch=draw(st.integers(0, 1)),
                producer_id=-1 if producer is None else producer,
                producer_epoch=epoch,
                base_sequence=sequence,
            ),
            offset,
        )

    def marker(self, producer: int, kind: int) -> None:
        """End a transaction, or none; the epoch may rise with it."""
        if self._draw(st.booleans()):
            self._epochs[producer] += 1
            self._sequences[producer] = 0
        self._open.discard(producer)
        made = control(
            self._offset,
            kind,
            producer_id=producer,
            producer_epoch=self._epochs[producer],
            timestamp=START_MS + self._draw(st.integers(0, 60)),
            attributes=TRANSACTIONAL | CONTROL,
        )
        self._put(made, self._offset + 1)

    def end(self) -> None:
        """End what is open."""
        for producer in sorted(self._open):
            self.marker(producer, self._draw(st.sampled_from((ABORT, COMMIT))))

    def _put(self, made: bytes, behind: int) -> None:
        self.batches.append(made)
        self._offset = behind + self._draw(st.sampled_from((0, 0, 0, 1)))


@st.composite
def logs(draw: st.DrawFn, codecs: Sequence[int] = (0,), most: int = 14) -> list[bytes]:
    """Draw the batches of a log in which every transaction is ended."""
    writer = Writer(draw, codecs)
    steps = st.sampled_from(
        (None, None, *IDEMPOTENT_IDS, *TRANSACTIONAL_IDS, *TRANSACTIONAL_IDS, -1, -2)
    )
    for step in draw(st.lists(steps, max_size=most)):
        if step is None or step > 0:
            writer.data(step)
        else:
            writer.marker(-step, draw(st.sampled_from((ABORT, COMMIT))))
    writer.end()
    return writer.batches


@st.composite
def cuts(draw: st.DrawFn, batches: Sequence[bytes]) -> list[bytes]:
    """Cut a log into segments, one batch at least each."""
    if not batches:
        return []
    found = [batches[0]]
    for one in batches[1:]:
        if draw(st.integers(0, 2)) == 0:
            found.append(one)
        else:
            found[-1] += one
    return found
