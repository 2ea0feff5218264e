"""One contract for every store that klog writes to."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hdfs_native import WriteOptions

from klog.connector.options.storage_options import NO_STORAGE_OPTIONS
from klog.connector.store.hdfs_store import HdfsStore
from klog.connector.store.readable_store import DirectoryEntry
from klog.connector.store.writable_store import PutResult
from klog.errors import FileTooLargeError
from tests.connector.store.put_races import race
from tests.connector.store.store_roots import StoreRoot
from tests.support import store_servers
from tests.support.store_servers import BUCKET, S3Server

NAMES = (
    "00000000000000000012345-0000000042-3f9ac2d1.log",
    "with space",
    "a%2Fb%25",
    "%zz",
    "a+b&c=d;e",
    "a#b?c",
    "ключ-ü-鍵",
    "~!$'()*,@",
    '[x]{y}^|`<>"',
    "a\\b",
    ".hidden",
    "..two.dots..",
    "n" * 200,
)
"""Names that a URL, a listing or a shell may read as something else."""

SIZES = (0, 1, 4095, 4096, 100_000, 9_000_000)


def patterned(size: int) -> bytes:
    """Return bytes in which no two near ranges are the same."""
    return b"".join(number.to_bytes(4, "big") for number in range(size // 4 + 1))[:size]


def test_first_put_wins(root: StoreRoot) -> None:
    path = root.at("log/00000000000000000000.json")
    assert root.store.put_if_absent(path, b"first") is PutResult.CREATED
    assert root.store.put_if_absent(path, b"second") is PutResult.EXISTS
    assert root.store.read(path) == b"first"
    assert [entry.name for entry in root.store.entries(root.at("log"))] == [
        "00000000000000000000.json"
    ]


def test_names_after_a_name(root: StoreRoot) -> None:
    names = [f"{version:020d}.json" for version in (0, 1, 2, 9, 10, 100)]
    for name in reversed(names):
        root.store.put(root.at(f"log/{name}"), [b"x"])
    root.store.put(root.at("logs/another"), [b"x"])
    log = root.at("log")
    assert root.store.names_after(log, "") == names
    assert root.store.names_after(log, names[2]) == names[3:]
    assert root.store.names_after(log, f"{5:020d}.json") == names[3:]
    assert root.store.names_after(log, names[-1]) == []
    assert root.store.names_after(root.at("none"), "") == []
    assert root.store.max_parallel_reads >= 1


def test_same_bytes_put_again_exist(root: StoreRoot) -> None:
    assert root.store.put_if_absent(root.at("x"), b"same") is PutResult.CREATED
    assert root.store.put_if_absent(root.at("x"), b"same") is PutResult.EXISTS


def test_deleted_name_can_be_created_again(root: StoreRoot) -> None:
    path = root.at("x")
    assert root.store.put_if_absent(path, b"1") is PutResult.CREATED
    root.store.delete(path)
    with pytest.raises(FileNotFoundError):
        root.store.read(path)
    assert root.store.put_if_absent(path, b"2") is PutResult.CREATED
    assert root.store.read(path) == b"2"


@pytest.mark.parametrize("size", SIZES)
def test_files_of_any_size_are_read_back(root: StoreRoot, size: int) -> None:
    data = patterned(size)
    assert root.store.put_if_absent(root.at("created"), data) is PutResult.CREATED
    root.store.put(root.at("put"), iter([data[: size // 3], b"", data[size // 3 :]]))
    for name in ("created", "put"):
        assert root.store.read(root.at(name)) == data
        file = root.store.open(root.at(name))
        assert file.size_bytes == size
        assert file.read(0, size) == data
        file.close()


def test_empty_file_wins_too(root: StoreRoot) -> None:
    assert root.store.put_if_absent(root.at("x"), b"") is PutResult.CREATED
    assert root.store.put_if_absent(root.at("x"), b"") is PutResult.EXISTS
    assert root.store.put_if_absent(root.at("x"), b"more") is PutResult.EXISTS
    assert root.store.read(root.at("x")) == b""


def test_put_replaces(root: StoreRoot) -> None:
    path = root.at("a/hint.json")
    root.store.put(path, [b"one"])
    before = root.store.open(path)
    root.store.put(path, [b"tw", b"o!"])
    after = root.store.open(path)
    assert root.store.read(path) == b"two!"
    assert after.read(0, 4) == b"two!"
    assert before.identity != after.identity
    assert [entry.name for entry in root.store.entries(root.at("a"))] == ["hint.json"]
    root.store.put(path, [])
    assert root.store.read(path) == b""
    before.close()
    after.close()


def test_put_whose_chunks_fail_writes_nothing(root: StoreRoot) -> None:
    def chunks() -> Iterator[bytes]:
        yield patterned(7_000_000)
        raise ValueError("the encoder failed")

    root.store.put(root.at("there"), [b"x"])
    with pytest.raises(ValueError, match="the encoder failed"):
        root.store.put(root.at("failed"), chunks())
    assert [entry.name for entry in root.store.entries(root.path)] == ["there"]


def test_delete_of_a_missing_file_is_no_error(root: StoreRoot) -> None:
    root.store.delete(root.at("none"))
    root.store.delete(root.at("none/none"))


def test_missing_file_or_directory_is_an_error(root: StoreRoot) -> None:
    root.store.put(root.at("dir/file"), [b"x"])
    for name in ("none", "none/none", "dir/none", "fil", "dir/fil"):
        with pytest.raises(FileNotFoundError):
            root.store.read(root.at(name))
        with pytest.raises(FileNotFoundError):
            root.store.open(root.at(name))
    for name in ("none", "di", "dir/none"):
        with pytest.raises(FileNotFoundError):
            root.store.entries(root.at(name))
    with pytest.raises(NotADirectoryError):
        root.store.entries(root.at("dir/file"))


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        (0, 10, b"0123456789"),
        (0, 1, b"0"),
        (3, 7, b"3456"),
        (7, 99, b"789"),
        (9, 1 << 40, b"9"),
        (10, 99, b""),
        (50, 99, b""),
        (4, 4, b""),
        (0, 0, b""),
    ],
)
def test_ranges_end_at_the_end_of_the_file(
    root: StoreRoot, start: int, end: int, expected: bytes
) -> None:
    root.store.put(root.at("x"), [b"0123456789"])
    file = root.store.open(root.at("x"))
    assert file.read(start, end) == expected
    file.close()


def test_ranges_of_an_empty_file(root: StoreRoot) -> None:
    root.store.put(root.at("x"), [])
    file = root.store.open(root.at("x"))
    assert (file.size_bytes, file.read(0, 10), file.read(5, 10)) == (0, b"", b"")
    file.close()


def test_entries_are_one_level_deep_and_sorted(root: StoreRoot) -> None:
    for name, size in (("b/two", 2), ("b/one", 1), ("b/in/deep/x", 3), ("bb", 4)):
        root.store.put(root.at(name), [bytes(size)])
    entries = root.store.entries(root.at("b"))
    assert [(e.name, e.is_directory) for e in entries] == [
        ("in", True),
        ("one", False),
        ("two", False),
    ]
    assert [e.size_bytes for e in entries if not e.is_directory] == [1, 2]
    assert [e.path for e in entries] == [root.at("b/in"), root.at("b/one"), root.at("b/two")]
    assert [e.name for e in root.store.entries(root.path)] == ["b", "bb"]
    assert [e.name for e in root.store.entries(entries[0].path)] == ["deep"]


@pytest.mark.parametrize("name", NAMES)
def test_names_that_need_escaping(root: StoreRoot, name: str) -> None:
    path = root.at(f"{name}/{name}")
    assert root.store.put_if_absent(path, name.encode()) is PutResult.CREATED
    assert root.store.put_if_absent(path, b"") is PutResult.EXISTS
    root.store.put(root.at(f"{name}/put"), [b"x"])
    assert [(e.name, e.path) for e in root.store.entries(root.path)] == [(name, root.at(name))]
    entries = root.store.entries(root.at(name))
    assert {e.name: e.path for e in entries} == {name: path, "put": root.at(f"{name}/put")}
    assert root.store.read(path) == name.encode()
    file = root.store.open(path)
    assert file.read(0, 1000) == name.encode()
    file.close()
    root.store.delete(path)
    assert [e.name for e in root.store.entries(root.at(name))] == ["put"]


def test_listing_of_several_pages_is_complete(
    root: StoreRoot, request: pytest.FixtureRequest
) -> None:
    """Several pages of S3's and of HDFS's listings, complete and in order."""
    names = [f"{number:020d}-{number % 97:010d}-abcdef.log" for number in range(2_500)]
    put_empty(root, "many", names, request)
    entries = root.store.entries(root.at("many"))
    assert [entry.name for entry in entries] == names
    assert entries[-1] == DirectoryEntry(names[-1], root.at(f"many/{names[-1]}"), 0, False)


def put_empty(
    root: StoreRoot, directory: str, names: list[str], request: pytest.FixtureRequest
) -> None:
    """Make empty files, without the store if that is faster."""
    folder = None
    if root.url.startswith("s3a"):
        server: S3Server = request.getfixturevalue("s3_server")
        folder = server.folder / root.path.removeprefix(f"s3://{BUCKET}/")
    elif root.url.startswith("/"):
        folder = Path(root.path)
    if folder is not None:
        (folder / directory).mkdir(parents=True)
        for name in names:
            (folder / directory / name).touch()
        return
    if "hdfs:" in root.url:
        server_of_hdfs: store_servers.Hdfs = request.getfixturevalue("hdfs")
        client = HdfsStore(server_of_hdfs.url, NO_STORAGE_OPTIONS).client
        parent = "/" + root.at(directory).split("/", 3)[3]

        def create(name: str) -> None:
            client.create(f"{parent}/{name}", WriteOptions(create_parent=True)).close()

    else:

        def create(name: str) -> None:
            root.store.put(root.at(f"{directory}/{name}"), [])

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(create, names))


def test_sixteen_writers_race_for_one_name(root: StoreRoot) -> None:
    # HDFS's client waits for half a second if it closes a file before the DataNode reports it.
    rounds = 20 if root.url.startswith(("hdfs:", "webhdfs:")) else 50
    answers = race(root, racers=16, rounds=rounds)
    assert [results.count(PutResult.CREATED) for results in answers] == [1] * rounds
    assert {result for results in answers for result in results} == {
        PutResult.CREATED,
        PutResult.EXISTS,
    }
    for number, results in enumerate(answers):
        winner = results.index(PutResult.CREATED)
        assert root.store.read(root.at(f"race/{number:020d}")) == b"%d" % winner * 1000
    names = [entry.name for entry in root.store.entries(root.at("race"))]
    assert names == [f"{number:020d}" for number in range(rounds)]


def test_file_larger_than_max_bytes_is_refused(root: StoreRoot) -> None:
    path = root.at("x")
    root.store.put(path, [b"12345"])
    for max_bytes in (5, 6, None):
        assert root.store.read(path, max_bytes) == b"12345"
    with pytest.raises(
        FileTooLargeError, match="x: it has 5 bytes, and a file of its kind at most 4"
    ):
        root.store.read(path, 4)
    root.store.put(path, [])
    assert root.store.read(path, 0) == b""
    with pytest.raises(FileNotFoundError):
        root.store.read(root.at("none"), 4)
