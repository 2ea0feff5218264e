"""Whole logs that lie: cut anywhere, a bit flipped anywhere, bytes moved, sizes claimed.

The rule: what is read is exactly what lies before the damage, or the damage is named; and a claim
costs no memory before it is believed.
"""

from __future__ import annotations

import tracemalloc
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from klog.errors import CorruptRecordError
from klog.logformat.batches import record_batch as v2
from klog.logformat.batches.batch_checksum import check_batch_crcs
from klog.logformat.batches.decode_records import decode_records
from klog.logformat.batches.scan_batches import scan_batches
from klog.logformat.producers import transaction_outcomes as txn
from tests.fuzz.seeds import SEEDS
from tests.fuzz.targets import TARGETS, check
from tests.logformat.golden_vectors import DIRECTORY
from tests.logformat.reference_decoder import ALL, to_records
from tests.support import batch_bytes
from tests.support.batch_bytes import Record, batch, sealed, varint

LOG = b"".join(DIRECTORY)
OUTSIDE_THE_CRC = ("base_offset", "leader_epoch")
LARGEST = (1 << 31) - 1
PLAIN = [Record(i, 1000 + i, b"k%d" % i, b"v" * i) for i in range(4)]


def read(data: bytes) -> list[Record]:
    batches = scan_batches(data, 0, len(data))
    check_batch_crcs(data, batches)
    return to_records(decode_records(data, batches, ALL))


