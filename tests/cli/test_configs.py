"""`klog configs`: showing and changing configs, with klog's options and with kafka-configs'."""

from __future__ import annotations

import json

import pytest

from tests.support.command_root import Root

CREATE = ("topics", "create", "--topic", "orders", "--config", "retention.ms=5")


def test_it_shows_what_was_given(on_root: Root) -> None:
    on_root.does(*CREATE)
    on_root.does("topics", "create", "--topic", "x")
    output = "Configs for topic orders are:\n  retention.ms=5\n"
    assert on_root.does("configs", "--topic", "orders") == output
    assert on_root.does("configs", "--topic", "orders", "--describe") == output
    assert on_root.does("configs") == f"{output}Configs for topic x are:\n"


def test_it_shows_the_defaults_too(on_root: Root) -> None:
    on_root.does(*CREATE)
    lines = on_root.does("configs", "--topic", "orders", "--all").splitlines()
    assert lines[1:] == sorted(lines[1:])
    assert "  retention.ms=5" in lines
    assert "  segment.bytes=1073741824 (default)" in lines
    assert "  cleanup.policy=delete (default)" in lines
    assert not [line for line in lines if "flush" in line]


@pytest.mark.parametrize(
    "change",
    [
        ["--config", "segment.ms=7", "--config", "cleanup.policy=compact,delete"],
        ["--alter", "--add-config", "segment.ms=7,cleanup.policy=[compact,delete]"],
        ["--add-config", "segment.ms=7", "--config", "cleanup.policy=compact,delete"],
    ],
)
def test_it_sets_and_unsets(on_root: Root, change: list[str]) -> None:
    on_root.does(*CREATE)
    result = on_root.does(
        "configs", "--topic", "orders", *change, "--delete-config", "retention.ms"
    )
    assert result == "Completed updating config for topic orders.\n"
    state = on_root.state("orders")
    assert state.config == {"segment.ms": "7", "cleanup.policy": "compact,delete"}
    assert state.version == 1
    on_root.does("configs", "--topic", "orders", "--delete-config", "segment.ms,cleanup.policy")
    assert on_root.state("orders").config == {}


def test_as_json(on_root: Root) -> None:
    on_root.does(*CREATE)
    result = {
        "topic": "orders",
        "topicId": on_root.state("orders").topic_id,
        "version": 0,
        "configs": {"retention.ms": "5"},
    }
    assert json.loads(on_root.does("configs", "--json")) == [result]
    changed = json.loads(
        on_root.does("configs", "--topic", "orders", "--config", "segment.ms=7", "--json")
    )
    assert changed == result | {"version": 1, "configs": {"retention.ms": "5", "segment.ms": "7"}}
    (complete,) = json.loads(on_root.does("configs", "--all", "--json"))
    assert complete["defaults"]["retention.bytes"] == "-1"
    assert "retention.ms" not in complete["defaults"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--config", "segment.ms=soon"], "segment.ms: must be a whole number"),
        (["--config", "segment.mss=1"], "did you mean segment.ms?"),
        (["--config", "preallocate=true"], "preallocate: does nothing in a klog topic"),
        (["--delete-config", "nope"], "nope: not a topic config; choose one of cleanup.policy"),
    ],
)
def test_refusals(on_root: Root, arguments: list[str], words: str) -> None:
    on_root.does(*CREATE)
    assert words in on_root.refuses("configs", "--topic", "orders", *arguments)


def test_an_unknown_topic_is_refused(on_root: Root) -> None:
    on_root.does(*CREATE)
    error = on_root.refuses("configs", "--config", "a=1", "--topic", "ordres")
    assert "did you mean orders?" in error
    assert on_root.state("orders").version == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--alter", "--topic", "orders"], "--alter: give --config"),
        (["--config", "segment.ms=1"], "--topic: required to change configs"),
        (["--describe", "--topic", "orders", "--config", "segment.ms=1"], "--describe only shows"),
        (["--all", "--topic", "orders", "--config", "segment.ms=1"], "--all shows configs"),
        (["--describe", "--alter"], "not allowed with"),
        (["--config", "segment.ms"], "'segment.ms' is not NAME=VALUE"),
        (["--add-config", "segment.ms=1,x"], "'x' is not NAME=VALUE"),
    ],
)
def test_wrong_usage(on_root: Root, arguments: list[str], words: str) -> None:
    assert words in on_root.refuses("configs", *arguments, code=2)


def test_a_topic_that_cannot_be_read_leaves_the_others(on_root: Root) -> None:
    on_root.does(*CREATE)
    newer = on_root.path / "_klog" / "topics" / "newer" / "topic.json"
    newer.parent.mkdir()
    newer.write_text('{"format": 99, "since": "9.0"}')
    (newer.parent.parent / ".DS_Store").write_bytes(b"left by a desktop")
    result = on_root.run("configs")
    error, *lines = result.out.decode().splitlines()
    assert (result.code, result.err) == (1, "")
    assert error.startswith(f"Error: topic newer: {newer}: ")
    assert "9.0" in error
    assert lines == ["Configs for topic orders are:", "  retention.ms=5"]
    result = on_root.run("configs", "--json", "--all")
    broken, readable = json.loads(result.out)
    assert result.code == 1
    assert broken.keys() == {"topic", "error"}
    assert readable["configs"] == {"retention.ms": "5"}
    assert "9.0" in on_root.refuses("configs", "--topic", "newer")
    assert on_root.does("configs", "--topic", "orders")


def test_several_topics(on_root: Root) -> None:
    for topic in "abc":
        on_root.does("topics", "create", "--topic", topic)
    change = ("configs", "-t", "a,b", "-t", "a", "--config", "segment.ms=7")
    assert on_root.does(*change) == (
        "Completed updating config for topic a.\nCompleted updating config for topic b.\n"
    )
    shown = json.loads(on_root.does("configs", "-t", "a", "-t", "c", "--json"))
    assert [(row["topic"], row["configs"]) for row in shown] == [
        ("a", {"segment.ms": "7"}),
        ("c", {}),
    ]
    lines = on_root.does(*change, "--json").splitlines()
    assert [json.loads(line)["topic"] for line in lines] == ["a", "b"]


def test_a_wrong_name_among_several_changes_nothing(on_root: Root) -> None:
    on_root.does("topics", "create", "--topic", "a")
    change = ("configs", "-t", "a,zzz", "--config", "segment.ms=7")
    assert "there is no topic zzz" in on_root.refuses(*change)
    assert on_root.state("a").version == 0
