"""Markers, open transactions and outcomes, compared to a model that goes batch by batch."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from klog.errors import CorruptRecordError
from klog.logformat.batches import record_batch as v2
from klog.logformat.batches.scan_batches import scan_batches
from klog.logformat.producers import transaction_outcomes as tx
from tests.logformat.golden_vectors import BATCHES, CONTROLS, DIRECTORY
from tests.support.batch_bytes import (
    ABORT,
    COMMIT,
    CONTROL,
    TRANSACTIONAL,
    Record,
    batch,
    control,
    marker,
    plain,
    sealed,
    transactional,
    varint,
)

LOG = b"".join(DIRECTORY)


def scan(data: bytes) -> v2.Batches:
    return scan_batches(data, 0, len(data))


def kind_of(data: bytes) -> int | None:
    return tx.control_type(data, 0, len(data))


@pytest.mark.parametrize(("data", "kind"), CONTROLS.values(), ids=CONTROLS)
def test_golden_control_types(data: bytes, kind: int) -> None:
    assert kind_of(data) == kind
    assert tx.control_type(b"xyz" + data + b"junk", 3, 3 + len(data)) == kind
    assert scan(data).is_control.tolist() == [True]


@pytest.mark.parametrize(("data", "kind"), CONTROLS.values(), ids=CONTROLS)
def test_golden_markers(data: bytes, kind: int) -> None:
    offset = int(scan(data).base_offsets[0])
    assert tx.transaction_markers(data, scan(data)) == ([(offset, 4000, kind)] if kind < 2 else [])


@pytest.mark.parametrize("kind", [ABORT, COMMIT])
def test_markers_of_the_test_encoder(kind: int) -> None:
    data = marker(7, 4000, kind)
    assert len(data) == 78
    assert tx.transaction_markers(data, scan(data)) == [(7, 4000, kind)]


def test_emptied_control_batch_has_no_outcome() -> None:
    data = BATCHES["emptied_control"].data
    assert kind_of(data) is None
    assert tx.transaction_markers(data, scan(data)) == []


def test_count_decides_whether_a_control_batch_is_empty() -> None:
    # docs/format.md, 2: bytes after a count of 0 are ignored.
    assert kind_of(batch(attributes=CONTROL, payload=b"\xff" * 9, count=0)) is None
    with pytest.raises(CorruptRecordError, match="without a key"):
        kind_of(batch(attributes=CONTROL, payload=b"", count=1))


@pytest.mark.parametrize("kind", [2, 3, 6, 7, 999, -1, 32767])
def test_other_control_types_have_no_outcome(kind: int) -> None:
    data = control(5, kind, producer_id=9, attributes=TRANSACTIONAL | CONTROL)
    assert kind_of(data) == kind
    assert tx.transaction_markers(data, scan(data)) == []


def test_newer_key_version_is_read_as_version_0() -> None:
    for version, suffix in ((1, b""), (7, b"more fields"), (32767, bytes(100))):
        key = struct.pack(">hh", version, ABORT) + suffix
        assert kind_of(control(0, 0, key=key)) == ABORT


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        pytest.param(control(0, 0, key=b""), "without a key", id="empty key"),
        pytest.param(control(0, 0, key=b"\0\0\0"), "without a key", id="three bytes"),
        pytest.param(
            batch([Record(0, 0, None, b"v")], attributes=CONTROL), "without a key", id="null key"
        ),
        pytest.param(
            control(0, 0, key=struct.pack(">hh", -1, 0)), "version -1", id="negative version"
        ),
        pytest.param(
            batch(payload=varint(9) + b"\0\0\0" + varint(400) + bytes(9), count=1),
            "without a key",
            id="key past the batch",
        ),
        pytest.param(
            batch(payload=varint(5) + b"\0\0\0" + varint(4) + bytes(9), count=1),
            "without a key",
            id="key past the record",
        ),
        pytest.param(batch(payload=b"\xff" * 9, count=1), "varint", id="endless length"),
    ],
)
def test_malformed_control_record_is_corrupt(data: bytes, reason: str) -> None:
    with pytest.raises(CorruptRecordError, match=reason):
        kind_of(data)


@pytest.mark.parametrize(
    "damaged",
    [
        control(1, 0, producer_id=5, key=b""),
        batch(base_offset=1, payload=b"\xff" * 20, count=1, attributes=CONTROL, producer_id=5),
    ],
    ids=["no key", "a length that does not end"],
)
def test_damaged_control_record_names_its_batch(damaged: bytes) -> None:
    before = plain(0)
    data = before + damaged
    with pytest.raises(CorruptRecordError) as caught:
        tx.transaction_markers(data, scan(data))
    assert caught.value.position == len(before)


@settings(max_examples=300)
@given(st.binary(max_size=40), st.integers(0, 77))
def test_any_control_record_is_read_or_corrupt(payload: bytes, at: int) -> None:
    golden = CONTROLS["commit"][0]
    for data in (
        batch(payload=payload, count=1, attributes=CONTROL),
        sealed(golden[:61] + golden[61:at] + payload + golden[max(at, 61) :]),
    ):
        try:
            kind_of(data)
        except CorruptRecordError:
            continue


def test_golden_directory() -> None:
    batches = scan(LOG)
    markers = tx.transaction_markers(LOG, batches)
    assert markers == [(5, 10, ABORT), (7, 11, COMMIT), (9, 10, ABORT)]
    assert tx.replay_transactions({}, LOG, batches) == {13: 10}
    assert tx.undecided_producers(batches, markers) == {13}
    mask = tx.is_aborted(batches, markers, {})
    assert batches.where(mask).base_offsets.tolist() == [2, 6]
    by_index = tx.is_aborted_by_index(batches, [(10, 2, 5), (10, 6, 9)])
    assert by_index.tolist() == mask.tolist()


def test_open_transactions_after_every_batch() -> None:
    # First unstable offsets as of each batch of docs/format.md, 7.1.
    open_after: list[dict[int, int]] = [
        {},
        {10: 2},
        {10: 2, 11: 3},
        {11: 3},
        {11: 3, 10: 6},
        {10: 6},
        {10: 6},
        {},
        {13: 10},
    ]
    batches = scan(LOG)
    for number, expected in enumerate(open_after, 1):
        assert tx.replay_transactions({}, LOG, batches.slice(0, number)) == expected
    still_open: dict[int, int] = {}
    for number, expected in enumerate(open_after):
        still_open = tx.replay_transactions(still_open, LOG, batches.slice(number, number + 1))
        assert still_open == expected


def test_replay_does_not_change_its_argument() -> None:
    before = {10: 1}
    assert tx.replay_transactions(before, LOG, scan(LOG)) == {13: 10}
    assert before == {10: 1}


def test_marker_with_the_next_epoch_ends_the_transaction() -> None:
    # docs/format.md, seen 15: a v2 marker has the data's epoch + 1.
    for kind in (ABORT, COMMIT):
        data = transactional(0, 5) + marker(1, 5, kind, producer_epoch=1) + plain(2)
        batches = scan(data)
        markers = tx.transaction_markers(data, batches)
        assert tx.replay_transactions({}, data, batches) == {}
        assert tx.undecided_producers(batches, markers) == set()
        assert tx.is_aborted(batches, markers, {}).tolist() == [kind == ABORT, False, False]


def test_marker_without_data_ends_no_transaction() -> None:
    data = marker(0, 5, ABORT) + transactional(1, 6) + marker(2, 5, COMMIT)
    batches = scan(data)
    assert tx.replay_transactions({}, data, batches) == {6: 1}
    assert tx.undecided_producers(batches, tx.transaction_markers(data, batches)) == {6}


def test_emptied_marker_ends_no_transaction() -> None:
    emptied = batch(
        base_offset=1, attributes=TRANSACTIONAL | CONTROL, producer_id=5, producer_epoch=0
    )
    data = transactional(0, 5) + emptied + marker(2, 5, ABORT)
    batches = scan(data)
    assert tx.replay_transactions({}, data, batches.slice(0, 2)) == {5: 0}
    assert tx.is_aborted(batches, tx.transaction_markers(data, batches), {}).tolist() == [
        True,
        False,
        False,
    ]


def test_next_marker_decides_not_the_last() -> None:
    data = b"".join(
        [
            transactional(0, 5),
            marker(1, 5, COMMIT),
            transactional(2, 5),
            marker(3, 5, ABORT),
            transactional(4, 5),
            plain(5),
        ]
    )
    batches = scan(data)
    markers = tx.transaction_markers(data, batches)
    for later_markers, last_is_aborted in (
        ({}, False),
        ({5: ABORT}, True),
        ({5: COMMIT}, False),
        ({6: ABORT}, False),
    ):
        mask = tx.is_aborted(batches, markers, later_markers)
        assert mask.tolist() == [False, False, True, False, last_is_aborted, False]


def test_data_without_a_transaction_is_never_aborted() -> None:
    idempotent = batch([Record(0, 0)], producer_id=5, producer_epoch=0, base_sequence=0)
    data = idempotent + transactional(1, 5) + marker(2, 5, ABORT)
    batches = scan(data)
    assert batches.is_transactional_data.tolist() == [False, True, False]
    assert tx.is_aborted(batches, tx.transaction_markers(data, batches), {}).tolist() == [
        False,
        True,
        False,
    ]
    assert tx.is_aborted_by_index(batches, [(5, 0, 2)]).tolist() == [False, True, False]


def test_index_entry_has_its_offsets_and_producer() -> None:
    data = b"".join(transactional(i, 5 + i % 2) for i in range(8))
    mask = tx.is_aborted_by_index(scan(data), [(5, 2, 4), (6, 7, 9)])
    assert mask.tolist() == [False, False, True, False, True, False, False, True]


small = st.integers(0, 12)


@given(st.lists(st.tuples(st.integers(5, 7), small, small), max_size=8))
def test_any_index_entry_marks_its_range(entries: list[tuple[int, int, int]]) -> None:
    data = b"".join(
        transactional(i, 5 + i % 3) if i % 4 else marker(i, 5 + i % 3, ABORT) for i in range(12)
    )
    batches = scan(data)
    ids = batches.headers["producer_id"].tolist()
    expected = [
        bool(offset % 4)
        and any(
            entry_id == producer_id and first <= offset <= last for entry_id, first, last in entries
        )
        for offset, producer_id in enumerate(ids)
    ]
    assert tx.is_aborted_by_index(batches, entries).tolist() == expected
    assert tx.is_aborted_by_index(batches, tx.aborted_rows(entries)).tolist() == expected


def outcomes_by_model(log: list[tuple[str, int, int]]) -> tuple[set[int], dict[int, int]]:
    """Return the aborted offsets and the open transactions of (kind, offset, producer id) rows."""
    pending: dict[int, list[int]] = {}
    aborted: set[int] = set()
    for kind, offset, producer_id in log:
        if kind == "data":
            pending.setdefault(producer_id, []).append(offset)
        elif kind in ("abort", "commit"):
            offsets = pending.pop(producer_id, [])
            aborted.update(offsets if kind == "abort" else [])
    return aborted, {producer_id: offsets[0] for producer_id, offsets in pending.items()}


@settings(max_examples=150)
@given(st.integers(0, 1 << 30), st.integers(0, 40), st.integers(0, 40))
def test_any_interleaving(seed: int, count: int, cut: int) -> None:
    rng = random.Random(seed)
    log = [
        (rng.choice(["data", "data", "abort", "commit", "plain", "other"]), i, rng.randrange(4))
        for i in range(count)
    ]
    encoders: dict[str, Callable[[int, int], bytes]] = {
        "data": lambda i, p: transactional(i, p),
        "abort": lambda i, p: marker(i, p, ABORT, rng.randrange(2)),
        "commit": lambda i, p: marker(i, p, COMMIT, rng.randrange(2)),
        "plain": lambda i, _: plain(i),
        "other": lambda i, p: control(i, 2, producer_id=p, attributes=TRANSACTIONAL | CONTROL),
    }
    data = b"".join(encoders[kind](offset, producer_id) for kind, offset, producer_id in log)
    batches = scan(data)
    aborted, open_transactions = outcomes_by_model(log)
    assert tx.replay_transactions({}, data, batches) == open_transactions
    markers = tx.transaction_markers(data, batches)
    assert tx.undecided_producers(batches, markers) == set(open_transactions)
    mask = tx.is_aborted(batches, markers, {})
    assert set(batches.where(mask).base_offsets.tolist()) == aborted
    # In two parts: the first needs to know the next markers of the second.
    first, second = batches.slice(0, cut), batches.slice(cut, len(batches))
    later_markers = {
        producer_id: kind for _, producer_id, kind in reversed(tx.transaction_markers(data, second))
    }
    mask = tx.is_aborted(first, tx.transaction_markers(data, first), later_markers)
    expected = {offset for offset in aborted if offset < cut}
    assert set(first.where(mask).base_offsets.tolist()) == expected
    open_at_cut = tx.replay_transactions({}, data, first)
    assert tx.replay_transactions(open_at_cut, data, second) == open_transactions
