"""The peer of the commits' benchmark on HDFS puts what it says, and never over another's file."""

from __future__ import annotations

import pytest
from py4j.protocol import Py4JJavaError

from benchmarks import hadoop_client
from klog.connector.store.hdfs import Hdfs as HdfsStore
from klog.connector.store.storage import storage_of
from tests.java import java_errors
from tests.servers import Hdfs

pytestmark = [pytest.mark.stores]


def test_hadoops_client_puts_as_many_files_as_klog_commits(hdfs: Hdfs) -> None:
    committed: list[int] = []
    turns = hadoop_client.in_turns(hdfs.url, 1, lambda: committed.append(1), 2, 2, 1)
    assert len(committed) == 5
    assert len(turns.ratios) == len(turns.klog) == len(turns.hadoop) == 2
    store = HdfsStore(hdfs.url, storage_of({}))
    found = store.entries(f"{hdfs.url}/hadoop")
    assert [(one.name, one.size_bytes) for one in found] == [
        (str(number), hadoop_client.COMMIT_BYTES) for number in range(5)
    ]
    with java_errors(), pytest.raises((Py4JJavaError, FileExistsError)):
        hadoop_client.in_turns(hdfs.url, 1, lambda: None, 1, 1, 0)
    assert [one.name for one in store.entries(f"{hdfs.url}/hadoop")] == list("01234")
