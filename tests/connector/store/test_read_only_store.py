"""A klog root in an archive and on web servers: it is read, and every write is refused."""

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

from klog.connector.commit_log import (
    checkpoint_writer,
    snapshot_leases,
    topic_vacuum,
)
from klog.connector.commit_log.klog_root import KlogRoot
from klog.connector.commit_log.root_discovery import find_or_create_root, find_root
from klog.connector.kafka_dir.raw_root import RawRoot
from klog.connector.options.read_options import parse_read_options
from klog.connector.source import scan_planner
from klog.connector.source.task_reader import make_reader
from klog.connector.store.read_only_store import ReadOnlyStore
from klog.connector.store.store_for_url import store_for
from klog.errors import OptionError, StoreError
from tests.connector.commit_log.memory_logs import TOPIC, Clock, append, attempt, created, staged
from tests.corpus import scene

SCENE = scene("transactions")
TOPICS = ",".join(sorted({topic for topic, _ in SCENE.partitions()}))


class WithoutRanges(SimpleHTTPRequestHandler):
    """A plain web server, which sends the whole file for any range."""

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Log nothing."""


class WithRanges(WithoutRanges):
    """A web server that supports ranges, as nginx does."""

    def do_GET(self) -> None:
        path = Path(self.translate_path(self.path))
        if "Range" not in self.headers or not path.is_file():
            super().do_GET()
            return
        data = path.read_bytes()
        start, end = map(int, self.headers["Range"].removeprefix("bytes=").split("-"))
        self.send_response(206)
        self.send_header("Content-Range", f"bytes {start}-{end}/{len(data)}")
        part = data[start : end + 1]
        self.send_header("Content-Length", str(len(part)))
        self.end_headers()
        self.wfile.write(part)


class TooMuch(WithoutRanges):
    """A web server that sends another range."""

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
    """The URL of a root with one topic: two commits, a checkpoint, a commit after it."""
    folder = tmp_path / "root"
    root = find_or_create_root(str(folder), "a cluster")
    log = replace(root.new_log(TOPIC), clock=Clock())
    state = append(log, created(log), (0, 3))
    checkpoint_writer.write_checkpoint(log, state)
    append(log, state, (0, 4))
    log.store.put(log.paths.data(f"{TOPIC}-0/data.log"), [bytes(range(200))])
    with PLACES[request.param](folder) as root_url:
        yield root_url


def klog_root_at(url: str) -> KlogRoot:
    root = find_root(url)
    assert root is not None
    return root


def test_topics_are_read(url: str) -> None:
    root = klog_root_at(url)
    assert (root.cluster_id, root.topic_names()) == ("a cluster", [TOPIC])
    log = root.log(TOPIC)
    state = log.load()
    assert (state.version, state.log_end) == (2, (7, 0))
    assert log.load(state) is state
    assert log.last_expired_version() == -1
    assert root.log("none").load().version == -1
    file = root.store.open(log.paths.data(f"{TOPIC}-0/data.log"))
    assert file.size_bytes == 200
    assert [file.read(10, 20), file.read(150, 999)] == [
        bytes(range(10, 20)),
        bytes(range(150, 200)),
    ]
    assert file.read(0, 200) == bytes(range(200))
    file.close()


def test_every_write_is_refused(url: str) -> None:
    root = klog_root_at(url)
    assert isinstance(root.store, ReadOnlyStore)
    log = root.log(TOPIC)
    state = log.load()
    words = rf"cannot write to {url.split(':')[0]}://.*a local path.*s3://"
    calls: list[Callable[[], object]] = [
        lambda: append(log, state, (0, 1)),
        lambda: checkpoint_writer.write_checkpoint(log, state),
        lambda: snapshot_leases.take_lease(log, "0123456789abcdef", 1, 1),
        lambda: snapshot_leases.release_lease(log, "0123456789abcdef"),
        lambda: topic_vacuum.vacuum(log, attempt("vacuum")),
        lambda: find_or_create_root(url, "another cluster"),
    ]
    for call in calls:
        with pytest.raises(OptionError, match=words):
            call()
    assert staged(state, (0, 1)).base_version == log.load().version == 2


def test_directory_without_a_root_is_not_a_root(tmp_path: Path) -> None:
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw/x").write_bytes(b"1")
    for served in PLACES.values():
        with served(tmp_path / "raw") as url:
            assert find_root(url) is None


@pytest.mark.parametrize("place", [place for place in PLACES if place != "zip"])
def test_broker_log_is_read_without_sizes_in_the_listing(place: str) -> None:
    """A web server lists names without sizes."""
    (folder,) = SCENE.log_dirs

    def rows(url: str) -> list[tuple[str, ...]]:
        options = parse_read_options({"subscribe": TOPICS, "includeHeaders": "true"})
        root, result = RawRoot([url]), []
        for task in scan_planner.plan_snapshot(root.snapshot(), options):
            for batch in make_reader([url], options).read(task):
                result += [tuple(map(str, row.values())) for row in batch.to_pylist()]
        return result

    with PLACES[place](folder) as url:
        assert rows(url) == rows(str(folder))


def test_answer_of_another_size_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(bytes(100))
    with web_server(tmp_path, TooMuch) as url:
        store, path = store_for(f"{url}/x")
        file = store.open(path)
        with pytest.raises(StoreError, match=r"/x: the server sent 7 bytes instead of 5"):
            file.read(0, 5)


def test_missing_client_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "aiohttp", None)
    monkeypatch.delitem(sys.modules, "fsspec.implementations.http", raising=False)
    from fsspec.registry import _registry

    monkeypatch.delitem(_registry, "http", raising=False)
    with pytest.raises(OptionError, match=r"http:// needs .*pip install aiohttp"):
        store_for("http://127.0.0.1/x")


@pytest.mark.parametrize(
    ("scheme", "client"), [("abfss", "adlfs"), ("az", "adlfs"), ("gs", "gcsfs")]
)
def test_client_that_is_not_installed_is_named(scheme: str, client: str) -> None:
    with pytest.raises(OptionError, match=f"{scheme}:// needs .*pip install {client}"):
        store_for(f"{scheme}://container/x")
