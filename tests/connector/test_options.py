"""Options: what they mean, the nearest name, and one `OptionError` for each wrong word."""

from __future__ import annotations

import warnings

import pytest

from klog.connector.options import (
    COLUMNS,
    EARLIEST,
    KNOWN,
    LATER,
    LATEST,
    ReadOptions,
    paths,
    read_options,
)
from klog.errors import OptionError

T = {"subscribe": "t"}


def parsed(**given: str) -> ReadOptions:
    return read_options(T | given)


def of_a_stream(**given: str) -> ReadOptions:
    return read_options(T | given, streaming=True)


def refused(given: dict[str, str], *words: str, streaming: bool = False) -> None:
    with pytest.raises(OptionError) as caught:
        read_options(given, streaming=streaming)
    for word in words:
        assert word in str(caught.value)


def test_defaults() -> None:
    options = parsed()
    assert options == ReadOptions(topics=("t",))
    assert (options.starting, options.ending) == (EARLIEST, LATEST)
    assert options.committed_only
    assert options.fail_on_data_loss
    assert options.columns == COLUMNS[:-1]
    assert of_a_stream().starting == LATEST


@pytest.mark.parametrize(
    ("given", "field", "value"),
    [
        ({"subscribe": " a, b ,,a"}, "topics", ("a", "b")),
        ({"assign": '{"a":[1,0,1],"b":[2.0]}'}, "assigned", (("a", 1), ("a", 0), ("b", 2))),
        (T | {"startingOffsets": " EARLIEST "}, "starting", EARLIEST),
        (
            T | {"startingOffsets": '{"t":{"0":23,"1":-2}}'},
            "starting",
            {("t", 0): 23, ("t", 1): -2},
        ),
        (T | {"startingOffsets": ' {"t":{"0":3.0}} '}, "starting", {("t", 0): 3}),
        (T | {"startingOffsets": "{}"}, "starting", {}),
        (T | {"endingOffsets": "Latest"}, "ending", LATEST),
        (T | {"endingOffsets": '{"t":{"0":-1}}'}, "ending", {("t", 0): -1}),
        (T | {"startingTimestamp": " 1500 "}, "starting_timestamp_ms", 1500),
        (T | {"endingTimestamp": "1600"}, "ending_timestamp_ms", 1600),
        (T | {"isolationLevel": "read_uncommitted"}, "committed_only", False),
        (T | {"kafka.isolation.level": "read_uncommitted"}, "committed_only", False),
        (T | {"kafka.isolation.level": "read_committed"}, "committed_only", True),
        (
            T | {"isolationLevel": "read_committed", "kafka.isolation.level": "read_committed"},
            "committed_only",
            True,
        ),
        (T | {"includeHeaders": "TRUE"}, "columns", COLUMNS),
        (T | {"failOnDataLoss": "False"}, "fail_on_data_loss", False),
        (T | {"minPartitions": "12"}, "min_partitions", 12),
        (T | {"columns": "Offset, VALUE"}, "columns", ("value", "offset")),
        (T | {"columns": "headers", "includeHeaders": "true"}, "columns", ("headers",)),
        (T | {"columns": "timestamptype"}, "columns", ("timestampType",)),
    ],
)
def test_values(given: dict[str, str], field: str, value: object) -> None:
    assert getattr(read_options(given), field) == value


@pytest.mark.parametrize("name", ["startingOffsets", "STARTINGOFFSETS", "startingoffsets"])
def test_names_are_case_insensitive(name: str) -> None:
    assert parsed(**{name: '{"t":{"0":1}}'}).starting == {("t", 0): 1}


def test_a_pattern() -> None:
    pattern = read_options({"subscribePattern": "a|b"}).pattern
    assert pattern is not None
    assert pattern.search("xbx")


