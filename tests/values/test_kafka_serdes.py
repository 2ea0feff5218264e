"""Kafka's own serdes: each vector decodes to its value, and the value encodes to the vector."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from klog.errors import SchemaError
from klog.values.kafka_serdes import ARROW_TYPES, NUMBERS, KafkaSerde

UUID = "123e4567-e89b-12d3-a456-426614174000"
VECTORS = [
    ("short", "ffff", -1),
    ("short", "7fff", 32767),
    ("integer", "00000102", 258),
    ("integer", "80000000", -(2**31)),
    ("long", "7fffffffffffffff", 2**63 - 1),
    ("float", "3fc00000", 1.5),
    ("double", "bfe0000000000000", -0.5),
    ("double", "7ff0000000000000", math.inf),
    ("boolean", "01", True),
    ("boolean", "00", False),
    ("uuid", UUID.encode().hex(), UUID),
    ("string", "5a6fc3ab", "Zoë"),
    ("string", "", ""),
    ("bytes", "ff00", b"\xff\x00"),
]


@pytest.mark.parametrize(("name", "data", "value"), VECTORS)
def test_both_ways(name: str, data: str, value: Any) -> None:
    serde = KafkaSerde(name)
    rows = pa.array([None, bytes.fromhex(data), None], pa.binary())
    result = serde.decode_array(rows)
    assert result.values.to_pylist() == [None, value, None]
    assert result.values.type == serde.arrow_type
    assert not result.has_errors
    assert serde.encode_array(result.values).equals(rows)


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("size", [0, 3, 16])
def test_another_length_is_an_error(name: str, size: int) -> None:
    good = KafkaSerde(name).encode_array(pa.array([1]).cast(ARROW_TYPES[name]))
    rows = pa.concat_arrays([pa.array([b"\0" * size]), good])
    result = KafkaSerde(name).decode_array(rows)
    assert result.values.to_pylist() == [None, 1]
    width = len(good[0].as_py())
    assert result.reasons.to_pylist() == [f"{name}: must have {width} bytes, got {size}", None]


def test_other_bytes_are_errors() -> None:
    booleans = KafkaSerde("boolean").decode_array(pa.array([b"\x02", b"\x01", None, b"\xff"]))
    assert booleans.values.to_pylist() == [None, True, None, None]
    assert booleans.reasons.to_pylist() == [
        "boolean: must be 0x00 or 0x01, got 0x02", None, None,
        "boolean: must be 0x00 or 0x01, got 0xff",
    ]  # fmt: skip
    texts = KafkaSerde("string").decode_array(pa.array([b"a", b"a\xff", None]))
    assert texts.values.to_pylist() == ["a", None, None]
    assert texts.reasons.to_pylist() == [None, "not UTF-8: invalid start byte at byte 1", None]
    uuids = KafkaSerde("uuid").decode_array(pa.array([UUID.upper().encode(), b"1-1-1-1-1", None]))
    assert uuids.values.to_pylist() == [UUID, None, None]
    assert uuids.reasons.to_pylist() == [None, "uuid: not a UUID of 36 characters", None]


def test_what_does_not_fit_is_not_encoded() -> None:
    with pytest.raises(SchemaError, match="short: a value of int64 does not fit int16"):
        KafkaSerde("short").encode_array(pa.array([2**15]))
    with pytest.raises(SchemaError, match="boolean: int64 does not fit bool"):
        KafkaSerde("boolean").encode_array(pa.array([5]))
    with pytest.raises(SchemaError, match="not a UUID"):
        KafkaSerde("uuid").encode_array(pa.array(["x"]))


@given(st.lists(st.none() | st.integers(-(2**63), 2**63 - 1)))
def test_longs_round_trip(numbers: list[int | None]) -> None:
    values = pa.array(numbers, pa.int64())
    serde = KafkaSerde("long")
    assert serde.decode_array(serde.encode_array(values)).values.equals(values)


@given(st.sampled_from(sorted(ARROW_TYPES)), st.lists(st.none() | st.binary(max_size=40)))
def test_any_bytes_decode_or_have_a_reason(name: str, rows: list[bytes | None]) -> None:
    result = KafkaSerde(name).decode_array(pa.array(rows, pa.binary()))
    result.values.validate(full=True)
    for row, value, reason in zip(
        rows, result.values.to_pylist(), result.reasons.to_pylist(), strict=True
    ):
        assert (value is None) == (row is None or reason is not None)
