"""Acknowledged commits on HDFS survive kills, and are synced, as docs/durability.md says.

A kill does not lose what the kernel holds in memory, as a loss of power does. So syncs are counted.
"""

from __future__ import annotations

import getpass
import secrets
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from klog.connector.commit_log.commit_log import CommitLog
from klog.connector.commit_log.commit_log_paths import TopicPaths
from klog.connector.options.storage_options import parse_storage_options
from klog.connector.store.hdfs_store import HdfsStore
from klog.connector.store.writable_store import PutResult
from klog.errors import StoreError
from tests.connector.commit_log.memory_logs import TOPIC, Clock, append, created
from tests.connector.store.store_roots import StoreRoot, store_root_at
from tests.support import store_servers

pytestmark = [pytest.mark.stores]

SYNC_ON_CLOSE = {"dfs.datanode.synconclose": "true"}
LATE = "dfs.blockreport.incremental.intervalMsec"
COMMITS = 5


@pytest.fixture(scope="module")
def own_hdfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[store_servers.Hdfs]:
    """An HDFS to be killed, which syncs each block that is closed."""
    with store_servers.Hdfs(tmp_path_factory.mktemp("killed"), SYNC_ON_CLOSE) as running:
        yield running


def roots_on(server: store_servers.Hdfs) -> list[StoreRoot]:
    name = secrets.token_hex(8)
    user = parse_storage_options({"storage.user": getpass.getuser()})
    return [
        store_root_at(f"{server.url}/{name}/native"),
        store_root_at(f"{server.web_url}/{name}/web", user),
    ]


def log_at(root: StoreRoot) -> CommitLog:
    return CommitLog(root.store, TopicPaths(root.path, TOPIC), Clock(), lambda tries: None)


def test_acknowledged_commit_survives_a_kill(own_hdfs: store_servers.Hdfs) -> None:
    """NameNode and DataNode are killed when the last answer has come.

    The commit exists and its number is taken: the NameNode had it in its own log on disk.
    """
    logs = [log_at(root) for root in roots_on(own_hdfs)]
    states = [append(log, created(log), (0, 3)) for log in logs]
    own_hdfs.kill_and_restart()
    for log, state in zip(logs, states, strict=True):
        assert log.store.put_if_absent(log.paths.commit(1), b"another") is PutResult.EXISTS
        assert log.load().version == state.version == 1
        assert log.load().log_end == (3, 0)
        assert append(log, state, (0, 4)).log_end == (7, 0)


@pytest.mark.full  # The next test counts the waits, too.
def test_reader_waits_for_the_report_of_a_block(tmp_path: Path) -> None:
    """A file closes before DataNodes report it; all files survive a kill."""
    settings = {**store_servers.CLOSED_EARLY, LATE: "700"}
    tries_waited: list[int] = []

    def wait(tries: int) -> None:
        tries_waited.append(tries)
        time.sleep(0.1)

    with store_servers.Hdfs(tmp_path, settings, datanodes=2) as server:
        roots = roots_on(server)
        native, web = map(log_at, roots)
        patient = HdfsStore(server.url, parse_storage_options({}), wait=wait)
        readers = [log_at(replace(roots[0], store=patient)), web]
        for log, reader in zip((native, web), readers, strict=True):
            state = created(log)
            for number in range(1, COMMITS + 1):
                state = append(log, state, (0, 3))
                assert reader.load().version == state.version == number
        assert tries_waited
        server.kill_and_restart()
        for log in (native, web):
            assert (log.load().version, log.load().log_end) == (COMMITS, (3 * COMMITS, 0))


def test_unreported_block_is_an_error(tmp_path: Path) -> None:
    # With a heartbeat goes what there is to report.
    late = {LATE: "600000", "dfs.heartbeat.interval": "600"}
    with store_servers.Hdfs(tmp_path, store_servers.CLOSED_EARLY | late, datanodes=2) as server:
        waits: list[int] = []
        store = HdfsStore(server.url, parse_storage_options({}), wait=waits.append)
        path = unreported(store, server.url)
        waits.clear()
        with pytest.raises(StoreError, match=r"/\d: not read: it has 7 bytes, .* blocks of 0\."):
            store.read(path)
        assert waits == list(range(1, 9))
        with pytest.raises(StoreError, match="blocks of 0"):
            store.open(path, 7)
        assert store.open(path).size_bytes == 0


def unreported(store: HdfsStore, url: str) -> str:
    """Write files until one stays unreported: the first few reports go at once."""
    for number in range(10):
        path = f"{url}/{number}"
        store.put_if_absent(path, b"seven b")
        deadline = time.monotonic() + 4
        while not store.open(path).size_bytes:
            if time.monotonic() > deadline:
                return path
            time.sleep(0.05)
    raise AssertionError("all files were reported")


def test_hdfs_native_syncs_and_webhdfs_does_not(hdfs: store_servers.Hdfs) -> None:
    native, web = roots_on(hdfs)
    before = hdfs.syncs()
    native.store.put_if_absent(native.at("x"), b"1")
    synced = hdfs.syncs()
    assert synced > before
    web.store.put_if_absent(web.at("x"), b"1")
    assert hdfs.syncs() == synced


def test_every_block_of_a_segment_is_synced(hdfs: store_servers.Hdfs) -> None:
    native, _ = roots_on(hdfs)
    before = hdfs.syncs()
    native.store.put(native.at("x"), [bytes(1 << 20)] * 9)
    assert hdfs.syncs() - before >= 3 == -(-(9 << 20) // store_servers.BLOCK_BYTES)


def test_webhdfs_syncs_where_the_datanode_syncs_on_close(own_hdfs: store_servers.Hdfs) -> None:
    _, web = roots_on(own_hdfs)
    before = own_hdfs.syncs()
    web.store.put_if_absent(web.at("x"), b"1")
    assert own_hdfs.syncs() > before


def test_replication_is_the_servers(hdfs: store_servers.Hdfs) -> None:
    """Neither client sets a replication of its own: the server's `dfs.replication` applies."""
    for root in roots_on(hdfs):
        root.store.put_if_absent(root.at("x"), b"1")
        name = root.at("x").split("/", 3)[3]
        store = HdfsStore(hdfs.url, parse_storage_options({}))
        assert store.client.get_file_info(f"/{name}").replication == 1


def test_commit_without_a_datanode_fails(own_hdfs: store_servers.Hdfs) -> None:
    """Without a DataNode HDFS takes no bytes: an error, no commit; later commits succeed."""
    log = log_at(roots_on(own_hdfs)[0])
    state = created(log)
    own_hdfs.kill_datanode()
    with pytest.raises(StoreError, match=r"not written: .*"):
        append(log, state, (0, 3))
    own_hdfs.kill_and_restart()
    assert log.load().version == 0
    assert append(log, state, (0, 3)).version == 1
