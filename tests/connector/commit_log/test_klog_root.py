"""A root: its format, made once, and never in a broker's directory."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from klog.connector.commit_log.commit_info import random_uuid, this_engine
from klog.connector.commit_log.format_versions import MAX_FORMAT
from klog.connector.commit_log.klog_root import KlogRoot
from klog.connector.commit_log.root_discovery import find_or_create_root, find_root
from klog.connector.commit_log.topic_admin import TopicAdmin
from klog.errors import KlogError, OptionError, UnsupportedFormatError
from tests.connector.commit_log.memory_logs import ROOT, CountingStore

FORMAT_FILE = f"{ROOT}/_klog/format.json"
NEWER = {"format": 1, "since": "0.1.0", "writerFormat": MAX_FORMAT + 1, "writerSince": "3.2.1"}


def test_a_topic_of_a_newer_klog(topics: TopicAdmin, store: CountingStore) -> None:
    topics.create("orders")
    path = f"{ROOT}/_klog/topics/orders/topic.json"
    fields = json.loads(store.files[path])
    assert fields == NEWER | {"writerFormat": 1, "writerSince": "0.1.0"}
    store.files[path] = json.dumps(NEWER).encode()
    assert topics.describe("orders").version == 0  # It can be read.
    writes: list[Callable[[], object]] = [
        lambda: topics.delete("orders"),
        lambda: topics.create("orders"),
        lambda: topics.alter_config("orders", {}),
    ]
    for write in writes:
        with pytest.raises(UnsupportedFormatError, match=r"topic\.json: .* install klog 3\.2\.1"):
            write()
    store.files[path] = json.dumps(NEWER | {"format": MAX_FORMAT + 1, "since": "3.0.0"}).encode()
    with pytest.raises(UnsupportedFormatError, match=r"reads up to 4; install klog 3\.0\.0"):
        topics.describe("orders")


def test_a_root_of_a_newer_klog(topics: TopicAdmin, store: CountingStore) -> None:
    topics.create("orders")
    fields = json.loads(store.files[FORMAT_FILE])
    store.files[FORMAT_FILE] = json.dumps(fields | NEWER).encode()
    root = find_root(ROOT)
    assert root is not None
    assert TopicAdmin(root).names() == ["orders"]
    with pytest.raises(UnsupportedFormatError, match=r"format\.json: .* to write, install klog 3"):
        TopicAdmin(root).create("payments")
    store.files[FORMAT_FILE] = json.dumps(fields | {"format": 9, "since": "9.0.0"}).encode()
    with pytest.raises(UnsupportedFormatError, match=r"format\.json: it has format 9.*klog 9\.0"):
        find_root(ROOT)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "it is not JSON"),
        (b"[]", "it is not a JSON object"),
        (b"{}", "its format is None"),
        (b'{"format": 1}', "its clusterId is 'None'"),
        (b'{"format": 1, "writerFormat": "2", "clusterId": "x"}', "its writerFormat is '2'"),
        (b'{"format": 1, "clusterId": 7}', "its clusterId is '7'"),
        (
            b'{"format": 1, "clusterId": "x", "config": {"num.partitions": "100001"}}',
            "its num.partitions is '100001'",
        ),
        (b'{"format": 1, "clusterId": "x", "config": {"num.partitions": 4}}', "partitions is '4'"),
        (b"[" * 100_000, "it is not JSON"),
    ],
)
def test_a_malformed_format_file_is_refused(store: CountingStore, data: bytes, words: str) -> None:
    store.files[FORMAT_FILE] = data
    with pytest.raises(UnsupportedFormatError, match=f"{FORMAT_FILE}: .*{words}"):
        find_root(ROOT)


@pytest.mark.parametrize("name", ["orders-0/00000000000000000000.log", "meta.properties"])
def test_nothing_is_written_into_a_brokers_directory(store: CountingStore, name: str) -> None:
    store.files[f"{ROOT}/{name}"] = b""
    with pytest.raises(OptionError, match="has a broker's files"):
        find_or_create_root(ROOT, "a cluster")
    assert list(store.files) == [f"{ROOT}/{name}"]


def test_a_file_is_not_a_root(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(OptionError, match="file is a file; give a directory"):
        find_or_create_root(str(file), "a cluster")


def test_a_root_is_created_once(store: CountingStore) -> None:
    root = find_or_create_root(ROOT, "a cluster", num_partitions=2)
    again = find_or_create_root(ROOT, "another", num_partitions=5)
    assert (again.cluster_id, again.num_partitions) == ("a cluster", 2)
    assert again == root
    assert find_root("/elsewhere") is None


def test_ids_are_kafkas_and_none_is_taken_for_an_option() -> None:
    ids = {random_uuid() for _ in range(2000)}
    assert len(ids) == 2000
    assert all(re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_-]{21}", text) for text in ids)


def test_an_engine_says_who(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("getpass.getuser", lambda: "alice")
    monkeypatch.setattr("platform.node", lambda: "mill")
    assert re.fullmatch(r"klog [0-9.]+, alice@mill", this_engine())
    assert re.fullmatch(r"klog [0-9.]+ by spark 4, alice@mill", this_engine("spark 4"))

    def nobody() -> str:
        raise KeyError

    monkeypatch.setattr("getpass.getuser", nobody)
    assert this_engine().endswith(", ?@mill")


@pytest.mark.parametrize("lost", ["_klog/format.json", "_klog/topics/orders/topic.json"])
def test_a_lost_description_is_an_error_when_it_is_needed(
    topics: TopicAdmin, store: CountingStore, lost: str
) -> None:
    topics.create("orders")
    del store.files[f"{ROOT}/{lost}"]
    before = dict(store.files)
    for needs in (
        lambda: TopicAdmin(existing_root()).describe("orders"),
        lambda: TopicAdmin(existing_root()).alter_config("orders", {}),
        lambda: TopicAdmin(find_or_create_root(ROOT, "another")).describe("orders"),
        lambda: TopicAdmin(existing_root()).ensure("orders"),
    ):
        with pytest.raises(KlogError, match=f"{lost}: this file is lost: .*Restore it from a copy"):
            needs()
    assert store.files == before


def existing_root() -> KlogRoot:
    root = find_root(ROOT)
    assert root is not None
    return root


def test_a_directory_that_is_being_adopted_is_a_brokers(store: CountingStore) -> None:
    store.files = {f"{ROOT}/_klog/topics/orders/topic.json": b"{}"}
    store.files[f"{ROOT}/_klog/adopting.json"] = b"{}"
    assert find_root(ROOT) is None
