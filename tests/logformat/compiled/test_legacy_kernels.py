"""Loops that read formats v0 and v1 give what columns give, or leave it to columns."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from klog.logformat.batches import crc32, legacy_messages, message_bounds
from klog.logformat.batches import decode_records as decoding
from klog.logformat.batches.batch_checksum import check_batch_crcs
from klog.logformat.batches.decode_records import decode_records
from klog.logformat.batches.scan_batches import scan_batches
from tests.logformat.compiled.damaged_messages import check
from tests.logformat.compiled.test_record_kernels import checked
from tests.logformat.legacy_logs import ALL, decode_with_klog, rows
from tests.support.batch_bytes import GZIP, LZ4, Record
from tests.support.kernels import legacy_kernels
from tests.support.legacy_bytes import plain, seen, wrapper

ROWS = [
    Record(5 + at, 1000 + at, b"k" * (at % 40) if at % 3 else None, b"v" * at if at % 5 else None)
    for at in range(600)
]


def test_it_is_whatever_columns_give() -> None:
    whole = sum(map(check, range(500)))
    assert 150 < whole < 400


def test_no_input_leads_out_of_what_a_loop_was_given(tmp_path: Path) -> None:
    assert "were whole" in checked(tmp_path, "tests.logformat.compiled.damaged_messages", "1500")


@pytest.mark.parametrize("codec", [None, GZIP, LZ4])
@pytest.mark.parametrize("magic", [0, 1])
def test_what_is_sound_is_not_left_to_columns(
    magic: int, codec: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: Any) -> Iterator[Any]:
        raise AssertionError("left to columns")

    for module, name in (
        (message_bounds, "_walk_side_by_side"),
        (legacy_messages, "_find_field"),
        (decoding, "gather_fields"),
        (legacy_messages, "all_crcs_match"),
    ):
        monkeypatch.setattr(module, name, refused)
    halves = (ROWS[:300], ROWS[300:])
    data = b"".join(
        plain(half, magic) if codec is None else wrapper(half, magic, codec) for half in halves
    )
    batches = scan_batches(data, 0, len(data))
    check_batch_crcs(data, batches, legacy_kernels)
    assert rows(decode_records(data, batches, ALL, kernels=legacy_kernels)) == seen(ROWS, magic)


def test_each_loop_is_compiled_once() -> None:
    legacy_kernels.compile_all()
    data = plain(ROWS, 1) + wrapper([Record(700, 1, b"k", b"v")] * 1, 0, GZIP)
    assert len(decode_with_klog(data)) == len(ROWS) + 1
    each: list[Any] = [
        legacy_kernels.find_messages,
        legacy_kernels.find_keys_and_values,
        legacy_kernels.expected_crc32,
        legacy_kernels.copy_fields,
    ]
    assert [len(loop.signatures) for loop in each] == [1] * len(each)


def test_entries_with_something_between_them_are_looked_at_otherwise() -> None:
    first, second = plain(ROWS[:1], 1), plain(ROWS[1:2], 1)
    data = first + b"between" + second
    starts = np.array([0, len(first) + 7])
    ends = np.array([len(first), len(data)])
    stored = np.array([int.from_bytes(data[at + 12 : at + 16], "big") for at in starts])
    assert not crc32.all_crcs_match_compiled(legacy_kernels, data, starts, ends, stored)
    legacy_messages.check_message_crcs(data, starts, ends, stored)
    for part in (slice(0, 1), slice(1, 2)):
        arguments = starts[part], ends[part], stored[part]
        assert crc32.all_crcs_match_compiled(legacy_kernels, data, *arguments)
        assert not crc32.all_crcs_match_compiled(
            legacy_kernels, data, *arguments[:2], arguments[2] ^ 1
        )


@pytest.mark.parametrize("size", [0, 1, 239, 240, 255, 65_519, 65_520, 70_000, 1 << 24])
def test_every_digit_of_a_length(size: int) -> None:
    rows = [Record(0, 1, b"a", b""), Record(1, 1, None, bytes(size)), Record(2, 1, b"b", b"last")]
    data = plain(rows, 0)
    batches = scan_batches(data, 0, len(data))
    stored = batches.headers["crc"].astype(np.int64)
    assert crc32.all_crcs_match_compiled(legacy_kernels, data, batches.starts, batches.ends, stored)
    stored[1] ^= 1 << 31
    assert not crc32.all_crcs_match_compiled(
        legacy_kernels, data, batches.starts, batches.ends, stored
    )