def test_every_flipped_bit_of_a_log_is_caught_cuts_it_or_lies_outside_the_crc() -> None:
    whole = scan_batches(LOG, 0, len(LOG))
    for bit in range(8 * len(LOG)):
        flipped = bytearray(LOG)
        flipped[bit // 8] ^= 1 << bit % 8
        data = bytes(flipped)
        number = int(np.searchsorted(whole.ends, bit // 8, "right"))
        field = _field(bit // 8 - int(whole.starts[number]))
        try:
            batches = scan_batches(data, 0, len(data))
            check_batch_crcs(data, batches)
        except CorruptRecordError:
            continue
        if field == "length":
            assert batches.ends.tolist() == whole.ends[:number].tolist(), bit
        else:
            assert field in OUTSIDE_THE_CRC, bit
            assert batches.ends.tolist() == whole.ends.tolist(), bit


def _field(at: int) -> str:
    names = v2.HEADER.names or ()
    starts = np.cumsum([0, *(v2.HEADER[name].itemsize for name in names)])
    return [*names, "body"][int(np.searchsorted(starts, at, "right")) - 1]


@st.composite
def logs(draw: st.DrawFn) -> list[bytes]:
    """Make a log of data in any codec, transactions and markers."""
    batches: list[bytes] = []
    for offset in range(0, 4 * draw(st.integers(1, 5)), 4):
        kind = draw(st.sampled_from(["codec", "codec", "transaction", "marker", "empty"]))
        if kind == "codec":
            moved = [
                Record(offset + record.offset, record.timestamp, record.key, record.value)
                for record in PLAIN
            ]
            batches.append(batch(moved, attributes=draw(st.sampled_from(batch_bytes.CODECS))))
        elif kind == "transaction":
            batches.append(batch_bytes.transactional(offset, draw(st.integers(1, 2)), [b"a", b"b"]))
        elif kind == "marker":
            outcome = draw(st.sampled_from([batch_bytes.ABORT, batch_bytes.COMMIT]))
            batches.append(batch_bytes.marker(offset, draw(st.integers(1, 2)), outcome))
        else:
            batches.append(batch(base_offset=offset, last_offset_delta=3))
    return batches


@settings(max_examples=30)
@given(logs(), st.data())
def test_a_cut_at_any_byte_gives_exactly_the_batches_before_it(
    batches_of_log: list[bytes], data: st.DataObject
) -> None:
    log = b"".join(batches_of_log)
    size = data.draw(st.integers(0, len(log)))
    ends = np.cumsum([len(item) for item in batches_of_log])
    whole = batches_of_log[: int((ends <= size).sum())]
    cut, before = log[:size], b"".join(whole)
    batches = scan_batches(cut, 0, size)
    assert batches.ends.tolist() == ends[: len(whole)].tolist()
    assert read(cut) == [item for each in whole for item in read(each)]
    assert txn.replay_transactions({}, cut, batches) == txn.replay_transactions(
        {}, before, scan_batches(before, 0, len(before))
    )


@settings(max_examples=50)
@given(logs(), st.data())
def test_a_flipped_bit_under_a_crc_is_caught_in_any_log(
    batches: list[bytes], data: st.DataObject
) -> None:
    number = data.draw(st.integers(0, len(batches) - 1))
    bit = data.draw(st.integers(8 * v2.CRC_START, 8 * len(batches[number]) - 1))
    flipped = bytearray(batches[number])
    flipped[bit // 8] ^= 1 << bit % 8
    log = b"".join([*batches[:number], bytes(flipped), *batches[number + 1 :]])
    with pytest.raises(CorruptRecordError) as caught:
        read(log)
    # A last offset that was raised shows first in the batch after it, whose offset is below it.
    starts = [sum(map(len, batches[:before])) for before in (number, number + 1)]
    assert caught.value.position in starts


@cache
def _seeds(name: str) -> list[bytes]:
    return list(SEEDS[name]())


@pytest.mark.parametrize("name", TARGETS)
@settings(max_examples=40)
@given(data=st.data())
def test_any_bytes_decode_or_are_refused(name: str, data: st.DataObject) -> None:
    seed = data.draw(st.just(b"") | st.sampled_from(_seeds(name)))
    at = data.draw(st.integers(0, len(seed)))
    gone = data.draw(st.integers(0, 8))
    check(name, seed[:at] + data.draw(st.binary(max_size=12)) + seed[at + gone :])


def _claims() -> dict[str, bytes]:
    """Yield batches of a few hundred bytes with a valid CRC that claim to be huge."""
    body = batch_bytes.record(PLAIN[0], 0, 0)
    start = b"\0" + varint(0) + varint(0)

    def one_record(rest: bytes) -> bytes:
        return batch(payload=varint(len(start + rest)) + start + rest, count=1)

    raw_snappy = batch_bytes.unsigned(LARGEST) + b"\0" * 40
    return {
        "count": batch(payload=body, count=LARGEST, last_offset_delta=LARGEST),
        "record length": batch(payload=varint(LARGEST) + body, count=1),
        "key length": batch(payload=one_record(varint(LARGEST) + b"\1\0")[61:], count=1),
        "value length": one_record(varint(-1) + varint(LARGEST) + b"\0"),
        "header count": one_record(varint(-1) + varint(-1) + varint(LARGEST) + b"\0" * 9),
        "header name": one_record(varint(-1) + varint(-1) + varint(1) + varint(LARGEST) + b"\1"),
        "header value": one_record(
            varint(-1) + varint(-1) + varint(1) + varint(1) + b"n" + varint(LARGEST)
        ),
        "snappy size": batch(payload=raw_snappy, attributes=batch_bytes.SNAPPY, count=1),
        "xerial block": batch(
            payload=batch_bytes.xerial(b"") + LARGEST.to_bytes(4, "big"),
            attributes=batch_bytes.SNAPPY,
            count=1,
        ),
        "lz4 block": batch(
            payload=bytes.fromhex("04224d18604082") + LARGEST.to_bytes(4, "little"),
            attributes=batch_bytes.LZ4,
            count=1,
        ),
        "zstd content size": batch(
            payload=bytes.fromhex("28b52ffde0") + LARGEST.to_bytes(8, "little") + b"\1\0\0",
            attributes=batch_bytes.ZSTD,
            count=1,
        ),
    }


@pytest.mark.parametrize("claim", _claims())
def test_a_claim_costs_no_memory(claim: str) -> None:
    data = sealed(_claims()[claim])
    tracemalloc.start()
    try:
        with pytest.raises(CorruptRecordError):
            read(data)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak_bytes < 1 << 20


def test_a_batch_longer_than_any_file_is_a_cut_log() -> None:
    data = batch_bytes.plain(0) + batch(PLAIN, base_offset=10, length=LARGEST)
    assert len(scan_batches(data, 0, len(data))) == 1
