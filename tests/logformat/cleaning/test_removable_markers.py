"""Which markers are removable: those of transactions without data."""

from __future__ import annotations

import pytest

from klog.errors import CorruptRecordError
from klog.logformat.cleaning.removable_markers import CleanedTransactionMetadata
from tests.logformat.cleaning.cleaning_rounds import scan
from tests.support.batch_bytes import (
    ABORT,
    COMMIT,
    CONTROL,
    TRANSACTIONAL,
    batch,
    control,
    marker,
    plain,
    transactional,
)


def metadata_of(*segments: bytes) -> CleanedTransactionMetadata:
    transactions = CleanedTransactionMetadata()
    for segment in segments:
        transactions.add(segment, scan(segment))
    return transactions


def removable(*segments: bytes) -> list[int]:
    offsets: list[int] = metadata_of(*segments).removable_markers().tolist()
    return offsets


def emptied(offset: int, producer_id: int) -> bytes:
    return batch(
        base_offset=offset,
        attributes=TRANSACTIONAL,
        producer_id=producer_id,
        producer_epoch=0,
        base_sequence=0,
    )


@pytest.mark.parametrize("kind", [ABORT, COMMIT])
def test_marker_without_data_is_removable(kind: int) -> None:
    assert removable(marker(0, 1, kind)) == [0]
    assert removable(transactional(0, 1), marker(1, 1, kind)) == []
    assert removable(emptied(0, 1) + marker(1, 1, kind)) == []
    assert removable(transactional(0, 2), marker(1, 1, kind)) == [1]
    assert removable(plain(0), marker(1, 1, kind)) == [1]


def test_marker_ends_the_data_before_it() -> None:
    log = [
        transactional(0, 1),
        transactional(1, 2),
        marker(2, 1, COMMIT),
        marker(3, 1, ABORT),
        marker(4, 2, ABORT, producer_epoch=1),
        transactional(5, 1),
        marker(6, 2, COMMIT),
        marker(7, 1, COMMIT),
    ]
    assert removable(*log) == removable(b"".join(log)) == [3, 6]


def test_data_outside_of_transactions_does_not_count() -> None:
    own = batch(
        base_offset=0, producer_id=1, producer_epoch=0, base_sequence=0, last_offset_delta=0
    )
    assert removable(own + marker(1, 1, COMMIT)) == [1]


def test_other_control_batches_end_no_transaction() -> None:
    """An emptied marker has no outcome, and a batch of an unknown type is not a marker."""
    emptied_marker = batch(
        base_offset=1, attributes=TRANSACTIONAL | CONTROL, producer_id=1, producer_epoch=0
    )
    other = control(2, 9, producer_id=1, producer_epoch=0, attributes=TRANSACTIONAL | CONTROL)
    log = transactional(0, 1) + emptied_marker + other + control(3, 2) + marker(4, 1, COMMIT)
    assert removable(log) == []
    assert metadata_of(log).outcomes().is_aborted(scan(log), {}).tolist() == [False] * 5


def test_outcomes_are_those_of_the_markers() -> None:
    log = transactional(0, 1) + transactional(1, 2) + marker(2, 1, ABORT) + marker(3, 2, COMMIT)
    transactions = metadata_of(log[: len(transactional(0, 1))], log[len(transactional(0, 1)) :])
    assert transactions.outcomes().is_aborted(scan(log), {}).tolist() == [True, False, False, False]


def test_malformed_marker_is_corrupt() -> None:
    log = plain(0)
    malformed = control(
        1, 0, producer_id=1, producer_epoch=0, attributes=TRANSACTIONAL | CONTROL, key=b"\0"
    )
    with pytest.raises(CorruptRecordError) as caught:
        metadata_of(log + malformed)
    assert caught.value.position == len(log)
