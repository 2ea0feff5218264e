"""A damaged committed segment on S3 or HDFS is named, though it is opened without a HEAD.

The S3 server runs in this process. Local disk is in
`tests/connector/source/test_committed_damage.py`.
"""

from __future__ import annotations

import getpass
import secrets
from collections.abc import Callable, Iterator

import pyarrow as pa
import pytest

import klog
from klog.connector.commit_log.root_discovery import find_root
from klog.connector.commit_log.segment_entries import rows_of_partition
from klog.connector.embedded import Log
from klog.connector.options.storage_options import parse_storage_options
from klog.connector.source import index_narrowing
from klog.connector.store.s3_store import S3Store
from klog.errors import CorruptFileError, CorruptRecordError
from tests.connector.store.fake_s3 import Answer, FakeS3, error, fake_s3
from tests.connector.store.store_roots import StoreRoot, store_root_at
from tests.support.store_servers import Hdfs

DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "truncated": lambda data: data[:-1],
    "halved": lambda data: data[: len(data) // 2],
    "empty": lambda data: b"",
    "longer": lambda data: data + b"junk",
    "longer by a batch": lambda data: data * 2,
}


@pytest.fixture
def fake() -> Iterator[FakeS3]:
    with fake_s3() as running:
        yield running


def on_s3(request: pytest.FixtureRequest) -> StoreRoot:
    fake: FakeS3 = request.getfixturevalue("fake")
    return store_root_at("s3://bucket/root", fake.storage())


def on_webhdfs(request: pytest.FixtureRequest) -> StoreRoot:
    hdfs: Hdfs = request.getfixturevalue("hdfs")
    storage = parse_storage_options({"storage.user": getpass.getuser()})
    return store_root_at(f"{hdfs.web_url}/{secrets.token_hex(8)}/root", storage)


@pytest.fixture(params=["s3", pytest.param("webhdfs", marks=pytest.mark.stores)])
def root(request: pytest.FixtureRequest) -> StoreRoot:
    """A root with a topic of two segments, 100 records each."""
    root = (on_s3 if request.param == "s3" else on_webhdfs)(request)
    log = open_log(root)
    log.create_topic("t", 1, {"index.interval.bytes": "200"})
    for first in (0, 100):
        values = [b"%06d" % number * 10 for number in range(first, first + 100)]
        log.append("t", pa.table({"value": values}), options={"batch.size": "400"})
    return root


def open_log(root: StoreRoot) -> Log:
    return klog.open(root.url, **dict(root.storage.values))


def segment(root: StoreRoot) -> str:
    klog_root = find_root(root.url, root.storage)
    assert klog_root is not None
    row = rows_of_partition(klog_root.log("t").load().segments, 0).to_pylist()[0]
    return root.at(str(row["file"]))


@pytest.mark.parametrize("name", DAMAGES)
@pytest.mark.parametrize("by_index", [False, True])
def test_segment_of_another_size_is_named(
    root: StoreRoot, name: str, by_index: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if by_index:
        monkeypatch.setattr(index_narrowing, "MAX_UNINDEXED_BYTES", 0)
    path = segment(root)
    data = root.store.read(path)
    root.store.put(path, [DAMAGES[name](data)])
    start = 40 if by_index else 0
    with pytest.raises(CorruptFileError) as caught:
        open_log(root).scan("t", start=start, end=60).read_all()
    message, size = str(caught.value), len(DAMAGES[name](data))
    assert path in message
    assert "t-0" in message
    assert f"it has {size} bytes, its commit says {len(data)}" in message
    assert "endpoint" not in message
    assert open_log(root).scan("t", start=100).read_all().num_rows == 100


def test_missing_segment_is_named(root: StoreRoot) -> None:
    path = segment(root)
    root.store.delete(path)
    with pytest.raises(CorruptFileError, match=r"t-0: .*the file is missing") as caught:
        open_log(root).scan("t").read_all()
    assert path in str(caught.value)


def test_object_replaced_between_reads_is_missing(fake: FakeS3) -> None:
    """Its ETag is known from the first read, though its size was given: one request each."""
    store = S3Store("bucket", fake.storage())
    store.put("s3://bucket/x", [b"first"])
    fake.request_counts()
    file = store.open("s3://bucket/x", 5)
    assert file.read(0, 2) == b"fi"
    store.put("s3://bucket/x", [b"other"])
    with pytest.raises(FileNotFoundError, match="s3://bucket/x was replaced"):
        file.read(2, 5)
    assert fake.request_counts() == {"GET": 2, "PUT": 1}


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (error(416, "InvalidRange"), "it has at most 3 bytes, its commit says 5"),
        (Answer(416), "it has at most 3 bytes, its commit says 5"),
    ],
)
def test_server_may_leave_out_the_size(fake: FakeS3, answer: Answer, message: str) -> None:
    store = S3Store("bucket", fake.storage())
    fake.answers.append(answer)
    with pytest.raises(CorruptRecordError, match=message):
        store.open("s3://bucket/x", 5).read(3, 5)
