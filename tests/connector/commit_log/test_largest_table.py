"""Large checkpoints, parts and sidecars: read once, and every one that klog 0.1 can read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import google_crc32c
import numpy as np
import pyarrow as pa
import pytest

from klog.connector.commit_log import (
    file_size_limits,
    parquet_tables,
    segment_entries,
    state_checkpoint,
)
from klog.connector.commit_log.commit_log_paths import CheckpointName
from klog.connector.commit_log.file_size_limits import MAX_TABLE_BYTES, read_named
from klog.connector.commit_log.live_segments import ROW_SCHEMA, VERSION_COLUMN
from klog.connector.commit_log.parquet_pages import file_sizes
from klog.connector.store.local_store import LocalStore
from klog.connector.store.readable_store import File
from klog.connector.store.s3_store import S3Store
from klog.errors import InvalidFileError
from tests.connector.store.fake_s3 import FakeS3, fake_s3
from tests.support.segment_entry import entry_of

AT_ONCE_BYTES = 32 << 20
LARGE_BYTES = 2 * AT_ONCE_BYTES + 1000
MAX_TEXT_BYTES = 100_000_000
"""The longest text of a footer that Arrow reads."""


def parquet_bytes(size_bytes: int) -> bytes:
    """Make bytes that begin and end as a Parquet file."""
    return (b"PAR1" + bytes(size_bytes - 8) + b"PAR1")[:size_bytes]


@dataclass
class CountedFile:
    """A file that counts the bytes read of it."""

    file: File
    counts: list[int]

    def __post_init__(self) -> None:
        self.size_bytes, self.identity = self.file.size_bytes, self.file.identity
        self.stamp = self.file.stamp

    def read(self, begin: int, end: int) -> bytes:
        data = self.file.read(begin, end)
        self.counts.append(len(data))
        return data

    def close(self) -> None:
        self.file.close()


@dataclass
class CountedStore(LocalStore):
    """Local disk that counts the bytes of each read."""

    counts: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        LocalStore.__init__(self)

    def open(self, path: str, size_bytes: int | None = None) -> CountedFile:  # type: ignore[override]
        return CountedFile(LocalStore.open(self, path, size_bytes), self.counts)

    def read(self, path: str, max_bytes: int | None = None) -> bytes:
        data = LocalStore.read(self, path, max_bytes)
        self.counts.append(len(data))
        return data


def named(data: bytes) -> CheckpointName:
    return CheckpointName(7, len(data), google_crc32c.value(data))


def test_a_large_file_is_read_once(tmp_path: Path) -> None:
    data, path, store = parquet_bytes(LARGE_BYTES), tmp_path / "file", CountedStore()
    path.write_bytes(data)
    assert read_named(store, str(path), named(data)) == data
    assert store.counts == [AT_ONCE_BYTES, AT_ONCE_BYTES, 1000]


def test_a_small_file_is_one_read(tmp_path: Path) -> None:
    data, path, store = parquet_bytes(AT_ONCE_BYTES), tmp_path / "file", CountedStore()
    path.write_bytes(data)
    assert read_named(store, str(path), named(data)) == data
    assert store.counts == [AT_ONCE_BYTES]


def test_of_what_is_no_parquet_file_the_first_range_is_read(tmp_path: Path) -> None:
    data, path, store = bytes(LARGE_BYTES), tmp_path / "file", CountedStore()
    path.write_bytes(data)
    with pytest.raises(InvalidFileError, match=f"{path}: its length or its CRC-32C"):
        read_named(store, str(path), named(data))
    assert store.counts == [AT_ONCE_BYTES]


@pytest.mark.parametrize("size_bytes", [LARGE_BYTES - 1, LARGE_BYTES + 1])
def test_a_large_file_of_another_size_is_not_read(tmp_path: Path, size_bytes: int) -> None:
    path, store = tmp_path / "file", CountedStore()
    path.write_bytes(parquet_bytes(size_bytes))
    with pytest.raises(InvalidFileError, match=f"{path}: its length or its CRC-32C"):
        read_named(store, str(path), named(parquet_bytes(LARGE_BYTES)))
    assert store.counts == []


@pytest.fixture
def fake() -> Iterator[FakeS3]:
    with fake_s3() as server:
        yield server


def test_on_s3_a_large_file_is_a_get_for_each_range(fake: FakeS3) -> None:
    data, path = parquet_bytes(LARGE_BYTES), "s3://bucket/file"
    fake.objects["/bucket/file"] = data
    assert read_named(S3Store("bucket", fake.storage()), path, named(data)) == data
    assert fake.request_counts() == {"GET": 3}


def test_on_s3_a_large_file_of_another_size_is_invalid(
    fake: FakeS3, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_size_limits, "_MAX_READ_BYTES", 1000)
    fake.objects["/bucket/file"] = parquet_bytes(2500)
    with pytest.raises(InvalidFileError, match="s3://bucket/file: its length or its CRC-32C"):
        read_named(
            S3Store("bucket", fake.storage()), "s3://bucket/file", named(parquet_bytes(2600))
        )


def test_the_bound_admits_what_klog_0_1_can_read() -> None:
    """Ids of producers do not compress, so a file is as large as its pages are decompressed."""
    random, numbers = Random(7), np.random.default_rng(7)
    rows = [
        {
            **entry_of(
                f"orders-0/{number:020d}-{0:010d}-{random.getrandbits(64):016x}.log", 0, 0, 1
            ),
            "producer_ids": numbers.integers(0, 1 << 62, 100_000).tolist(),
        }
        for number in range(10)
    ]
    table = segment_entries.to_table(rows).append_column(
        ROW_SCHEMA.field(VERSION_COLUMN), pa.array([1] * 10, pa.int64())
    )
    _, data = state_checkpoint.encode_part(table, 1)
    footer_bytes = int.from_bytes(data[-8:-4], "little")
    pages_bytes = (
        parquet_tables.MAX_BYTES * (len(data) - footer_bytes) / file_sizes(data).size_bytes
    )
    footer_bytes = MAX_TEXT_BYTES + MAX_TEXT_BYTES * 3 // 4
    assert pages_bytes + footer_bytes < MAX_TABLE_BYTES < 1.1 * (pages_bytes + footer_bytes)
