"""WebHDFS: the meaning of its answers, and its user."""

from __future__ import annotations

import getpass
import http.client
from collections.abc import Iterator

import pytest

from klog.connector.options.storage_options import parse_storage_options
from klog.connector.store import webhdfs_store
from klog.connector.store.store_for_url import store_for, writable_store_for
from klog.connector.store.webhdfs_store import RemoteError, WebHdfsStore
from klog.connector.store.writable_store import PutResult
from klog.errors import KlogError, OptionError
from tests.support.kafka_broker import free_ports
from tests.support.store_servers import Hdfs


@pytest.mark.stores
def test_forbidden_is_not_missing(hdfs: Hdfs) -> None:
    own, _ = writable_store_for(f"{hdfs.url}/webbed")
    own.put(f"{hdfs.url}/webbed/in/x", [b"1"])
    own.client.set_permission("/webbed/in", 0o700)  # type: ignore[attr-defined]
    store, path = writable_store_for(
        f"{hdfs.web_url}/webbed/in", parse_storage_options({"storage.user": "another"})
    )
    for call, *arguments in (
        ("read",), ("open",), ("entries",), ("delete",), ("put", [b"1"]), ("put_if_absent", b"1"),
    ):  # fmt: skip
        with pytest.raises(
            KlogError, match=r"AccessControlException: .*user=another.*storage.user"
        ):
            getattr(store, call)(f"{path}/x", *arguments)
    with pytest.raises(FileNotFoundError):
        store.read(f"{hdfs.web_url}/webbed/none")


class LostAnswers:
    """Raises an error in the place of the NameNode's answer to a rename."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, error: Exception, applied: bool) -> None:
        self._real, self._error, self._applied = webhdfs_store._request, error, applied
        monkeypatch.setattr(webhdfs_store, "_request", self)

    def __call__(self, method: str, address: str, chunks: Iterator[bytes] | None = None) -> bytes:
        if "op=RENAME" not in address:
            return self._real(method, address, chunks)
        if self._applied:
            self._real(method, address, chunks)
        raise self._error


@pytest.mark.stores
@pytest.mark.parametrize("applied", [False, True])
@pytest.mark.parametrize(
    "error", [TimeoutError(), http.client.BadStatusLine(""), RemoteError(500, b"{}")]
)
def test_lost_answer_is_unknown(
    hdfs: Hdfs, monkeypatch: pytest.MonkeyPatch, error: Exception, applied: bool
) -> None:
    store, path = writable_store_for(
        f"{hdfs.web_url}/lost", parse_storage_options({"storage.user": getpass.getuser()})
    )
    with monkeypatch.context() as patched:
        LostAnswers(patched, error, applied)
        assert store.put_if_absent(f"{path}/x", b"1") is PutResult.UNKNOWN
    assert ("x" in [entry.name for entry in store.entries(path)]) == applied
    store.delete(f"{path}/x")
    for entry in store.entries(path):
        store.delete(entry.path)


def test_unreachable_namenode_is_named() -> None:
    (port,) = free_ports(1)
    store, path = writable_store_for(f"webhdfs://127.0.0.1:{port}/x")
    with pytest.raises(KlogError, match=r"not written: ConnectionRefusedError.*web address"):
        store.put_if_absent(path, b"1")
    with pytest.raises(KlogError, match=r"not read: ConnectionRefusedError.*web address"):
        store.read(path)


@pytest.mark.parametrize("url", ["webhdfs://host/x", "webhdfs://host:/x", "webhdfs://:9870/x"])
def test_url_without_a_host_or_a_port_is_refused(url: str) -> None:
    with pytest.raises(OptionError, match="path: must have a host and a port"):
        store_for(url)


@pytest.mark.parametrize("authority", ["me@host:9870", "me:canary@host:9870", "host:canary"])
def test_url_with_a_user_is_refused(authority: str) -> None:
    with pytest.raises(OptionError, match="more than a host and a port") as caught:
        store_for(f"webhdfs://{authority}/x")
    assert "canary" not in str(caught.value)


def test_scheme_has_its_own_store() -> None:
    assert isinstance(store_for("webhdfs://host:9870/x")[0], WebHdfsStore)
