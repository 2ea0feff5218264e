"""Markers of whose transactions nothing is left."""

from __future__ import annotations

import pytest

from klog.errors import CorruptRecordError
from klog.logformat.cleaning.spent import Transactions
from tests.encode import (
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
from tests.logformat.cleaning.rounds import scan


def met(*segments: bytes) -> Transactions:
    found = Transactions()
    for segment in segments:
        found.add(segment, scan(segment))
    return found


def spent(*segments: bytes) -> list[int]:
    offsets: list[int] = met(*segments).spent_markers().tolist()
    return offsets


def empty(offset: int, producer: int) -> bytes:
    return batch(
        base_offset=offset,
        attributes=TRANSACTIONAL,
        producer_id=producer,
        producer_epoch=0,
        base_sequence=0,
    )


@pytest.mark.parametrize("kind", [ABORT, COMMIT])
def test_a_marker_behind_nothing_is_spent(kind: int) -> None:
    assert spent(marker(0, 1, kind)) == [0]
    assert spent(transactional(0, 1), marker(1, 1, kind)) == []
    assert spent(empty(0, 1) + marker(1, 1, kind)) == []
    assert spent(transactional(0, 2), marker(1, 1, kind)) == [1]
    assert spent(plain(0), marker(1, 1, kind)) == [1]


def test_each_marker_ends_what_came_before_it() -> None:
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
    assert spent(*log) == spent(b"".join(log)) == [3, 6]


def test_data_outside_of_transactions_counts_for_none() -> None:
    own = batch(
        base_offset=0, producer_id=1, producer_epoch=0, base_sequence=0, last_offset_delta=0
    )
    assert spent(own + marker(1, 1, COMMIT)) == [1]


def test_other_controls_end_nothing() -> None:
    """An emptied marker says nothing, and types that nobody knows are no markers."""
    nothing = batch(
        base_offset=1, attributes=TRANSACTIONAL | CONTROL, producer_id=1, producer_epoch=0
    )
    other = control(2, 9, producer_id=1, producer_epoch=0, attributes=TRANSACTIONAL | CONTROL)
    log = transactional(0, 1) + nothing + other + control(3, 2) + marker(4, 1, COMMIT)
    assert spent(log) == []
    assert met(log).decisions().aborted(scan(log), {}).tolist() == [False] * 5


def test_decisions_are_those_of_the_markers() -> None:
    log = transactional(0, 1) + transactional(1, 2) + marker(2, 1, ABORT) + marker(3, 2, COMMIT)
    found = met(log[: len(transactional(0, 1))], log[len(transactional(0, 1)) :])
    assert found.decisions().aborted(scan(log), {}).tolist() == [True, False, False, False]


def test_a_marker_that_is_none_is_damage() -> None:
    log = plain(0)
    wrong = control(
        1, 0, producer_id=1, producer_epoch=0, attributes=TRANSACTIONAL | CONTROL, key=b"\0"
    )
    with pytest.raises(CorruptRecordError) as caught:
        met(log + wrong)
    assert caught.value.position == len(log)
