"""HDFS: whose user it is, what it refuses, and what is left behind."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from klog.connector.store.contract import Put
from klog.connector.store.hdfs import USER, Hdfs
from klog.connector.store.schemes import store_for, writable_store_for
from klog.connector.store.storage import NOTHING_GIVEN, storage_of
from klog.connector.store.temporary import TEMPORARY
from klog.errors import KlogError, OptionError
from tests import servers

AS_ANOTHER = """
import sys
from klog.connector.store.schemes import writable_store_for
from klog.connector.store.storage import storage_of
from klog.errors import KlogError

store, path = writable_store_for(sys.argv[1], storage_of({"storage.user": "another"}))
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
def test_forbidden_is_not_missing(hdfs: servers.Hdfs) -> None:
    url = f"{hdfs.url}/locked/in"
    store, path = writable_store_for(url)
    assert isinstance(store, Hdfs)
    store.put(f"{path}/x", [b"1"])
    store.client.set_permission("/locked/in", 0o700)
    environment = {name: value for name, value in os.environ.items() if name != USER}
    done = subprocess.run(
        [sys.executable, "-c", AS_ANOTHER, url],
        capture_output=True,
        text=True,
        env=environment,
        timeout=60,
        check=True,
    )
    *refused, missing = done.stdout.splitlines()
    assert missing.startswith("read ")
    for line, call in zip(
        refused, ("read", "open", "entries", "delete", "put", "put_if_absent"), strict=True
    ):
        assert line.startswith(f"{call} KlogError {url}")
        assert "AccessControlException: Permission denied: user=another" in line
        assert f"Check who this process is ({USER} or Kerberos)" in line
        assert "org.apache" not in line
    assert [entry.name for entry in store.entries(path)] == ["x"]


@pytest.mark.stores
def test_a_failed_rename_leaves_nothing(hdfs: servers.Hdfs) -> None:
    store, path = writable_store_for(f"{hdfs.url}/renamed")
    store.put(f"{path}/dir/x", [b"1"])
    with pytest.raises(KlogError, match=r"renamed/dir: not written: .* must both be directories"):
        store.put_if_absent(f"{path}/dir", b"1")
    with pytest.raises(KlogError, match="renamed/dir: not written: "):
        store.put(f"{path}/dir", [b"1"])
    with pytest.raises(KlogError, match=r"dir/x/y: not written: ParentNotDirectoryException"):
        store.put_if_absent(f"{path}/dir/x/y", b"1")
    assert [entry.name for entry in store.entries(path)] == ["dir"]


@pytest.mark.stores
def test_a_name_that_hdfs_refuses(hdfs: servers.Hdfs) -> None:
    store, path = writable_store_for(f"{hdfs.url}/refused")
    with pytest.raises(KlogError, match=r"a:b: not written: InvalidPathException: Invalid path"):
        store.put_if_absent(f"{path}/a:b", b"1")


@pytest.mark.stores
def test_a_lost_answer_is_unknown(hdfs: servers.Hdfs) -> None:
    """A client that repeats its rename finds that its source has gone: it won, and cannot know."""

    class Repeats(Hdfs):
        def __init__(self, url: str) -> None:
            super().__init__(url, NOTHING_GIVEN)
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
    assert Repeats(hdfs.url).put_if_absent(path, b"1") is Put.UNKNOWN
    assert store_for(path)[0].read(path) == b"1"


@pytest.mark.stores
def test_what_a_killed_writer_leaves_is_known_by_its_name(hdfs: servers.Hdfs) -> None:
    url = f"{hdfs.url}/killed"
    script = (
        "import os, sys; from klog.connector.store.schemes import writable_store_for\n"
        "def pieces():\n"
        "    yield b'1' * 1000\n"
        "    os.kill(os.getpid(), 9)\n"
        "store, path = writable_store_for(sys.argv[1]); store.put(f'{path}/x', pieces())\n"
    )
    done = subprocess.run([sys.executable, "-c", script, url], timeout=60, check=False)
    assert done.returncode == -9
    store, path = writable_store_for(url)
    (left,) = store.entries(path)
    found = TEMPORARY.fullmatch(left.name)
    assert found is not None
    assert found["name"] == "x"
    assert store.put_if_absent(f"{path}/x", b"2") is Put.CREATED


def test_a_process_has_one_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(USER, "me")
    with pytest.raises(OptionError, match=r"storage.user: this process is me to HDFS already"):
        store_for("hdfs://nobody-there:1/x", storage_of({"storage.user": "you"}))


def test_a_url_that_is_none() -> None:
    with pytest.raises(OptionError, match=r"path: cannot use hdfs://\[: .*HADOOP_CONF_DIR"):
        store_for("hdfs://[/x")


def test_a_missing_client_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "hdfs_native", None)
    with pytest.raises(OptionError, match=r"pip install 'klog\[hdfs\]'"):
        store_for("hdfs://a-host-not-opened-before:1/x")


def test_the_default_file_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "core-site.xml").write_text(
        "<configuration><property><name>fs.defaultFS</name><value>hdfs://elsewhere:8020</value>"
        "</property></configuration>"
    )
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))
    store, path = store_for("hdfs:///user/me")
    assert isinstance(store, Hdfs)
    assert path == "hdfs:///user/me"
    assert store.name(path) == "/user/me"
