"""One contract for every store that klog writes to."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hdfs_native import WriteOptions

from klog.connector.store.contract import Put
from klog.connector.store.files import Entry
from klog.connector.store.hdfs import Hdfs
from klog.connector.store.storage import NOTHING_GIVEN
from klog.errors import FileTooLargeError
from tests import servers
from tests.servers import BUCKET, S3Server
from tests.stores.places import Place
from tests.stores.racing import race

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
"""Names that some URL, listing or shell would read as something else."""

SIZES = (0, 1, 4095, 4096, 100_000, 9_000_000)


def patterned(size: int) -> bytes:
    """Bytes of which no two ranges near each other are the same."""
    return b"".join(number.to_bytes(4, "big") for number in range(size // 4 + 1))[:size]


def test_the_first_put_wins(place: Place) -> None:
    path = place.at("log/00000000000000000000.json")
    assert place.store.put_if_absent(path, b"first") is Put.CREATED
    assert place.store.put_if_absent(path, b"second") is Put.EXISTS
    assert place.store.read(path) == b"first"
    assert [entry.name for entry in place.store.entries(place.at("log"))] == [
        "00000000000000000000.json"
    ]


def test_names_after_a_name(place: Place) -> None:
    names = [f"{version:020d}.json" for version in (0, 1, 2, 9, 10, 100)]
    for name in reversed(names):
        place.store.put(place.at(f"log/{name}"), [b"x"])
    place.store.put(place.at("logs/another"), [b"x"])
    log = place.at("log")
    assert place.store.names_after(log, "") == names
    assert place.store.names_after(log, names[2]) == names[3:]
    assert place.store.names_after(log, f"{5:020d}.json") == names[3:]
    assert place.store.names_after(log, names[-1]) == []
    assert place.store.names_after(place.at("none"), "") == []
    assert place.store.reads_at_once >= 1


def test_the_same_bytes_put_again_exist(place: Place) -> None:
    assert place.store.put_if_absent(place.at("x"), b"same") is Put.CREATED
    assert place.store.put_if_absent(place.at("x"), b"same") is Put.EXISTS


def test_a_deleted_name_can_be_created_again(place: Place) -> None:
    path = place.at("x")
    assert place.store.put_if_absent(path, b"1") is Put.CREATED
    place.store.delete(path)
    with pytest.raises(FileNotFoundError):
        place.store.read(path)
    assert place.store.put_if_absent(path, b"2") is Put.CREATED
    assert place.store.read(path) == b"2"


@pytest.mark.parametrize("size", SIZES)
def test_sizes(place: Place, size: int) -> None:
    data = patterned(size)
    assert place.store.put_if_absent(place.at("created"), data) is Put.CREATED
    place.store.put(place.at("put"), iter([data[: size // 3], b"", data[size // 3 :]]))
    for name in ("created", "put"):
        assert place.store.read(place.at(name)) == data
        file = place.store.open(place.at(name))
        assert file.size_bytes == size
        assert file.read(0, size) == data
        file.close()


def test_an_empty_file_wins_too(place: Place) -> None:
    assert place.store.put_if_absent(place.at("x"), b"") is Put.CREATED
    assert place.store.put_if_absent(place.at("x"), b"") is Put.EXISTS
    assert place.store.put_if_absent(place.at("x"), b"more") is Put.EXISTS
    assert place.store.read(place.at("x")) == b""


def test_put_replaces(place: Place) -> None:
    path = place.at("a/hint.json")
    place.store.put(path, [b"one"])
    before = place.store.open(path)
    place.store.put(path, [b"tw", b"o!"])
    after = place.store.open(path)
    assert place.store.read(path) == b"two!"
    assert after.read(0, 4) == b"two!"
    assert before.identity != after.identity
    assert [entry.name for entry in place.store.entries(place.at("a"))] == ["hint.json"]
    place.store.put(path, [])
    assert place.store.read(path) == b""
    before.close()
    after.close()


def test_a_put_whose_pieces_fail_writes_nothing(place: Place) -> None:
    def pieces() -> Iterator[bytes]:
        yield patterned(7_000_000)
        raise ValueError("the encoder failed")

    place.store.put(place.at("there"), [b"x"])
    with pytest.raises(ValueError, match="the encoder failed"):
        place.store.put(place.at("failed"), pieces())
    assert [entry.name for entry in place.store.entries(place.path)] == ["there"]


def test_deleting_what_is_not_there(place: Place) -> None:
    place.store.delete(place.at("none"))
    place.store.delete(place.at("none/none"))


def test_missing(place: Place) -> None:
    place.store.put(place.at("dir/file"), [b"x"])
    for name in ("none", "none/none", "dir/none", "fil", "dir/fil"):
        with pytest.raises(FileNotFoundError):
            place.store.read(place.at(name))
        with pytest.raises(FileNotFoundError):
            place.store.open(place.at(name))
    for name in ("none", "di", "dir/none"):
        with pytest.raises(FileNotFoundError):
            place.store.entries(place.at(name))
    with pytest.raises(NotADirectoryError):
        place.store.entries(place.at("dir/file"))


@pytest.mark.parametrize(
    ("begin", "end", "found"),
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
def test_ranges(place: Place, begin: int, end: int, found: bytes) -> None:
    place.store.put(place.at("x"), [b"0123456789"])
    file = place.store.open(place.at("x"))
    assert file.read(begin, end) == found
    file.close()


def test_ranges_of_an_empty_file(place: Place) -> None:
    place.store.put(place.at("x"), [])
    file = place.store.open(place.at("x"))
    assert (file.size_bytes, file.read(0, 10), file.read(5, 10)) == (0, b"", b"")
    file.close()


def test_entries(place: Place) -> None:
    for name, size in (("b/two", 2), ("b/one", 1), ("b/in/deep/x", 3), ("bb", 4)):
        place.store.put(place.at(name), [bytes(size)])
    found = place.store.entries(place.at("b"))
    assert [(e.name, e.is_directory) for e in found] == [
        ("in", True),
        ("one", False),
        ("two", False),
    ]
    assert [e.size_bytes for e in found if not e.is_directory] == [1, 2]
    assert [e.path for e in found] == [place.at("b/in"), place.at("b/one"), place.at("b/two")]
    assert [e.name for e in place.store.entries(place.path)] == ["b", "bb"]
    assert [e.name for e in place.store.entries(found[0].path)] == ["deep"]


@pytest.mark.parametrize("name", NAMES)
def test_names_that_need_escaping(place: Place, name: str) -> None:
    path = place.at(f"{name}/{name}")
    assert place.store.put_if_absent(path, name.encode()) is Put.CREATED
    assert place.store.put_if_absent(path, b"") is Put.EXISTS
    place.store.put(place.at(f"{name}/put"), [b"x"])
    assert [(e.name, e.path) for e in place.store.entries(place.path)] == [(name, place.at(name))]
    found = place.store.entries(place.at(name))
    assert {e.name: e.path for e in found} == {name: path, "put": place.at(f"{name}/put")}
    assert place.store.read(path) == name.encode()
    file = place.store.open(path)
    assert file.read(0, 1000) == name.encode()
    file.close()
    place.store.delete(path)
    assert [e.name for e in place.store.entries(place.at(name))] == ["put"]


def test_ten_thousand_names(place: Place, request: pytest.FixtureRequest) -> None:
    """Several pages of S3's and of HDFS's listings, whole and in order."""
    names = [f"{number:020d}-{number % 97:010d}-abcdef.log" for number in range(10_000)]
    put_empty(place, "many", names, request)
    found = place.store.entries(place.at("many"))
    assert [entry.name for entry in found] == names
    assert found[-1] == Entry(names[-1], place.at(f"many/{names[-1]}"), 0, False)


def put_empty(
    place: Place, directory: str, names: list[str], request: pytest.FixtureRequest
) -> None:
    """Make empty files, where it can be done behind the store's back in a moment."""
    folder = None
    if place.url.startswith("s3a"):
        server: S3Server = request.getfixturevalue("s3_server")
        folder = server.folder / place.path.removeprefix(f"s3://{BUCKET}/")
    elif place.url.startswith("/"):
        folder = Path(place.path)
    if folder is not None:
        (folder / directory).mkdir(parents=True)
        for name in names:
            (folder / directory / name).touch()
        return
    if "hdfs:" in place.url:
        server_of_hdfs: servers.Hdfs = request.getfixturevalue("hdfs")
        client = Hdfs(server_of_hdfs.url, NOTHING_GIVEN).client
        parent = "/" + place.at(directory).split("/", 3)[3]

        def create(name: str) -> None:
            client.create(f"{parent}/{name}", WriteOptions(create_parent=True)).close()

    else:

        def create(name: str) -> None:
            place.store.put(place.at(f"{directory}/{name}"), [])

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(create, names))


