"""One contract of reading for local disk, `memory:` and `zip:`, and a real log on each."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fsspec
import pytest

from klog.connector.kafka_dir.raw_root import RawRoot
from klog.connector.options.read_options import parse_read_options
from klog.connector.options.spark_paths import log_directories
from klog.connector.source import scan_planner
from klog.connector.source.task_reader import make_reader
from klog.connector.store.fsspec_store import FsspecStore
from klog.connector.store.local_store import LocalStore
from klog.connector.store.readable_store import ReadableStore
from klog.connector.store.store_for_url import store_for
from klog.errors import KlogError, OptionError
from tests.corpus import scene

FILES = {"a/one": b"0123456789", "a/two": b"", "a/inner/three": b"3", "b/four": bytes(5000)}


@dataclass(frozen=True)
class Place:
    """A root with `FILES`: its store, its path there, and its URL."""

    store: ReadableStore
    path: str
    url: str

    def at(self, name: str) -> str:
        return f"{self.path}/{name}".lstrip("/") if not self.path else f"{self.path}/{name}"


def fill_local(root: Path) -> str:
    for name, data in FILES.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return str(root)


def fill_zip(root: Path) -> str:
    archive = root / "files.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        for name, data in FILES.items():
            file.writestr(f"root/{name}", data)
    return f"zip://root::{archive}"


def fill_memory(root: Path) -> str:
    system = fsspec.filesystem("memory")
    for name, data in FILES.items():
        system.pipe_file(f"/{root.name}/{name}", data)
    return f"memory://{root.name}"


FILLS = {"local": fill_local, "zip": fill_zip, "memory": fill_memory}


@pytest.fixture(params=FILLS)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    url = FILLS[request.param](tmp_path)
    yield Place(*store_for(url), url)
    clear_memory()


def clear_memory() -> None:
    fsspec.filesystem("memory").store.clear()


def test_entries_are_one_level_deep_and_sorted(place: Place) -> None:
    entries = place.store.entries(place.at("a"))
    assert [(e.name, e.is_directory) for e in entries] == [
        ("inner", True),
        ("one", False),
        ("two", False),
    ]
    assert [e.size_bytes for e in entries if not e.is_directory] == [10, 0]
    assert [e.name for e in place.store.entries(place.path)] == ["a", "b"]


def test_path_of_an_entry_opens_it(place: Place) -> None:
    (four,) = place.store.entries(place.at("b"))
    assert place.store.read(four.path) == FILES["b/four"]
    file = place.store.open(four.path)
    assert file.read(0, 5000) == FILES["b/four"]
    file.close()


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        (0, 10, b"0123456789"),
        (0, 3, b"012"),
        (3, 7, b"3456"),
        (7, 10, b"789"),
        (7, 99, b"789"),
        (10, 99, b""),
        (50, 99, b""),
        (4, 4, b""),
        (0, 0, b""),
    ],
)
def test_ranges_end_at_the_end_of_the_file(
    place: Place, start: int, end: int, expected: bytes
) -> None:
    file = place.store.open(place.at("a/one"))
    assert file.size_bytes == 10
    assert file.read(start, end) == expected
    file.close()


def test_empty_file_is_read(place: Place) -> None:
    file = place.store.open(place.at("a/two"))
    assert (file.size_bytes, file.read(0, 10), place.store.read(place.at("a/two"))) == (0, b"", b"")
    file.close()


@pytest.mark.parametrize("name", ["a/none", "none/none"])
def test_missing_file_is_an_error(place: Place, name: str) -> None:
    with pytest.raises(FileNotFoundError):
        place.store.open(place.at(name))
    with pytest.raises(FileNotFoundError):
        place.store.read(place.at(name))


def test_missing_directory_is_an_error(place: Place) -> None:
    with pytest.raises(FileNotFoundError):
        place.store.entries(place.at("none"))


def test_missing_root_is_an_option_error(place: Place) -> None:
    url = place.url.replace("zip://root", "zip://none") if "zip:" in place.url else place.url + "x"
    with pytest.raises(OptionError, match="path: there is no directory"):
        RawRoot([url]).partitions()


def test_renamed_file_keeps_its_identity(tmp_path: Path) -> None:
    store = LocalStore()
    path, other = tmp_path / "x", tmp_path / "y"
    path.write_bytes(b"one")
    file = store.open(str(path))
    path.rename(other)
    path.write_bytes(b"two")
    assert file.read(0, 3) == b"one"
    assert store.open(str(other)).identity == file.identity
    assert store.open(str(path)).identity != file.identity
    other.unlink()
    assert file.read(0, 3) == b"one"
    file.close()


def test_growing_file_keeps_its_identity(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"one")
    before = LocalStore().open(str(path))
    with path.open("ab") as more:
        more.write(b"two")
    after = LocalStore().open(str(path))
    assert (before.size_bytes, after.size_bytes) == (3, 6)
    assert before.identity == after.identity


def test_names_that_vanish_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"one")
    (tmp_path / "y").symlink_to(tmp_path / "none")
    assert [entry.name for entry in LocalStore().entries(str(tmp_path))] == ["x"]


def test_listing_is_not_cached() -> None:
    system = fsspec.filesystem("memory")
    system.pipe_file("/listed/x", b"1")
    store = FsspecStore(system)
    assert [entry.size_bytes for entry in store.entries("/listed")] == [1]
    first = store.open("/listed/x").identity
    system.pipe_file("/listed/x", b"22")
    system.pipe_file("/listed/y", b"")
    assert [(e.name, e.size_bytes) for e in store.entries("/listed")] == [("x", 2), ("y", 0)]
    assert store.open("/listed/x").identity != first
    clear_memory()


@pytest.mark.parametrize(
    ("key", "value"),
    [("ETag", '"a"'), ("etag", "b"), ("version_id", "c"), ("mtime", 5.5), ("LastModified", 7)],
)
def test_identity_is_the_version_of_the_store(key: str, value: Any) -> None:
    class System:
        def __init__(self, version: Any) -> None:
            self.version = version

        def info(self, path: str) -> dict[str, Any]:
            return {"name": path, "size": 4, "type": "file", key: self.version}

    first, same, other = (
        FsspecStore(System(version)).open("x") for version in (value, value, "other")
    )
    assert first.identity == same.identity != other.identity


@pytest.mark.parametrize(
    ("root", "path"),
    [("/x/y", "/x/y"), ("file:///x/y", "/x/y"), ("file:/x/y/", "/x/y"), ("file:///x", "/x")],
)
def test_local_paths_and_urls(root: str, path: str) -> None:
    store, store_path = store_for(root)
    assert isinstance(store, LocalStore)
    assert store_path == path


def test_relative_path_is_made_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert store_for("x")[1] == str(tmp_path / "x")


def test_unknown_scheme_is_refused() -> None:
    with pytest.raises(OptionError, match="path: cannot read nosuch://"):
        store_for("nosuch://x/y")


def test_url_that_fsspec_refuses_is_named(tmp_path: Path) -> None:
    (tmp_path / "bad.zip").write_bytes(b"no archive")
    with pytest.raises(OptionError, match=r"cannot read zip:// here: BadZipFile.*Check zip://x::"):
        store_for(f"zip://x::{tmp_path / 'bad.zip'}")
    with pytest.raises(OptionError, match=r"cannot read reference:// here: .*Check reference://x"):
        store_for("reference://x")


class Failing:
    """A file system whose every call fails with one error."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def info(self, path: str) -> dict[str, Any]:
        raise self._error

    def ls(self, directory: str, detail: bool) -> list[dict[str, Any]]:
        raise self._error

    def cat_file(self, path: str) -> bytes:
        raise self._error

    def invalidate_cache(self, directory: str) -> None:
        """Do nothing: there is no cache."""


