"""Producer state: the batches that count, open and completed transactions, expiry (10)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klog.errors import CorruptRecordError
from klog.logformat.batches import record_batch as v2
from klog.logformat.batches.scan_batches import scan_batches
from klog.logformat.indexes.transaction_index import AbortedTransaction
from klog.logformat.producers.producer_batch import (
    EndTransactionMarker,
    ProducerBatch,
    producer_batches,
)
from klog.logformat.producers.producer_snapshot import ProducerEntry
from klog.logformat.producers.producer_state import (
    EXPIRATION_MS,
    CompletedTransaction,
    ProducerState,
)
from tests.logformat.golden_vectors import CONTROLS, DIRECTORY
from tests.support.batch_bytes import (
    CONTROL,
    TRANSACTIONAL,
    Record,
    batch,
    control,
    marker,
    plain,
    transactional,
)


def scan(log: bytes) -> v2.Batches:
    return scan_batches(log, 0, len(log))


def data(
    offset: int, sequence: int, epoch: int = 0, count: int = 1, *, is_transactional: bool = False
) -> ProducerBatch:
    last_offset = offset + count - 1
    return ProducerBatch(1, epoch, sequence, offset, last_offset, 1000, is_transactional)


def opening(producer_id: int, first_offset: int) -> ProducerBatch:
    return ProducerBatch(producer_id, 0, 0, first_offset, first_offset, 1000, is_transactional=True)


def aborting(producer_id: int, offset: int, epoch: int = 0) -> ProducerBatch:
    return ProducerBatch(
        producer_id,
        epoch,
        -1,
        offset,
        offset,
        1000,
        is_transactional=True,
        is_control=True,
        marker=EndTransactionMarker(is_abort=True, coordinator_epoch=3),
    )


def test_golden_directory_batch_by_batch() -> None:
    log = b"".join(DIRECTORY)
    state = ProducerState()
    completed = state.replay(log, scan(log))
    assert completed == [
        CompletedTransaction(10, 2, 5, is_aborted=True, last_stable_offset=3),
        CompletedTransaction(11, 3, 7, is_aborted=False, last_stable_offset=6),
        CompletedTransaction(10, 6, 9, is_aborted=True, last_stable_offset=10),
    ]
    assert completed[0].index_entry() == AbortedTransaction(10, 2, 5, 3)
    assert state.open_transactions == {13: 10}
    assert state.end_offset == 11


def test_fields_of_producer_batches() -> None:
    opening_bytes = transactional(1, 7, [b"a", b"b"])
    log = plain(0) + opening_bytes + marker(3, 7, 0, producer_epoch=2)
    batches = producer_batches(log, scan(log))
    first_position = len(plain(0))
    assert batches == [
        ProducerBatch(7, 0, 0, 1, 2, 1002, is_transactional=True, position=first_position),
        ProducerBatch(
            7,
            2,
            -1,
            3,
            3,
            0,
            is_transactional=True,
            is_control=True,
            marker=EndTransactionMarker(is_abort=True, coordinator_epoch=0),
            position=first_position + len(opening_bytes),
        ),
    ]
    assert [producer_batch.last_sequence for producer_batch in batches] == [1, -1]


def test_golden_markers() -> None:
    by_type = {}
    for name in ("commit", "abort"):
        encoded = next(data for key, (data, _) in CONTROLS.items() if name in key.lower())
        (by_type[name],) = producer_batches(encoded, scan(encoded))
    assert by_type["commit"].marker == EndTransactionMarker(is_abort=False, coordinator_epoch=9)
    assert by_type["abort"].marker == EndTransactionMarker(is_abort=True, coordinator_epoch=9)
    assert (by_type["commit"].producer_id, by_type["commit"].epoch) == (4000, 3)


def test_marker_of_a_newer_version_is_read() -> None:
    encoded = control(
        0,
        1,
        producer_id=7,
        producer_epoch=0,
        attributes=TRANSACTIONAL | CONTROL,
        value=b"\0\5\0\0\0\x2amore",
    )
    (producer_batch,) = producer_batches(encoded, scan(encoded))
    assert producer_batch.marker == EndTransactionMarker(is_abort=False, coordinator_epoch=42)


@given(st.binary(max_size=40))
def test_any_marker_is_read_or_corrupt(payload: bytes) -> None:
    encoded = batch(
        [Record(0, 0)],
        attributes=TRANSACTIONAL | CONTROL,
        producer_id=7,
        producer_epoch=0,
        payload=payload,
    )
    try:
        (producer_batch,) = producer_batches(encoded, scan(encoded))
    except CorruptRecordError:
        return
    assert producer_batch.is_control


def test_entry_has_the_last_batch() -> None:
    state = ProducerState()
    state.apply(data(0, 0, epoch=2, count=3))
    state.apply(data(7, 3, epoch=2, count=2))
    assert state.snapshot() == (ProducerEntry(1, 2, 4, 8, 1, 1000, -1, -1),)


def test_marker_of_the_same_epoch_keeps_the_last_batch() -> None:
    state = ProducerState()
    state.apply(data(0, 5, is_transactional=True))
    state.apply(aborting(1, 1))
    assert state.producers[1] == ProducerEntry(1, 0, 5, 0, 0, 1000, 3, -1)


def test_marker_of_a_newer_epoch_drops_the_last_batch() -> None:
    state = ProducerState()
    state.apply(data(0, 5, is_transactional=True))
    state.apply(aborting(1, 1, epoch=1))
    assert state.producers[1] == ProducerEntry(1, 1, -1, -1, 0, 1000, 3, -1)


def test_marker_without_data_completes_no_transaction() -> None:
    state = ProducerState()
    assert state.apply(aborting(1, 0)) is None
    assert state.end_offset == 1


def test_emptied_control_batch_changes_only_the_end_offset() -> None:
    state = ProducerState()
    state.apply(data(0, 0, is_transactional=True))
    before = dict(state.producers)
    state.apply(ProducerBatch(1, 4, -1, 1, 1, 5000, is_transactional=True, is_control=True))
    assert (state.producers, state.open_transactions) == (before, {1: 0})
    assert state.end_offset == 2


def test_data_outside_an_open_transaction_is_corrupt() -> None:
    state = ProducerState()
    state.apply(data(0, 0, is_transactional=True))
    before = dict(state.producers)
    with pytest.raises(CorruptRecordError, match="producer 1: data outside its transaction"):
        state.apply(data(1, 1))
    assert (state.producers, state.end_offset) == (before, 1)


def test_last_stable_offset_of_a_completed_transaction() -> None:
    state = ProducerState()
    for first_offset in (0, 1, 2):
        state.apply(opening(first_offset, first_offset))
    stable = []
    for offset, producer_id in enumerate((1, 0, 2), 3):
        completed = state.apply(aborting(producer_id, offset))
        assert completed is not None
        stable.append(completed.last_stable_offset)
    assert stable == [0, 2, 6]


def test_many_open_transactions_end_in_linear_time() -> None:
    count = 10_000  # Visiting every open transaction at every marker would be 50 million steps.
    state = ProducerState()
    for number in range(count):
        state.apply(opening(number, number))
    for number in range(count):
        completed = state.apply(aborting(number, count + number))
        assert completed is not None
        assert completed.last_stable_offset == (number + 1 if number + 1 < count else 2 * count)


def test_producers_expire_unless_their_transaction_is_open() -> None:
    state = ProducerState()
    state.apply(data(0, 0))
    state.apply(opening(2, 1))
    state.expire(1000 + EXPIRATION_MS - 1)
    assert sorted(state.producers) == [1, 2]
    state.expire(1000 + EXPIRATION_MS)
    assert sorted(state.producers) == [2]
