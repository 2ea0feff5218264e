"""The partition of a key: Kafka's vectors, a plain murmur2 to compare with, Arrow's types."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from klog.logformat.partitioner import (
    coordinator_partition,
    java_hash,
    key_partitions,
    murmur2,
    sticky_runs,
    to_positive,
)

MASK = 0xFFFFFFFF
MULTIPLIER = 0x5BD1E995
LONGEST = "lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8"
KEYS = st.none() | st.binary(max_size=70)


def plain_murmur2(key: bytes) -> int:
    """Hash as `Utils.murmur2` does, word by word."""
    hashed = 0x9747B28C ^ len(key)
    tail_start = len(key) & ~3
    for start in range(0, tail_start, 4):
        word = int.from_bytes(key[start : start + 4], "little") * MULTIPLIER & MASK
        word ^= word >> 24
        hashed = (hashed * MULTIPLIER & MASK) ^ (word * MULTIPLIER & MASK)
    if len(key) > tail_start:
        hashed ^= int.from_bytes(key[tail_start:], "little")
        hashed = hashed * MULTIPLIER & MASK
    hashed ^= hashed >> 13
    hashed = hashed * MULTIPLIER & MASK
    hashed ^= hashed >> 15
    return hashed - (1 << 32) if hashed >> 31 else hashed


def binary(keys: list[bytes | None]) -> pa.Array:
    return pa.array(keys, pa.binary())


@pytest.mark.parametrize(
    ("key", "hashed"),
    [
        (b"21", -973932308),
        (b"foobar", -790332482),
        (LONGEST.encode(), -58897971),
        (b"", 275646681),
        (b"\x00\x00\x00\x00", 850957120),
        (b"\x80\x7f", -894759045),
    ],
)
def test_hashes_are_kafkas(key: bytes, hashed: int) -> None:
    assert murmur2(binary([key])).to_pylist() == [hashed]
    assert plain_murmur2(key) == hashed


@given(st.lists(KEYS, max_size=80))
def test_hashes_follow_the_rule(keys: list[bytes | None]) -> None:
    expected = [None if key is None else plain_murmur2(key) for key in keys]
    assert murmur2(binary(keys)).to_pylist() == expected
    assert key_partitions(binary(keys), 7).to_pylist() == [
        None if hashed is None else (hashed & 0x7FFFFFFF) % 7 for hashed in expected
    ]


@given(st.integers(0, 40), st.integers(1, 300), st.integers(0, 1 << 32))
def test_many_keys_of_equal_length(length: int, count: int, seed: int) -> None:
    data = np.random.default_rng(seed).integers(0, 256, length * count, np.uint8).tobytes()
    keys = [data[row * length : (row + 1) * length] for row in range(count)]
    assert murmur2(binary([*keys])).to_pylist() == [plain_murmur2(key) for key in keys]


def test_more_keys_than_a_block_and_a_few_long_ones() -> None:
    keys = [b"%d" % n * (n % 5) for n in range(40_000)]
    keys[7] = bytes(range(256)) * 50 + b"abc"
    keys[39_999] = bytes(range(255)) * 40
    hashes = murmur2(binary([*keys])).to_pylist()
    for number in (*range(100), 16_383, 16_384, 32_767, 32_768, 39_999):
        assert hashes[number] == plain_murmur2(keys[number])


@pytest.mark.parametrize(
    "kind",
    [pa.binary(), pa.large_binary(), pa.string(), pa.large_string(), pa.binary_view()],
    ids=str,
)
def test_arrow_types_of_keys(kind: pa.DataType) -> None:
    keys = pa.array(["x", None, "foobar", "", "21"], pa.string()).cast(kind)
    assert murmur2(keys).to_pylist() == [
        plain_murmur2(b"x"),
        None,
        -790332482,
        275646681,
        -973932308,
    ]
    assert murmur2(keys.slice(2, 2)).to_pylist() == [-790332482, 275646681]
    assert murmur2(keys.slice(5)).to_pylist() == []


def test_arrays_without_bytes() -> None:
    assert murmur2(binary([])).to_pylist() == []
    assert murmur2(binary([None])).to_pylist() == [None]
    assert murmur2(binary([b""])).to_pylist() == [275646681]


def test_hashing_does_not_change_the_array() -> None:
    keys = binary([b"foobar", b"21"])
    murmur2(keys)
    assert keys.to_pylist() == [b"foobar", b"21"]


def test_an_empty_key_is_hashed_and_a_null_one_is_not() -> None:
    partitions = key_partitions(binary([b"", None]), 10)
    assert partitions.type == pa.int32()
    assert partitions.to_pylist() == [1, None]
    assert partitions.fill_null(-1).to_pylist() == [1, -1]


def test_to_positive_clears_the_sign_bit() -> None:
    hashes = np.array([-(1 << 31), -1, 0, 5, (1 << 31) - 1], np.int32)
    assert to_positive(hashes).tolist() == [0, (1 << 31) - 1, 0, 5, (1 << 31) - 1]


@pytest.mark.parametrize("partitions", [0, -1])
def test_no_partition_is_refused(partitions: int) -> None:
    with pytest.raises(ValueError, match="must be at least 1"):
        key_partitions(binary([b"a"]), partitions)
    with pytest.raises(ValueError, match="must be at least 1"):
        coordinator_partition("g", partitions)


@given(st.text(max_size=30))
def test_java_hashes_utf_16_code_units(text: str) -> None:
    units = text.encode("utf-16-be", "surrogatepass")
    hashed = 0
    for start in range(0, len(units), 2):
        hashed = (31 * hashed + int.from_bytes(units[start : start + 2], "big")) & MASK
    assert java_hash(text) == (hashed - (1 << 32) if hashed >= 1 << 31 else hashed)
    assert 0 <= coordinator_partition(text, 50) < 50


@pytest.mark.parametrize(
    ("name", "hashed", "partition"),
    [("g1", 3242, 42), ("my-group", -1906497762, 12), ("polygenelubricants", -2147483648, 0)],
)
def test_coordinator_partitions_are_kafkas(name: str, hashed: int, partition: int) -> None:
    assert java_hash(name) == hashed
    assert coordinator_partition(name, 50) == partition


@given(st.lists(st.integers(1, 50), max_size=60), st.integers(1, 120))
def test_sticky_run_is_full_with_its_last_record(sizes: list[int], batch_bytes: int) -> None:
    runs = sticky_runs(np.array(sizes, np.int64), batch_bytes).tolist()
    expected, run, filled = [], 0, 0
    for size in sizes:
        if filled >= batch_bytes:
            run, filled = run + 1, 0
        expected.append(run)
        filled += size
    assert runs == expected


def test_empty_batch_size_is_refused() -> None:
    with pytest.raises(ValueError, match=r"batch\.size: must be at least 1, got 0"):
        sticky_runs(np.array([1]), 0)