@pytest.mark.parametrize("call", ["open", "entries", "read"])
def test_error_of_a_file_system_names_the_path(call: str) -> None:
    error = AttributeError("no such thing")
    with pytest.raises(
        KlogError, match="x/y: cannot be read: AttributeError: no such thing"
    ) as caught:
        getattr(FsspecStore(Failing(error)), call)("x/y")
    assert caught.value.__cause__ is error
    with pytest.raises(FileNotFoundError):
        getattr(FsspecStore(Failing(FileNotFoundError("x/y"))), call)("x/y")


def test_file_is_not_a_log_directory(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"")
    with pytest.raises(OptionError, match="is a file"):
        RawRoot([str(tmp_path / "x")]).partitions()


# A real broker's log directory through each store.

SCENE = scene("transactions")
TOPICS = sorted({topic for topic, _ in SCENE.partitions()})


def rows_of(url: str) -> list[tuple[Any, ...]]:
    options = parse_read_options({"subscribe": ",".join(TOPICS), "includeHeaders": "true"})
    root = RawRoot([url])
    rows = []
    for task in scan_planner.plan_snapshot(root.snapshot(), options):
        for batch in make_reader([url], options).read(task):
            rows += [tuple(map(str, row.values())) for row in batch.to_pylist()]
    return rows


def test_broker_log_is_the_same_on_every_store(tmp_path: Path) -> None:
    (log_dir,) = SCENE.log_dirs
    files = [path for path in log_dir.rglob("*") if path.is_file()]
    archive = tmp_path / "scene.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        for path in files:
            file.write(path, f"log/{path.relative_to(log_dir)}")
    system = fsspec.filesystem("memory")
    for path in files:
        system.pipe_file(f"/scene/log/{path.relative_to(log_dir)}", path.read_bytes())
    local = rows_of(str(log_dir))
    assert len(local) == sum(record.read_committed for record in SCENE.records())
    assert rows_of(f"file://{log_dir}") == local
    assert rows_of(f"zip://log::{archive}") == local
    assert rows_of("memory://scene/log") == local
    clear_memory()


def test_memory_is_refused_in_spark() -> None:
    with pytest.raises(OptionError, match="memory://x lives in one process"):
        log_directories({"path": "memory://x"})