@pytest.mark.parametrize(
    ("given", "nearest"),
    [
        ("subscrib", "subscribe"),
        ("subscribePatern", "subscribePattern"),
        ("startingOffset", "startingOffsets"),
        ("staringoffsets", "startingOffsets"),
        ("isolation_level", "isolationLevel"),
        ("minPartition", "minPartitions"),
        ("includeHeader", "includeHeaders"),
        ("failOnDataLos", "failOnDataLoss"),
        ("column", "columns"),
    ],
)
def test_an_unknown_name_is_told_the_nearest(given: str, nearest: str) -> None:
    refused(T | {given: "x"}, f"{given.lower()}: klog has no such option", f"mean {nearest}?")


def test_a_name_like_no_other_is_told_them_all() -> None:
    refused(T | {"zzz": "x"}, "zzz", *KNOWN)


@pytest.mark.parametrize("name", LATER)
def test_names_that_are_not_there_yet(name: str) -> None:
    refused(T | {name: "1"}, f"{name}: this klog does not have it yet")


def test_brokers_options_are_one_warning() -> None:
    given = {
        "kafka.bootstrap.servers": "h:9092",
        "kafka.security.protocol": "SSL",
        "kafka.group.id": "g",
        "kafkaConsumer.pollTimeoutMs": "5",
        "fetchOffset.numRetries": "3",
        "groupIdPrefix": "p",
    }
    with pytest.warns(UserWarning, match="have no effect") as caught:
        options = parsed(**given)
    assert len(caught) == 1
    assert all(name.lower() in str(caught[0].message) for name in given)
    assert options == parsed()


def test_nothing_is_warned_of_without_them() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        parsed(**{"kafka.isolation.level": "read_committed", "path": "x", "paths": "[]"})


WRONG = [
    pytest.param({}, ["exactly one"], id="nothing"),
    pytest.param(T | {"assign": '{"t":[0]}'}, ["exactly one", "subscribe and assign"], id="two"),
    pytest.param({"subscribe": " , "}, ["subscribe:", "no topic"], id="no topic"),
    pytest.param({"subscribePattern": "("}, ["subscribePattern:", "'('"], id="no expression"),
    pytest.param({"assign": "t"}, ["assign:", "not JSON"], id="assign no JSON"),
    pytest.param({"assign": "[" * 1_000_000}, ["assign:", "not JSON"], id="assign a deep one"),
    pytest.param({"assign": "[1]"}, ["assign:", "not a JSON object"], id="assign a list"),
    pytest.param({"assign": "{}"}, ["assign:", "names no partition"], id="assign nothing"),
    pytest.param({"assign": '{"t":[]}'}, ["assign:", "names no partition"], id="assign none"),
    pytest.param({"assign": '{"t":0}'}, ["assign:", "t needs a list"], id="assign no list"),
    pytest.param({"assign": '{"t":["0"]}'}, ["assign:", "t needs a list"], id="assign strings"),
    pytest.param({"assign": '{"t":[true]}'}, ["assign:"], id="assign true"),
    pytest.param({"assign": '{"t":[0.5]}'}, ["assign:"], id="assign a half"),
    *(
        pytest.param(T | {name: value}, [f"{name}:", *words], id=f"{name} {value}")
        for name in ("startingOffsets", "endingOffsets")
        for value, words in [
            ("", ["is empty"]),
            ("newest", ["'newest'"]),
            ("5", ["'5'"]),
            ("{", ["not JSON"]),
            ('{"t":5}', ["t needs offsets"]),
            ('{"t":{"0":"3"}}', ["'3'"]),
            ('{"t":{"0":1.5}}', ["1.5"]),
            ('{"t":{"0":true}}', ["True"]),
            ('{"t":{"0":null}}', ["None"]),
            ('{"t":{"0":-3}}', ["-3"]),
            ('{"t":{"a":3}}', ["partition a"]),
            ('{"t":{"-1":3}}', ["partition -1"]),
            ('{"t":{"0":NaN}}', ["nan"]),
            ('{"t":{"0":1e999}}', ["inf"]),
        ]
    ),
    pytest.param(T | {"startingOffsets": "latest"}, ["startingOffsets:", "latest"], id="latest"),
    pytest.param(
        T | {"startingOffsets": '{"t":{"0":-1}}'}, ["startingOffsets:", "latest"], id="start -1"
    ),
    pytest.param(T | {"endingOffsets": "earliest"}, ["endingOffsets:"], id="end earliest"),
    pytest.param(T | {"endingOffsets": '{"t":{"0":-2}}'}, ["endingOffsets:"], id="end -2"),
    *(
        pytest.param(T | {name: value}, [f"{name}:", f"'{value}'"], id=f"{name} {value!r}")
        for name in ("startingTimestamp", "endingTimestamp", "minPartitions")
        for value in ("", "x", "1.5", "now", "2026-01-01")
    ),
    pytest.param(T | {"minPartitions": "0"}, ["minPartitions:", "0"], id="minPartitions 0"),
    pytest.param(T | {"minPartitions": "-4"}, ["minPartitions:", "-4"], id="minPartitions -4"),
    *(
        pytest.param(T | {name: value}, [f"{name}:", f"'{value}'"], id=f"{name} {value!r}")
        for name in ("includeHeaders", "failOnDataLoss")
        for value in ("yes", "maybe", "1", "", " true")
    ),
    *(
        pytest.param(T | {name: value}, ["isolationLevel", value], id=f"{name} {value!r}")
        for name in ("isolationLevel", "kafka.isolation.level")
        for value in ("READ_COMMITTED", "committed", "")
    ),
    pytest.param(
        T | {"isolationLevel": "read_committed", "kafka.isolation.level": "read_uncommitted"},
        ["isolationLevel", "disagree"],
        id="isolation levels disagree",
    ),
    pytest.param(T | {"columns": "key,valu"}, ["columns:", "'valu'", "value"], id="columns valu"),
    pytest.param(T | {"columns": ""}, ["columns:"], id="no columns"),
    pytest.param(T | {"columns": "headers"}, ["columns:", "includeHeaders"], id="no headers"),
]


