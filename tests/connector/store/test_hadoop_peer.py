"""Hadoop's client, the peer in the benchmark of commits, creates files and replaces none."""

from __future__ import annotations

import pytest
from py4j.protocol import Py4JJavaError

from benchmarks import hadoop_client
from klog.connector.options.storage_options import parse_storage_options
from klog.connector.store.hdfs_store import HdfsStore
from tests.support.kafka_classes import java_errors
from tests.support.store_servers import Hdfs

pytestmark = [pytest.mark.stores]


def test_hadoop_client_puts_as_many_files_as_klog_commits(hdfs: Hdfs) -> None:
    committed: list[int] = []
    turns = hadoop_client.in_turns(hdfs.url, 1, lambda: committed.append(1), 2, 2, 1)
    assert len(committed) == 5
    assert len(turns.ratios) == len(turns.klog) == len(turns.hadoop) == 2
    store = HdfsStore(hdfs.url, parse_storage_options({}))
    entries = store.entries(f"{hdfs.url}/hadoop")
    assert [(entry.name, entry.size_bytes) for entry in entries] == [
        (str(number), hadoop_client.COMMIT_BYTES) for number in range(5)
    ]
    with java_errors(), pytest.raises((Py4JJavaError, FileExistsError)):
        hadoop_client.in_turns(hdfs.url, 1, lambda: None, 1, 1, 0)
    assert [entry.name for entry in store.entries(f"{hdfs.url}/hadoop")] == list("01234")
