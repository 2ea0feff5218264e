"""WebHDFS: what its answers mean, and whose user it is."""

from __future__ import annotations

import getpass
import http.client
from collections.abc import Iterator

import pytest

from klog.connector.store import webhdfs
from klog.connector.store.contract import Put
from klog.connector.store.schemes import store_for, writable_store_for
from klog.connector.store.storage import storage_of
from klog.connector.store.webhdfs import RemoteError, WebHdfs
from klog.errors import KlogError, OptionError
from tests.broker import free_ports
from tests.servers import Hdfs


@pytest.mark.stores
def test_forbidden_is_not_missing(hdfs: Hdfs) -> None:
    own, _ = writable_store_for(f"{hdfs.url}/webbed")
    own.put(f"{hdfs.url}/webbed/in/x", [b"1"])
    own.client.set_permission("/webbed/in", 0o700)  # type: ignore[attr-defined]
    store, path = writable_store_for(
        f"{hdfs.web_url}/webbed/in", storage_of({"storage.user": "another"})
    )
    for call, *more in (
        ("read",), ("open",), ("entries",), ("delete",), ("put", [b"1"]), ("put_if_absent", b"1"),
    ):  # fmt: skip
        with pytest.raises(
            KlogError, match=r"AccessControlException: .*user=another.*storage.user"
        ):
            getattr(store, call)(f"{path}/x", *more)
    with pytest.raises(FileNotFoundError):
        store.read(f"{hdfs.web_url}/webbed/none")


class Answers:
    """Stands before the NameNode's answers to renames."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, error: Exception, applied: bool) -> None:
        self._real, self._error, self._applied = webhdfs._ask, error, applied
        monkeypatch.setattr(webhdfs, "_ask", self)

    def __call__(self, method: str, address: str, pieces: Iterator[bytes] | None = None) -> bytes:
        if "op=RENAME" not in address:
            return self._real(method, address, pieces)
        if self._applied:
            self._real(method, address, pieces)
        raise self._error


@pytest.mark.stores
@pytest.mark.parametrize("applied", [False, True])
@pytest.mark.parametrize(
    "error", [TimeoutError(), http.client.BadStatusLine(""), RemoteError(500, b"{}")]
)
def test_a_lost_answer_is_unknown(
    hdfs: Hdfs, monkeypatch: pytest.MonkeyPatch, error: Exception, applied: bool
) -> None:
    store, path = writable_store_for(
        f"{hdfs.web_url}/lost", storage_of({"storage.user": getpass.getuser()})
    )
    with monkeypatch.context() as patched:
        Answers(patched, error, applied)
        assert store.put_if_absent(f"{path}/x", b"1") is Put.UNKNOWN
    assert ("x" in [entry.name for entry in store.entries(path)]) == applied
    store.delete(f"{path}/x")
    for left in store.entries(path):
        store.delete(left.path)


def test_nobody_there() -> None:
    (port,) = free_ports(1)
    store, path = writable_store_for(f"webhdfs://127.0.0.1:{port}/x")
    with pytest.raises(KlogError, match=r"not written: ConnectionRefusedError.*web address"):
        store.put_if_absent(path, b"1")
    with pytest.raises(KlogError, match=r"not read: ConnectionRefusedError.*web address"):
        store.read(path)


@pytest.mark.parametrize("url", ["webhdfs://host/x", "webhdfs://host:/x", "webhdfs://:9870/x"])
def test_an_address_without_a_host_or_a_port(url: str) -> None:
    with pytest.raises(OptionError, match="needs a host and a port"):
        store_for(url)


@pytest.mark.parametrize("authority", ["me@host:9870", "me:canary@host:9870", "host:canary"])
def test_an_address_with_more_than_a_host_and_a_port(authority: str) -> None:
    with pytest.raises(OptionError, match="more than a host and a port") as caught:
        store_for(f"webhdfs://{authority}/x")
    assert "canary" not in str(caught.value)


def test_it_is_of_webhdfs() -> None:
    assert isinstance(store_for("webhdfs://host:9870/x")[0], WebHdfs)
