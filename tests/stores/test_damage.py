"""A committed segment that is damaged on S3 or HDFS: it is named, whoever opens it without asking.

S3 is that of this process, so each answer is the store's whole answer; local disk is in
`tests/connector/test_committed_damage.py`.
"""

from __future__ import annotations

import getpass
import secrets
from collections.abc import Callable, Iterator

import pyarrow as pa
import pytest

import klog
from klog.connector.embedded import Log
from klog.connector.log.entries import of_partition
from klog.connector.log.root import find_root
from klog.connector.source import indexed
from klog.connector.store.s3 import S3
from klog.connector.store.storage import storage_of
from klog.errors import CorruptFileError, CorruptRecordError
from tests.servers import Hdfs
from tests.stores.fake_s3 import Answer, FakeS3, error, fake_s3
from tests.stores.places import Place, place_at

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


def on_s3(request: pytest.FixtureRequest) -> Place:
    fake: FakeS3 = request.getfixturevalue("fake")
    return place_at("s3://bucket/root", fake.storage())


def on_webhdfs(request: pytest.FixtureRequest) -> Place:
    hdfs: Hdfs = request.getfixturevalue("hdfs")
    storage = storage_of({"storage.user": getpass.getuser()})
    return place_at(f"{hdfs.web_url}/{secrets.token_hex(8)}/root", storage)


@pytest.fixture(params=["s3", pytest.param("webhdfs", marks=pytest.mark.stores)])
def place(request: pytest.FixtureRequest) -> Place:
    """Give a root with a topic of two segments, 100 records each."""
    place = (on_s3 if request.param == "s3" else on_webhdfs)(request)
    log = opened(place)
    log.create_topic("t", 1, {"index.interval.bytes": "200"})
    for first in (0, 100):
        values = [b"%06d" % number * 10 for number in range(first, first + 100)]
        log.append("t", pa.table({"value": values}), options={"batch.size": "400"})
    return place


def opened(place: Place) -> Log:
    return klog.open(place.url, **dict(place.storage.given))


def segment(place: Place) -> str:
    root = find_root(place.url, place.storage)
    assert root is not None
    row = of_partition(root.log("t").load().segments, 0).to_pylist()[0]
    return place.at(str(row["file"]))


@pytest.mark.parametrize("name", DAMAGES)
@pytest.mark.parametrize("by_index", [False, True])
def test_a_segment_of_another_size_is_named(
    place: Place, name: str, by_index: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if by_index:
        monkeypatch.setattr(indexed, "WHOLE_BYTES", 0)
    path = segment(place)
    data = place.store.read(path)
    place.store.put(path, [DAMAGES[name](data)])
    start = 40 if by_index else 0
    with pytest.raises(CorruptFileError) as caught:
        opened(place).scan("t", start=start, end=60).read_all()
    said, size = str(caught.value), len(DAMAGES[name](data))
    assert path in said
    assert "t-0" in said
    assert f"it has {size} bytes, its commit says {len(data)}" in said
    assert "endpoint" not in said
    assert opened(place).scan("t", start=100).read_all().num_rows == 100


def test_a_missing_segment_is_named(place: Place) -> None:
    path = segment(place)
    place.store.delete(path)
    with pytest.raises(CorruptFileError, match=r"t-0: .*the file is missing") as caught:
        opened(place).scan("t").read_all()
    assert path in str(caught.value)


def test_an_object_that_is_replaced_midway(fake: FakeS3) -> None:
    """Its ETag is known from the first read, though its size was given: one request each."""
    store = S3("bucket", fake.storage())
    store.put("s3://bucket/x", [b"first"])
    fake.asked()
    file = store.open("s3://bucket/x", 5)
    assert file.read(0, 2) == b"fi"
    store.put("s3://bucket/x", [b"other"])
    with pytest.raises(FileNotFoundError, match="s3://bucket/x was replaced"):
        file.read(2, 5)
    assert fake.asked() == {"GET": 2, "PUT": 1}


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (error(416, "InvalidRange"), "it has at most 3 bytes, its commit says 5"),
        (Answer(416), "it has at most 3 bytes, its commit says 5"),
    ],
)
def test_a_server_that_does_not_say_the_size(fake: FakeS3, answer: Answer, said: str) -> None:
    store = S3("bucket", fake.storage())
    fake.answers.append(answer)
    with pytest.raises(CorruptRecordError, match=said):
        store.open("s3://bucket/x", 5).read(3, 5)
