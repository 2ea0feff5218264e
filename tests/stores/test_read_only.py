"""A klog root in an archive and on web servers: read as it is, and refused for writing."""

from __future__ import annotations

import sys
import threading
import zipfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from klog.connector.log import cleaning, garbage, pins
from klog.connector.log.raw import RawRoot
from klog.connector.log.root import KlogRoot, find_root, make_root
from klog.connector.options import read_options
from klog.connector.source import scan
from klog.connector.store.read_only import ReadOnlyStore
from klog.connector.store.schemes import store_for
from klog.errors import KlogError, OptionError
from tests.commits.logs import TOPIC, Clock, append, attempt, created, staged
from tests.corpus import scene

SCENE = scene("transactions")
TOPICS = ",".join(sorted({topic for topic, _ in SCENE.partitions()}))


class WithoutRanges(SimpleHTTPRequestHandler):
    """A plain web server, which sends the whole file whatever was asked for."""

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Say nothing."""


class WithRanges(WithoutRanges):
    """One that knows them, as nginx does."""

    def do_GET(self) -> None:
        path = Path(self.translate_path(self.path))
        if "Range" not in self.headers or not path.is_file():
            super().do_GET()
            return
        data = path.read_bytes()
        begin, end = map(int, self.headers["Range"].removeprefix("bytes=").split("-"))
        self.send_response(206)
        self.send_header("Content-Range", f"bytes {begin}-{end}/{len(data)}")
        part = data[begin : end + 1]
        self.send_header("Content-Length", str(len(part)))
        self.end_headers()
        self.wfile.write(part)


class TooMuch(WithoutRanges):
    """One that means something else by a range."""

    def do_GET(self) -> None:
        self.send_response(206)
        self.send_header("Content-Length", "7")
        self.end_headers()
        self.wfile.write(b"1234567")


@contextmanager
def web_server(folder: Path, handler: type[SimpleHTTPRequestHandler]) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(handler, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def archive(folder: Path) -> Iterator[str]:
    packed = folder.parent / f"{folder.name}.zip"
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as file:
        for path in sorted(folder.rglob("*")):
            file.write(path, path.relative_to(folder.parent))
    yield f"zip://{folder.name}::{packed}"


PLACES: dict[str, Callable[[Path], AbstractContextManager[str]]] = {
    "zip": archive,
    "http": partial(web_server, handler=WithRanges),
    "http without ranges": partial(web_server, handler=WithoutRanges),
}


@pytest.fixture(params=PLACES)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The URL of a root with one topic: two commits, a checkpoint, a commit behind it."""
    folder = tmp_path / "root"
    root = make_root(str(folder), "a cluster")
    log = replace(root.new_log(TOPIC), clock=Clock())
    state = append(log, created(log), (0, 3))
    cleaning.write_checkpoint(log, state)
    append(log, state, (0, 4))
    log.store.put(log.paths.data(f"{TOPIC}-0/data.log"), [bytes(range(200))])
    with PLACES[request.param](folder) as given:
        yield given


def found_at(url: str) -> KlogRoot:
    root = find_root(url)
    assert root is not None
    return root


def test_its_topics_are_read(url: str) -> None:
    root = found_at(url)
    assert (root.cluster_id, root.topic_names()) == ("a cluster", [TOPIC])
    log = root.log(TOPIC)
    state = log.load()
    assert (state.version, state.log_end) == (2, (7, 0))
    assert log.load(state) is state
    assert log.boundary() == -1
    assert root.log("none").load().version == -1
    file = root.store.open(log.paths.data(f"{TOPIC}-0/data.log"))
    assert file.size_bytes == 200
    assert [file.read(10, 20), file.read(150, 999)] == [
        bytes(range(10, 20)),
        bytes(range(150, 200)),
    ]
    assert file.read(0, 200) == bytes(range(200))
    file.close()


def test_nothing_is_written(url: str) -> None:
    root = found_at(url)
    assert isinstance(root.store, ReadOnlyStore)
    log = root.log(TOPIC)
    state = log.load()
    words = rf"cannot write to {url.split(':')[0]}://.*a local path.*s3://"
    calls: list[Callable[[], object]] = [
        lambda: append(log, state, (0, 1)),
        lambda: cleaning.write_checkpoint(log, state),
        lambda: pins.pin(log, "0123456789abcdef", 1, 1),
        lambda: pins.unpin(log, "0123456789abcdef"),
        lambda: garbage.vacuum(log, attempt("vacuum")),
        lambda: make_root(url, "another cluster"),
    ]
    for call in calls:
        with pytest.raises(OptionError, match=words):
            call()
    assert staged(state, (0, 1)).birth == log.load().version == 2


def test_a_directory_without_a_root(tmp_path: Path) -> None:
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw/x").write_bytes(b"1")
    for place in PLACES.values():
        with place(tmp_path / "raw") as given:
            assert find_root(given) is None


@pytest.mark.parametrize("place", [place for place in PLACES if place != "zip"])
def test_a_brokers_log(place: str) -> None:
    """A web server lists names without sizes."""
    (folder,) = SCENE.log_dirs

    def rows(url: str) -> list[tuple[str, ...]]:
        options = read_options({"subscribe": TOPICS, "includeHeaders": "true"})
        root, found = RawRoot([url]), []
        for task in scan.slices(root, scan.pin(root, options), options):
            for batch in scan.reader([url], options).read(task):
                found += [tuple(map(str, row.values())) for row in batch.to_pylist()]
        return found

    with PLACES[place](folder) as given:
        assert rows(given) == rows(str(folder))


def test_a_server_that_sends_something_else(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(bytes(100))
    with web_server(tmp_path, TooMuch) as given:
        store, path = store_for(f"{given}/x")
        file = store.open(path)
        with pytest.raises(KlogError, match=r"/x: 7 bytes came where 5 were asked for"):
            file.read(0, 5)


def test_a_missing_client_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "aiohttp", None)
    monkeypatch.delitem(sys.modules, "fsspec.implementations.http", raising=False)
    from fsspec.registry import _registry

    monkeypatch.delitem(_registry, "http", raising=False)
    with pytest.raises(OptionError, match=r"http:// needs .*: pip install 'klog\[http\]'"):
        store_for("http://127.0.0.1/x")


@pytest.mark.parametrize(("scheme", "extra"), [("abfss", "azure"), ("az", "azure"), ("gs", "gcs")])
def test_clients_that_are_not_installed_here(scheme: str, extra: str) -> None:
    with pytest.raises(OptionError, match=rf"{scheme}:// needs .*: pip install 'klog\[{extra}\]'"):
        store_for(f"{scheme}://container/x")
