"""`klog topics create`, `alter`, `delete` and what `list` and `describe` show of a klog root."""

from __future__ import annotations

import json
import re
import shutil

import pytest

from tests.corpus import scene
from tests.support.command_root import Root
from tests.support.klog_command import Klog


def test_create_makes_the_root_and_the_topic(on_root: Root) -> None:
    result = on_root.does("topics", "create", "--topic", "orders", "--partitions", "2")
    assert result == f"Created klog root {on_root.path}.\nCreated topic orders.\n"
    assert on_root.does("topics", "create", "--topic", "x") == "Created topic x.\n"
    assert on_root.state("orders").partitions == 2
    assert on_root.state("x").partitions == 1
    assert on_root.does("topics", "list") == "orders\nx\n"


def test_configs_are_given_one_by_one(on_root: Root) -> None:
    configs = ("--config", "cleanup.policy=compact,delete", "--config", "retention.ms=5")
    on_root.does("topics", "create", "--topic", "orders", *configs)
    expected = {"cleanup.policy": "compact,delete", "retention.ms": "5"}
    assert on_root.state("orders").config == expected


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--topic", "a b"], "'a b' is not a topic name"),
        (["--topic", "x", "--config", "flush.ms=1"], "durable when its commit is acknowledged"),
        (["--topic", "x", "--config", "retention=1"], "did you mean retention.ms?"),
    ],
)
def test_what_is_wrong_makes_no_root(on_root: Root, arguments: list[str], words: str) -> None:
    assert words in on_root.refuses("topics", "create", *arguments)
    assert not on_root.path.exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["create", "--topic", "x", "--config", "retention.ms"], "is not NAME=VALUE"),
        (
            ["create", "--topic", "x", "--partitions", "many"],
            "must be a number of partitions from 1 to 100000",
        ),
        (["create", "--topic", "x", "--partitions", "0"], "must be a number of partitions from 1"),
        (["create", "--partitions", "1"], "required: -t/--topic"),
        (["alter", "--topic", "x"], "required: --partitions"),
        (["delete", "--topic", "x", "--if-exist"], "did you mean --if-exists?"),
    ],
)
def test_wrong_usage(on_root: Root, arguments: list[str], words: str) -> None:
    assert words in on_root.refuses("topics", *arguments, code=2)


def test_a_topic_that_is_there(on_root: Root) -> None:
    on_root.does("topics", "create", "--topic", "orders", "--partitions", "2")
    again = ("topics", "create", "--topic", "orders", "--partitions", "7")
    assert "topic orders already exists" in on_root.refuses(*again)
    assert on_root.does(*again, "--if-not-exists") == "Topic orders already exists.\n"
    assert on_root.state("orders").partitions == 2
    new = ("topics", "create", "--topic", "new", "--if-not-exists")
    assert on_root.does(*new) == "Created topic new.\n"


def test_alter_and_delete(on_root: Root) -> None:
    on_root.does("topics", "create", "--topic", "orders")
    more = ("topics", "alter", "--topic", "orders", "--partitions", "3")
    assert on_root.does(*more) == "Topic orders has 3 partitions.\n"
    assert "has 3 partitions, which cannot become 3" in on_root.refuses(*more)
    delete = ("topics", "delete", "--topic", "orders")
    assert on_root.does(*delete).startswith("Deleted topic orders. `klog vacuum` frees its space")
    assert "topic orders of " in on_root.refuses(*delete)
    for command in (delete, more):
        assert on_root.does(*command, "--if-exists") == "There is no topic orders.\n"
    assert on_root.does("topics", "list") == ""
    assert on_root.does("topics", "describe") == ""


def test_changes_as_json(on_root: Root) -> None:
    create = ("topics", "create", "--topic", "orders", "--config", "retention.ms=5", "--json")
    created = json.loads(on_root.does(*create))
    assert created == {
        "topic": "orders",
        "topicId": on_root.state("orders").topic_id,
        "version": 0,
        "partitionCount": 1,
        "configs": {"retention.ms": "5"},
    }
    deleted = json.loads(on_root.does("topics", "delete", "--topic", "orders", "--json"))
    assert (deleted["topicId"], deleted["version"], deleted["partitionCount"]) == (None, 1, 0)


def test_list_and_describe(on_root: Root) -> None:
    configs = ("--config", "segment.ms=9", "--config", "retention.ms=5")
    on_root.does("topics", "create", "--topic", "orders", "--partitions", "2", *configs)
    on_root.does("topics", "create", "--topic", "payments")
    on_root.append("orders", 1, 3)
    on_root.append("orders", 1, 4)
    topic_id = on_root.state("orders").topic_id
    listed = json.loads(on_root.does("topics", "list", "--topic", "ord.*", "--json"))
    assert listed == [
        {"topic": "orders", "topicId": topic_id, "partitions": [0, 1], "internal": False}
    ]
    assert on_root.does("topics", "describe", "--topic", "orders") == (
        f"Topic: orders\tTopicId: {topic_id}\tPartitionCount: 2"
        "\tConfigs: retention.ms=5,segment.ms=9\n"
        "\tPartition: 0\tLogStartOffset: 0\tLogEndOffset: 0\tLastStableOffset: 0"
        "\tSegments: 0\tBytes: 0\n"
        "\tPartition: 1\tLogStartOffset: 0\tLogEndOffset: 7\tLastStableOffset: 7"
        "\tSegments: 2\tBytes: 49\n"
    )
    (orders, payments) = json.loads(on_root.does("topics", "describe", "--json"))
    assert orders["topicId"] == topic_id
    assert orders["configs"] == {"retention.ms": "5", "segment.ms": "9"}
    assert orders["partitions"][1] == {
        "partition": 1,
        "logStartOffset": 0,
        "logEndOffset": 7,
        "lastStableOffset": 7,
        "segments": 2,
        "bytes": 49,
    }
    assert (payments["topic"], payments["configs"]) == ("payments", {})


