"""Offsets and leader epochs in place: nothing under the CRC changes, nor anything if it fails."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from klog.logformat.batches import record_batch as v2
from klog.logformat.batches.batch_checksum import check_batch_crcs
from klog.logformat.batches.rewrite_offsets import rewrite_offsets
from klog.logformat.batches.scan_batches import scan_batches
from tests.logformat.reference_decoder import decode_with_klog
from tests.support.batch_bytes import plain

THREE = plain(5, [b"a", b"b"]) + plain(7) + plain(10, [b"c", None, b"e"])


def scanned(data: bytes | bytearray) -> v2.Batches:
    return scan_batches(bytes(data), 0, len(data))


@given(st.integers(0, 1 << 50), st.integers(-1, (1 << 31) - 1))
def test_only_what_is_asked_for_changes(shift: int, epoch: int) -> None:
    data = bytearray(THREE)
    batches = scanned(data)
    stamped = rewrite_offsets(data, batches, batches.base_offsets + shift, epoch)
    check_batch_crcs(bytes(data), scanned(data))
    assert [row.offset for row in decode_with_klog(bytes(data))] == [
        row.offset + shift for row in decode_with_klog(THREE)
    ]
    assert scanned(data).headers.tobytes() == stamped.headers.tobytes()
    assert set(stamped.headers["leader_epoch"].tolist()) == {epoch}
    for start, end in zip(batches.starts.tolist(), batches.ends.tolist(), strict=True):
        assert data[start + 8 : start + 12] == THREE[start + 8 : start + 12]
        assert data[start + 16 : end] == THREE[start + 16 : end]


def test_the_epoch_alone_and_the_offsets_alone() -> None:
    data = bytearray(THREE)
    rewrite_offsets(data, scanned(data), leader_epoch=500)
    assert scanned(data).base_offsets.tolist() == [5, 7, 10]
    rewrite_offsets(data, scanned(data), np.array([0, 2, 3]))
    assert scanned(data).base_offsets.tolist() == [0, 2, 3]
    assert scanned(data).headers["leader_epoch"].tolist() == [500] * 3


def test_some_batches_only() -> None:
    data = bytearray(THREE)
    rewrite_offsets(data, scanned(data).slice(1, 2), np.array([8]), 3)
    assert scanned(data).base_offsets.tolist() == [5, 8, 10]
    assert scanned(data).headers["leader_epoch"].tolist() == [0, 3, 0]


def test_no_batches() -> None:
    data = bytearray(b"x")
    assert len(rewrite_offsets(data, scanned(b""), leader_epoch=1)) == 0
    assert data == b"x"


@pytest.mark.parametrize(
    ("offsets", "epoch", "words"),
    [
        ([0, 1, 3], 0, "cannot get these offsets"),
        ([-1, 2, 3], 0, "cannot get these offsets"),
        ([5, 7, 1 << 62], -2, "leader epoch -2 does not exist"),
        (None, 1 << 31, "leader epoch .* does not exist"),
    ],
)
def test_what_is_refused_changes_nothing(
    offsets: Sequence[int] | None, epoch: int, words: str
) -> None:
    data = bytearray(THREE)
    with pytest.raises(ValueError, match=words):
        rewrite_offsets(data, scanned(data), None if offsets is None else np.array(offsets), epoch)
    assert data == THREE


def test_other_formats_are_refused() -> None:
    batches = scanned(THREE)
    batches.headers["magic"] = 1
    with pytest.raises(ValueError, match="only batches of format v2"):
        rewrite_offsets(bytearray(THREE), batches, leader_epoch=0)