@pytest.mark.parametrize(("given", "words"), WRONG)
def test_a_wrong_value_is_one_error_that_names_its_option(
    given: dict[str, str], words: list[str]
) -> None:
    refused(given, *words)


@pytest.mark.parametrize("name", ["endingOffsets", "endingTimestamp"])
def test_a_stream_has_no_end(name: str) -> None:
    refused(T | {name: "latest"}, f"{name}: a stream has no end", streaming=True)


def test_a_stream_may_start_at_latest() -> None:
    assert of_a_stream(startingOffsets="latest").starting == LATEST
    named = of_a_stream(startingOffsets='{"t":{"0":-1}}')
    assert named.starting == {("t", 0): -1}


def test_a_timestamp_wins_over_offsets_that_would_be_refused() -> None:
    # So it does in Spark's connector (docs/migrating.md).
    options = parsed(startingTimestamp="5", startingOffsets="latest")
    assert options.starting_timestamp_ms == 5
    assert parsed(endingTimestamp="5", endingOffsets="earliest").ending_timestamp_ms == 5


@pytest.mark.parametrize("word", ["latest", "LATEST", "error"])
def test_the_strategy_for_a_time_behind_every_record(word: str) -> None:
    options = parsed(startingOffsetsByTimestampStrategy=word)
    assert options.latest_if_no_match == (word.lower() == "latest")
    refused(T | {"startingOffsetsByTimestampStrategy": "x"}, "ByTimestampStrategy", "'x'")


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({"path": "/a"}, ["/a"]),
        ({"PATH": "/a"}, ["/a"]),
        ({"path": "/a, /b,,"}, ["/a", "/b"]),
        ({"path": "/with,comma"}, ["/with,comma"]),
        ({"paths": '["/a","/b,c"]'}, ["/a", "/b,c"]),
        ({"path": "/x", "paths": '["/a"]'}, ["/a"]),
    ],
)
def test_paths(given: dict[str, str], found: list[str]) -> None:
    assert paths(given, lambda path: path == "/with,comma") == found


def test_no_path() -> None:
    for given in ({}, {"path": ""}):
        with pytest.raises(OptionError, match="path: give the log directory"):
            paths(given, lambda path: False)
