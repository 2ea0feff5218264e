"""What docs/durability.md says of acknowledged commits on HDFS: that they outlive kills, and syncs.

A kill leaves what the kernel holds, so it is no loss of power: for that the syncs are counted.
"""

from __future__ import annotations

import getpass
import secrets
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from klog.connector.log.paths import TopicPaths
from klog.connector.log.topic_log import TopicLog
from klog.connector.store.contract import Put
from klog.connector.store.hdfs import Hdfs as HdfsStore
from klog.connector.store.storage import storage_of
from klog.errors import KlogError
from tests import servers
from tests.commits.logs import TOPIC, Clock, append, created
from tests.stores.places import Place, place_at

pytestmark = [pytest.mark.stores]

SYNC_ON_CLOSE = {"dfs.datanode.synconclose": "true"}
LATE = "dfs.blockreport.incremental.intervalMsec"
COMMITS = 5


@pytest.fixture(scope="module")
def own_hdfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[servers.Hdfs]:
    """An HDFS to be killed, which syncs each block that is closed."""
    with servers.Hdfs(tmp_path_factory.mktemp("killed"), SYNC_ON_CLOSE) as running:
        yield running


def places(server: servers.Hdfs) -> list[Place]:
    name = secrets.token_hex(8)
    user = storage_of({"storage.user": getpass.getuser()})
    return [
        place_at(f"{server.url}/{name}/native"),
        place_at(f"{server.web_url}/{name}/web", user),
    ]


def log_at(place: Place) -> TopicLog:
    return TopicLog(place.store, TopicPaths(place.path, TOPIC), Clock(), lambda tries: None)


def test_an_acknowledged_commit_outlives_a_kill(own_hdfs: servers.Hdfs) -> None:
    """NameNode and DataNode are killed the moment that the last answer is there.

    The commit is there, and its number is taken: the NameNode had it in its own log on disk.
    """
    logs = [log_at(place) for place in places(own_hdfs)]
    states = [append(log, created(log), (0, 3)) for log in logs]
    own_hdfs.kill_and_restart()
    for log, state in zip(logs, states, strict=True):
        assert log.store.put_if_absent(log.paths.commit(1), b"another") is Put.EXISTS
        assert log.load().version == state.version == 1
        assert log.load().log_end == (3, 0)
        assert append(log, state, (0, 4)).log_end == (7, 0)


def test_files_that_close_before_they_are_reported(tmp_path: Path) -> None:
    """Who reads one waits for the report; all outlive a kill."""
    settings = {**servers.CLOSED_EARLY, LATE: "700"}
    waited: list[int] = []

    def wait(tries: int) -> None:
        waited.append(tries)
        time.sleep(0.1)

    with servers.Hdfs(tmp_path, settings, datanodes=2) as server:
        own = places(server)
        native, web = map(log_at, own)
        patient = HdfsStore(server.url, storage_of({}), wait=wait)
        readers = [log_at(replace(own[0], store=patient)), web]
        for log, reader in zip((native, web), readers, strict=True):
            state = created(log)
            for number in range(1, COMMITS + 1):
                state = append(log, state, (0, 3))
                assert reader.load().version == state.version == number
        assert waited
        server.kill_and_restart()
        for log in (native, web):
            assert (log.load().version, log.load().log_end) == (COMMITS, (3 * COMMITS, 0))


def test_a_block_that_is_never_reported_is_told(tmp_path: Path) -> None:
    # With a heartbeat goes what there is to report.
    late = {LATE: "600000", "dfs.heartbeat.interval": "600"}
    with servers.Hdfs(tmp_path, servers.CLOSED_EARLY | late, datanodes=2) as server:
        store = HdfsStore(server.url, storage_of({}), wait=lambda tries: None)
        path = unreported(store, server.url)
        with pytest.raises(KlogError, match=r"/\d: not read: it has 7 bytes, .* blocks of 0\. Try"):
            store.read(path)
        with pytest.raises(KlogError, match="blocks of 0"):
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


def test_hdfs_native_syncs_and_webhdfs_does_not(hdfs: servers.Hdfs) -> None:
    native, web = places(hdfs)
    before = hdfs.syncs()
    native.store.put_if_absent(native.at("x"), b"1")
    synced = hdfs.syncs()
    assert synced > before
    web.store.put_if_absent(web.at("x"), b"1")
    assert hdfs.syncs() == synced


def test_every_block_of_a_segment_is_synced(hdfs: servers.Hdfs) -> None:
    native, _ = places(hdfs)
    before = hdfs.syncs()
    native.store.put(native.at("x"), [bytes(1 << 20)] * 9)
    assert hdfs.syncs() - before >= 3 == -(-(9 << 20) // servers.BLOCK_BYTES)


def test_webhdfs_syncs_where_the_datanode_syncs_on_close(own_hdfs: servers.Hdfs) -> None:
    _, web = places(own_hdfs)
    before = own_hdfs.syncs()
    web.store.put_if_absent(web.at("x"), b"1")
    assert own_hdfs.syncs() > before


def test_the_servers_replication_is_taken(hdfs: servers.Hdfs) -> None:
    """Neither client asks for copies of its own: the server's `dfs.replication` holds."""
    for place in places(hdfs):
        place.store.put_if_absent(place.at("x"), b"1")
        name = place.at("x").split("/", 3)[3]
        store = HdfsStore(hdfs.url, storage_of({}))
        assert store.client.get_file_info(f"/{name}").replication == 1


def test_nobody_to_keep_it_is_no_acknowledgement(own_hdfs: servers.Hdfs) -> None:
    """Without its DataNode HDFS takes no bytes: an error, no commit, and later it goes on."""
    log = log_at(places(own_hdfs)[0])
    state = created(log)
    own_hdfs.kill_datanode()
    with pytest.raises(KlogError, match=r"not written: .*"):
        append(log, state, (0, 3))
    own_hdfs.kill_and_restart()
    assert log.load().version == 0
    assert append(log, state, (0, 3)).version == 1
