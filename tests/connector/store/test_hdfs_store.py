"""HDFS: its user, its refusals, and the temporary files of killed writers."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from klog.connector.options.storage_options import NO_STORAGE_OPTIONS, parse_storage_options
from klog.connector.store.hdfs_errors import USER_VARIABLE
from klog.connector.store.hdfs_store import HdfsStore
from klog.connector.store.store_for_url import store_for, writable_store_for
from klog.connector.store.temporary_names import TEMPORARY_NAME
from klog.connector.store.writable_store import PutResult
from klog.errors import OptionError, StoreError
from tests.support import store_servers
from tests.support.waiting import TIMEOUT_SECONDS

AS_ANOTHER = """
import sys
from klog.connector.store.store_for_url import writable_store_for
from klog.connector.options.storage_options import parse_storage_options
from klog.errors import KlogError, StoreError

store, path = writable_store_for(sys.argv[1], parse_storage_options({"storage.user": "another"}))
for call, *arguments in (
    ("read", f"{path}/x"), ("open", f"{path}/x"), ("entries", path), ("delete", f"{path}/x"),
    ("put", f"{path}/y", [b"1"]), ("put_if_absent", f"{path}/y", b"1"), ("read", f"{path}/../no"),
):
    try:
        getattr(store, call)(*arguments)
        print(call, "done")
    except (KlogError, OSError) as exc:
        print(call, type(exc).__name__, exc)
"""


@pytest.mark.stores
def test_forbidden_is_not_missing(hdfs: store_servers.Hdfs) -> None:
    url = f"{hdfs.url}/locked/in"
    store, path = writable_store_for(url)
    assert isinstance(store, HdfsStore)
    store.put(f"{path}/x", [b"1"])
    store.client.set_permission("/locked/in", 0o700)
    environment = {name: value for name, value in os.environ.items() if name != USER_VARIABLE}
    done = subprocess.run(
        [sys.executable, "-c", AS_ANOTHER, url],
        capture_output=True,
        text=True,
        env=environment,
        timeout=TIMEOUT_SECONDS,
        check=True,
    )
    *refused, missing = done.stdout.splitlines()
    assert missing.startswith("read ")
    for line, call in zip(
        refused, ("read", "open", "entries", "delete", "put", "put_if_absent"), strict=True
    ):
        assert line.startswith(f"{call} StoreRefusedError {url}")
        assert "AccessControlException: Permission denied: user=another" in line
        assert f"Check who this process is ({USER_VARIABLE} or Kerberos)" in line
        assert "org.apache" not in line
    assert [entry.name for entry in store.entries(path)] == ["x"]


@pytest.mark.stores
def test_failed_rename_leaves_no_file(hdfs: store_servers.Hdfs) -> None:
    store, path = writable_store_for(f"{hdfs.url}/renamed")
    store.put(f"{path}/dir/x", [b"1"])
    with pytest.raises(StoreError, match=r"renamed/dir: not written: .* must both be directories"):
        store.put_if_absent(f"{path}/dir", b"1")
    with pytest.raises(StoreError, match="renamed/dir: not written: "):
        store.put(f"{path}/dir", [b"1"])
    with pytest.raises(StoreError, match=r"dir/x/y: not written: ParentNotDirectoryException"):
        store.put_if_absent(f"{path}/dir/x/y", b"1")
    assert [entry.name for entry in store.entries(path)] == ["dir"]


@pytest.mark.stores
def test_name_with_a_colon_is_refused(hdfs: store_servers.Hdfs) -> None:
    store, path = writable_store_for(f"{hdfs.url}/refused")
    with pytest.raises(StoreError, match=r"a:b: not written: InvalidPathException: Invalid path"):
        store.put_if_absent(f"{path}/a:b", b"1")


@pytest.mark.stores
def test_lost_answer_is_unknown(hdfs: store_servers.Hdfs) -> None:
    """A client that repeats its rename finds no source: it won, and cannot know that."""

    class Repeats(HdfsStore):
        def __init__(self, url: str) -> None:
            super().__init__(url, NO_STORAGE_OPTIONS)
            self.real = self.client
            self.client = self  # type: ignore[assignment]

        def create(self, *arguments: object) -> object:
            return self.real.create(*arguments)  # type: ignore[arg-type]

        def get_file_info(self, path: str) -> object:
            return self.real.get_file_info(path)

        def rename(self, source: str, target: str, overwrite: bool) -> None:
            self.real.rename(source, target, overwrite)
            self.real.rename(source, target, overwrite)

    path = f"{hdfs.url}/repeated/x"
    assert Repeats(hdfs.url).put_if_absent(path, b"1") is PutResult.UNKNOWN
    assert store_for(path)[0].read(path) == b"1"


@pytest.mark.stores
def test_killed_writer_leaves_a_temporary_file(hdfs: store_servers.Hdfs) -> None:
    url = f"{hdfs.url}/killed"
    script = (
        "import os, sys; from klog.connector.store.store_for_url import writable_store_for\n"
        "def chunks():\n"
        "    yield b'1' * 1000\n"
        "    os.kill(os.getpid(), 9)\n"
        "store, path = writable_store_for(sys.argv[1]); store.put(f'{path}/x', chunks())\n"
    )
    done = subprocess.run([sys.executable, "-c", script, url], timeout=TIMEOUT_SECONDS, check=False)
    assert done.returncode == -9
    store, path = writable_store_for(url)
    (entry,) = store.entries(path)
    match = TEMPORARY_NAME.fullmatch(entry.name)
    assert match is not None
    assert match["name"] == "x"
    assert store.put_if_absent(f"{path}/x", b"2") is PutResult.CREATED


def test_process_has_one_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(USER_VARIABLE, "me")
    with pytest.raises(OptionError, match=r"storage.user: must be me, because this process is"):
        store_for("hdfs://nobody-there:1/x", parse_storage_options({"storage.user": "you"}))


def test_malformed_url_is_refused() -> None:
    with pytest.raises(OptionError, match=r"path: cannot use hdfs://\[: .*HADOOP_CONF_DIR"):
        store_for("hdfs://[/x")


def test_missing_client_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "hdfs_native", None)
    with pytest.raises(OptionError, match="pip install hdfs-native"):
        store_for("hdfs://a-host-not-opened-before:1/x")


def test_url_without_a_host_is_the_default_file_system(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "core-site.xml").write_text(
        "<configuration><property><name>fs.defaultFS</name><value>hdfs://elsewhere:8020</value>"
        "</property></configuration>"
    )
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))
    store, path = store_for("hdfs:///user/me")
    assert isinstance(store, HdfsStore)
    assert path == "hdfs:///user/me"
    assert store.name(path) == "/user/me"