def test_sixteen_race_for_one_name(place: Place) -> None:
    # HDFS's client waits for half a second where the DataNode is slower to report than it to close.
    rounds = 20 if place.url.startswith(("hdfs:", "webhdfs:")) else 50
    answers = race(place, racers=16, rounds=rounds)
    assert [found.count(Put.CREATED) for found in answers] == [1] * rounds
    assert {one for found in answers for one in found} == {Put.CREATED, Put.EXISTS}
    for number, found in enumerate(answers):
        winner = found.index(Put.CREATED)
        assert place.store.read(place.at(f"race/{number:020d}")) == b"%d" % winner * 1000
    names = [entry.name for entry in place.store.entries(place.at("race"))]
    assert names == [f"{number:020d}" for number in range(rounds)]


def test_a_file_of_at_most_so_many_bytes(place: Place) -> None:
    path = place.at("x")
    place.store.put(path, [b"12345"])
    for most_bytes in (5, 6, None):
        assert place.store.read(path, most_bytes) == b"12345"
    with pytest.raises(FileTooLargeError, match="x: it has 5 bytes, and one like it has 4 at most"):
        place.store.read(path, 4)
    place.store.put(path, [])
    assert place.store.read(path, 0) == b""
    with pytest.raises(FileNotFoundError):
        place.store.read(place.at("none"), 4)