def test_a_topic_that_is_not_there(on_root: Root) -> None:
    for topic in ("orders", "payments"):
        on_root.does("topics", "create", "--topic", topic)
    on_root.does("topics", "delete", "--topic", "payments")
    describe = ("topics", "describe", "--topic")
    assert "no topic matches zzz; the topics here are orders\n" in on_root.refuses(*describe, "zzz")
    assert "topic payments of " in on_root.refuses(*describe, "payments")
    assert "was deleted" in on_root.refuses(*describe, "payments")
    for words in (["alter", "--partitions", "3"], ["delete"]):
        refused = on_root.refuses("topics", *words, "--topic", "oders")
        assert "there is no topic oders" in refused
        assert "did you mean orders?" in refused


def test_a_topic_that_cannot_be_read_leaves_the_others(on_root: Root) -> None:
    for topic in ("a", "b"):
        on_root.does("topics", "create", "--topic", topic)
    on_root.path.joinpath(f"_klog/topics/a/log/{0:020d}.json").write_bytes(b"{}")
    result = on_root.run("topics", "describe")
    assert result.code == 1
    broken, readable, *_ = result.out.decode().splitlines()
    assert broken.startswith("Topic: a\tError: commit ")
    assert readable.startswith("Topic: b\tTopicId: ")
    result = on_root.run("topics", "describe", "--json")
    assert (result.code, "error" in json.loads(result.out)[0]) == (1, True)
    result = on_root.run("topics", "list")
    assert (result.code, result.out) == (1, b"a\nb\n")
    assert "warning: topic a: commit" in result.err


def test_nothing_is_written_among_a_brokers_files(klog: Klog, on_root: Root) -> None:
    source = scene("records").partition_dir("x", 0)
    shutil.copytree(source, on_root.path / source.name)
    before = on_root.files()
    words = "has a broker's files (x-0): klog reads such a directory and writes nothing there"
    assert words in on_root.refuses("topics", "create", "--topic", "orders")
    for verb in (
        ["topics", "alter", "--topic", "x", "--partitions", "3"],
        ["topics", "delete", "--topic", "x"],
        ["configs", "--topic", "x"],
        ["configs", "--topic", "x", "--config", "retention.ms=1"],
        ["history", "--topic", "x"],
        ["vacuum"],
        ["vacuum", "--execute"],
    ):
        assert re.search("is (no|not a) klog root", on_root.refuses(*verb))
    assert on_root.files() == before
    listed = klog("topics", "list", "--root", str(on_root.path))
    assert (listed.code, listed.out) == (0, b"x\n")


def test_a_klog_root_stands_alone(on_root: Root) -> None:
    other = str(scene("records").log_dirs[0])
    create = ("topics", "create", "--topic", "x")
    assert "--root: must name one directory, got " in on_root.refuses(*create, "--root", other)
    on_root.does(*create)
    for verb in (create, ("vacuum",)):
        assert "--root: must name one directory, got " in on_root.refuses(*verb, "--root", other)
    assert "is a klog root. Give it alone" in on_root.refuses("topics", "list", "--root", other)


def test_a_scheme_that_is_not_written(klog: Klog) -> None:
    result = klog("topics", "create", "--topic", "x", "--root", "http://localhost:1/x")
    assert (result.code, result.out) == (1, b"")
    assert result.err.startswith("klog: ")
    assert result.err.count("\n") == 1


def test_a_root_of_a_newer_klog(on_root: Root) -> None:
    on_root.does("topics", "create", "--topic", "x")
    file = on_root.path / "_klog" / "format.json"
    result = json.loads(file.read_bytes())
    file.write_text(json.dumps(result | {"writerFormat": 9, "writerSince": "3.0.0"}))
    assert on_root.does("topics", "list") == "x\n"
    assert "to write, install klog 3.0.0" in on_root.refuses("topics", "delete", "--topic", "x")
    file.write_text(json.dumps(result | {"format": 9, "since": "2.5.0"}))
    for verb in ("list", "describe"):
        assert "install klog 2.5.0 or newer" in on_root.refuses("topics", verb)


def test_repeated_patterns(on_root: Root) -> None:
    for topic in ("a1", "a2", "b1", "c1"):
        on_root.does("topics", "create", "--topic", topic)
    assert on_root.does("topics", "list", "-t", "a.*", "-t", "b1") == "a1\na2\nb1\n"
    described = json.loads(on_root.does("topics", "describe", "-t", "a1,c1", "-t", "b1", "--json"))
    assert [topic["topic"] for topic in described] == ["a1", "b1", "c1"]
    refused = on_root.refuses("topics", "describe", "-t", "x", "-t", "y")
    assert "--topic: no topic matches x or y; the topics here are a1, a2, b1, c1\n" in refused
