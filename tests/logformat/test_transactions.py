"""Markers, open transactions and fates, against a reader that goes batch by batch."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from klog.errors import CorruptRecordError
from klog.logformat import batch as v2
from klog.logformat import transactions as tx
from tests.encode import (
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
from tests.logformat.golden import BATCHES, CONTROLS, DIRECTORY

LOG = b"".join(DIRECTORY)


def scan(data: bytes) -> v2.Batches:
    return v2.scan(data, 0, len(data))


def kind_of(data: bytes) -> int | None:
    return tx.control_type(data, 0, len(data))


@pytest.mark.parametrize(("data", "kind"), CONTROLS.values(), ids=CONTROLS)
def test_golden_control_types(data: bytes, kind: int) -> None:
    assert kind_of(data) == kind
    assert tx.control_type(b"xyz" + data + b"junk", 3, 3 + len(data)) == kind
    assert tx.is_control(scan(data)).tolist() == [True]


@pytest.mark.parametrize(("data", "kind"), CONTROLS.values(), ids=CONTROLS)
def test_golden_markers(data: bytes, kind: int) -> None:
    offset = int(scan(data).base_offsets[0])
    assert tx.markers(data, scan(data)) == ([(offset, 4000, kind)] if kind < 2 else [])


@pytest.mark.parametrize("kind", [ABORT, COMMIT])
def test_the_encoder_writes_markers_as_a_broker_does(kind: int) -> None:
    data = marker(7, 4000, kind)
    assert len(data) == 78
    assert tx.markers(data, scan(data)) == [(7, 4000, kind)]


def test_an_emptied_control_batch_says_nothing() -> None:
    data = BATCHES["emptied_control"].data
    assert kind_of(data) is None
    assert tx.markers(data, scan(data)) == []


def test_the_count_says_whether_a_control_batch_is_empty() -> None:
    # docs/format.md, 2: what follows a count of 0 is not looked at.
    assert kind_of(batch(attributes=CONTROL, payload=b"\xff" * 9, count=0)) is None
    with pytest.raises(CorruptRecordError, match="without a key"):
        kind_of(batch(attributes=CONTROL, payload=b"", count=1))


@pytest.mark.parametrize("kind", [2, 3, 6, 7, 999, -1, 32767])
def test_types_that_decide_nothing(kind: int) -> None:
    data = control(5, kind, producer_id=9, attributes=TRANSACTIONAL | CONTROL)
    assert kind_of(data) == kind
    assert tx.markers(data, scan(data)) == []


def test_a_later_version_of_the_key_is_read_as_the_first() -> None:
    for version, more in ((1, b""), (7, b"more fields"), (32767, bytes(100))):
        key = struct.pack(">hh", version, ABORT) + more
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
def test_control_records_that_cannot_be(data: bytes, reason: str) -> None:
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
def test_a_damaged_control_record_names_its_batch(damaged: bytes) -> None:
    before = plain(0)
    data = before + damaged
    with pytest.raises(CorruptRecordError) as caught:
        tx.markers(data, scan(data))
    assert caught.value.position == len(before)


@settings(max_examples=300)
@given(st.binary(max_size=40), st.integers(0, 77))
def test_any_control_record_is_read_or_refused(payload: bytes, at: int) -> None:
    golden = CONTROLS["commit"][0]
    for data in (
        batch(payload=payload, count=1, attributes=CONTROL),
        sealed(golden[:61] + golden[61:at] + payload + golden[max(at, 61) :]),
    ):
        try:
            kind_of(data)
        except CorruptRecordError:
            continue


def test_the_golden_directory() -> None:
    batches = scan(LOG)
    decided = tx.markers(LOG, batches)
    assert decided == [(5, 10, ABORT), (7, 11, COMMIT), (9, 10, ABORT)]
    assert tx.follow({}, LOG, batches) == {13: 10}
    assert tx.undecided(batches, decided) == {13}
    mask = tx.aborted(batches, decided, {})
    assert batches.where(mask).base_offsets.tolist() == [2, 6]
    by_index = tx.aborted_by_index(batches, [(10, 2, 5), (10, 6, 9)])
    assert by_index.tolist() == mask.tolist()


def test_open_transactions_after_every_batch() -> None:
    # First unstable offsets as of each batch of docs/format.md, 7.1.
    opened: list[dict[int, int]] = [
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
    for number, expected in enumerate(opened, 1):
        assert tx.follow({}, LOG, batches.part(0, number)) == expected
    now: dict[int, int] = {}
    for number, expected in enumerate(opened):
        now = tx.follow(now, LOG, batches.part(number, number + 1))
        assert now == expected


def test_follow_does_not_change_what_it_is_given() -> None:
    given_open = {10: 1}
    assert tx.follow(given_open, LOG, scan(LOG)) == {13: 10}
    assert given_open == {10: 1}


def test_an_epoch_one_higher_closes_as_well() -> None:
    # docs/format.md, seen 15: a v2 marker has the data's epoch + 1.
    for kind in (ABORT, COMMIT):
        data = transactional(0, 5) + marker(1, 5, kind, producer_epoch=1) + plain(2)
        batches = scan(data)
        decided = tx.markers(data, batches)
        assert tx.follow({}, data, batches) == {}
        assert tx.undecided(batches, decided) == set()
        assert tx.aborted(batches, decided, {}).tolist() == [kind == ABORT, False, False]


def test_a_marker_without_data_closes_nothing() -> None:
    data = marker(0, 5, ABORT) + transactional(1, 6) + marker(2, 5, COMMIT)
    batches = scan(data)
    assert tx.follow({}, data, batches) == {6: 1}
    assert tx.undecided(batches, tx.markers(data, batches)) == {6}


def test_an_emptied_marker_closes_nothing() -> None:
    emptied = batch(
        base_offset=1, attributes=TRANSACTIONAL | CONTROL, producer_id=5, producer_epoch=0
    )
    data = transactional(0, 5) + emptied + marker(2, 5, ABORT)
    batches = scan(data)
    assert tx.follow({}, data, batches.part(0, 2)) == {5: 0}
    assert tx.aborted(batches, tx.markers(data, batches), {}).tolist() == [True, False, False]


def test_the_next_marker_decides_not_the_last() -> None:
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
    decided = tx.markers(data, batches)
    for later, last in (({}, False), ({5: ABORT}, True), ({5: COMMIT}, False), ({6: ABORT}, False)):
        mask = tx.aborted(batches, decided, later)
        assert mask.tolist() == [False, False, True, False, last, False]


def test_data_without_a_transaction_is_never_aborted() -> None:
    idempotent = batch([Record(0, 0)], producer_id=5, producer_epoch=0, base_sequence=0)
    data = idempotent + transactional(1, 5) + marker(2, 5, ABORT)
    batches = scan(data)
    assert tx.is_transactional_data(batches).tolist() == [False, True, False]
    assert tx.aborted(batches, tx.markers(data, batches), {}).tolist() == [False, True, False]
    assert tx.aborted_by_index(batches, [(5, 0, 2)]).tolist() == [False, True, False]


def test_aborted_by_index_keeps_to_its_offsets_and_producer() -> None:
    data = b"".join(transactional(i, 5 + i % 2) for i in range(8))
    mask = tx.aborted_by_index(scan(data), [(5, 2, 4), (6, 7, 9)])
    assert mask.tolist() == [False, False, True, False, True, False, False, True]


small = st.integers(0, 12)


@given(st.lists(st.tuples(st.integers(5, 7), small, small), max_size=8))
def test_aborted_by_index_is_what_each_entry_says(entries: list[tuple[int, int, int]]) -> None:
    data = b"".join(
        transactional(i, 5 + i % 3) if i % 4 else marker(i, 5 + i % 3, ABORT) for i in range(12)
    )
    batches = scan(data)
    ids = batches.headers["producer_id"].tolist()
    wanted = [
        bool(offset % 4) and any(p == own and a <= offset <= b for p, a, b in entries)
        for offset, own in enumerate(ids)
    ]
    assert tx.aborted_by_index(batches, entries).tolist() == wanted
    assert tx.aborted_by_index(batches, tx.rows_of(entries)).tolist() == wanted


def by_plodding(log: list[tuple[str, int, int]]) -> tuple[set[int], dict[int, int]]:
    """Give the aborted offsets and the open transactions of (what, offset, producer) rows."""
    pending: dict[int, list[int]] = {}
    gone: set[int] = set()
    for what, offset, producer in log:
        if what == "data":
            pending.setdefault(producer, []).append(offset)
        elif what in ("abort", "commit"):
            done = pending.pop(producer, [])
            gone.update(done if what == "abort" else [])
    return gone, {producer: offsets[0] for producer, offsets in pending.items()}


@settings(max_examples=150)
@given(st.integers(0, 1 << 30), st.integers(0, 40), st.integers(0, 40))
def test_any_interleaving(seed: int, count: int, cut: int) -> None:
    rng = random.Random(seed)
    log = [
        (rng.choice(["data", "data", "abort", "commit", "plain", "other"]), i, rng.randrange(4))
        for i in range(count)
    ]
    written: dict[str, Callable[[int, int], bytes]] = {
        "data": lambda i, p: transactional(i, p),
        "abort": lambda i, p: marker(i, p, ABORT, rng.randrange(2)),
        "commit": lambda i, p: marker(i, p, COMMIT, rng.randrange(2)),
        "plain": lambda i, _: plain(i),
        "other": lambda i, p: control(i, 2, producer_id=p, attributes=TRANSACTIONAL | CONTROL),
    }
    data = b"".join(written[what](offset, producer) for what, offset, producer in log)
    batches = scan(data)
    gone, opened = by_plodding(log)
    assert tx.follow({}, data, batches) == opened
    decided = tx.markers(data, batches)
    assert tx.undecided(batches, decided) == set(opened)
    mask = tx.aborted(batches, decided, {})
    assert set(batches.where(mask).base_offsets.tolist()) == gone
    # In two pieces, the second telling the first which marker comes next.
    first, second = batches.part(0, cut), batches.part(cut, len(batches))
    next_marker = {p: kind for _, p, kind in reversed(tx.markers(data, second))}
    kept = tx.aborted(first, tx.markers(data, first), next_marker)
    assert set(first.where(kept).base_offsets.tolist()) == {o for o in gone if o < cut}
    assert tx.follow(tx.follow({}, data, first), data, second) == opened
