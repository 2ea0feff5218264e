"""Options of a read: what each value means, and one `OptionError` for each wrong one."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

from klog.connector.options.consumer_strategy import Assign, Subscribe, SubscribePattern
from klog.connector.options.offset_range_limit import (
    EARLIEST,
    LATEST,
    LimitsByPartition,
    OffsetForTime,
    PartitionLimit,
    SpecificOffset,
)
from klog.connector.options.option import Use
from klog.connector.options.option_table import OPTION_TABLE
from klog.connector.options.read_columns import COLUMNS, DEFAULT_COLUMNS
from klog.connector.options.read_options import ReadOptions, parse_read_options
from klog.errors import OptionError
from klog.logformat.topic_partition import TopicPartition

T = {"subscribe": "t"}
SUPPORTED = [row.name for row in OPTION_TABLE if row.use is Use.READ and row.is_supported]
PLANNED = [row.name for row in OPTION_TABLE if not row.is_supported]


def parse(**options: str) -> ReadOptions:
    return parse_read_options(T | options)


def parse_stream(**options: str) -> ReadOptions:
    return parse_read_options(T | options, is_streaming=True)


def by_partition(**limits: PartitionLimit) -> LimitsByPartition:
    """Return limits of partitions of topic t, named p0, p1, ..."""
    return LimitsByPartition(
        {TopicPartition("t", int(name[1:])): limit for name, limit in limits.items()}
    )


def check_refused(options: dict[str, str], *parts: str, is_streaming: bool = False) -> None:
    with pytest.raises(OptionError) as caught:
        parse_read_options(options, is_streaming=is_streaming)
    for part in parts:
        assert part in str(caught.value)


def test_defaults() -> None:
    options = parse()
    assert options == ReadOptions(Subscribe(("t",)))
    assert (options.starting, options.ending) == (EARLIEST, LATEST)
    assert options.committed_only
    assert options.fail_on_data_loss
    assert options.columns == DEFAULT_COLUMNS
    assert not options.is_streaming
    assert parse_stream() == ReadOptions(Subscribe(("t",)), starting=LATEST, is_streaming=True)


VALUES = [
    ({"subscribe": " a, b ,,a"}, "consumer_strategy", Subscribe(("a", "b"))),
    (
        {"assign": '{"a":[1,0,1],"b":[2.0]}'},
        "consumer_strategy",
        Assign((TopicPartition("a", 1), TopicPartition("a", 0), TopicPartition("b", 2))),
    ),
    (T | {"startingOffsets": " EARLIEST "}, "starting", EARLIEST),
    (
        T | {"startingOffsets": '{"t":{"0":23,"1":-2}}'},
        "starting",
        by_partition(p0=SpecificOffset(23), p1=EARLIEST),
    ),
    (T | {"startingOffsets": ' {"t":{"0":3.0}} '}, "starting", by_partition(p0=SpecificOffset(3))),
    (T | {"startingOffsets": "{}"}, "starting", by_partition()),
    (T | {"endingOffsets": "Latest"}, "ending", LATEST),
    (T | {"endingOffsets": '{"t":{"0":-1}}'}, "ending", by_partition(p0=LATEST)),
    (T | {"startingTimestamp": " 1500 "}, "starting", OffsetForTime(1500)),
    (T | {"endingTimestamp": "1600"}, "ending", OffsetForTime(1600, latest_if_no_match=True)),
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
]


@pytest.mark.parametrize(("options", "field", "value"), VALUES)
def test_values(options: dict[str, str], field: str, value: Any) -> None:
    assert getattr(parse_read_options(options), field) == value


@pytest.mark.parametrize("name", ["startingOffsets", "STARTINGOFFSETS", "startingoffsets"])
def test_names_have_any_case(name: str) -> None:
    limit = by_partition(p0=SpecificOffset(1))
    assert parse(**{name: '{"t":{"0":1}}'}).starting == limit


def test_pattern_is_a_regular_expression() -> None:
    strategy = parse_read_options({"subscribePattern": "a|b"}).consumer_strategy
    assert isinstance(strategy, SubscribePattern)
    assert strategy.pattern.search("xbx")


@pytest.mark.parametrize(
    ("name", "nearest"),
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
def test_unknown_option_names_the_nearest(name: str, nearest: str) -> None:
    message = f"{name.lower()}: unknown read option. Did you mean {nearest}?"
    check_refused(T | {name: "x"}, message)


def test_unknown_option_like_no_other_lists_all() -> None:
    check_refused(T | {"zzz": "x"}, f"zzz: unknown read option. Use one of {', '.join(SUPPORTED)}")


@pytest.mark.parametrize("name", PLANNED)
def test_planned_option_is_refused_by_name(name: str) -> None:
    check_refused(T | {name: "1"}, f"{name}: not supported yet. Leave it out")


def test_options_of_a_client_are_one_warning() -> None:
    options = {
        "kafka.bootstrap.servers": "h:9092",
        "kafka.security.protocol": "SSL",
        "kafka.group.id": "g",
        "kafkaConsumer.pollTimeoutMs": "5",
        "fetchOffset.numRetries": "3",
        "groupIdPrefix": "p",
    }
    with pytest.warns(UserWarning, match="have no effect") as caught:
        parsed = parse(**options)
    assert len(caught) == 1
    assert all(name.lower() in str(caught[0].message) for name in options)
    assert parsed == parse()


def test_options_with_an_effect_do_not_warn() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        parse(**{"kafka.isolation.level": "read_committed", "path": "x", "paths": "[]"})


WRONG = [
    pytest.param({}, ["must set exactly one, got none"], id="no subscription"),
    pytest.param(
        T | {"assign": '{"t":[0]}'},
        ["must set exactly one, got subscribe and assign"],
        id="two subscriptions",
    ),
    pytest.param({"subscribe": " , "}, ["subscribe: must be one or more topics"], id="no topic"),
    pytest.param(
        {"subscribePattern": "("},
        ["subscribePattern: must be a regular expression", "'('"],
        id="not a regular expression",
    ),
    pytest.param({"assign": "t"}, ["assign: must be JSON", "not JSON"], id="assign not JSON"),
    pytest.param({"assign": "[" * 1_000_000}, ["assign:", "not JSON"], id="assign deep JSON"),
    pytest.param({"assign": "[1]"}, ["assign:", "not a JSON object"], id="assign a list"),
    pytest.param({"assign": "{}"}, ["assign:", "names no partition"], id="assign nothing"),
    pytest.param({"assign": '{"t":[]}'}, ["assign:", "names no partition"], id="assign no number"),
    pytest.param({"assign": '{"t":0}'}, ["assign:", "t has no list"], id="assign no list"),
    pytest.param({"assign": '{"t":["0"]}'}, ["assign:", "t has no list"], id="assign strings"),
    pytest.param({"assign": '{"t":[true]}'}, ["assign:"], id="assign true"),
    pytest.param({"assign": '{"t":[0.5]}'}, ["assign:"], id="assign a half"),
    *(
        pytest.param(T | {name: value}, [f"{name}: must be ", *parts], id=f"{name} {value}")
        for name in ("startingOffsets", "endingOffsets")
        for value, parts in [
            ("", ["got ''"]),
            ("newest", ["got 'newest'. Example: {"]),
            ("5", ["'5'"]),
            ("{", ["not JSON"]),
            ('{"t":5}', ["t has no offsets"]),
            ('{"t":{"0":"3"}}', ["t-0 has '3'"]),
            ('{"t":{"0":1.5}}', ["t-0 has 1.5"]),
            ('{"t":{"0":true}}', ["t-0 has True"]),
            ('{"t":{"0":null}}', ["t-0 has None"]),
            ('{"t":{"0":-3}}', ["t-0 has -3"]),
            ('{"t":{"a":3}}', ["no partition a"]),
            ('{"t":{"-1":3}}', ["no partition -1"]),
            ('{"t":{"0":NaN}}', ["t-0 has nan"]),
            ('{"t":{"0":1e999}}', ["t-0 has inf"]),
        ]
    ),
    pytest.param(
        T | {"startingOffsets": "latest"},
        ["startingOffsets: must not be latest (-1)", "Use earliest or an offset"],
        id="starting at latest",
    ),
    pytest.param(
        T | {"startingOffsets": '{"t":{"0":-1}}'},
        ["startingOffsets: must not be latest (-1)"],
        id="starting at -1",
    ),
    pytest.param(
        T | {"endingOffsets": "earliest"},
        ["endingOffsets: must not be earliest (-2)", "Use latest or an offset"],
        id="ending at earliest",
    ),
    pytest.param(
        T | {"endingOffsets": '{"t":{"0":-2}}'},
        ["endingOffsets: must not be earliest (-2)"],
        id="ending at -2",
    ),
    *(
        pytest.param(
            T | {name: value},
            [f"{name}: must be a whole number", f"got '{value}'"],
            id=f"{name} {value!r}",
        )
        for name in ("startingTimestamp", "endingTimestamp", "minPartitions")
        for value in ("", "x", "1.5", "now", "2026-01-01")
    ),
    *(
        pytest.param(
            T | {"minPartitions": value},
            ["minPartitions: must be a whole number from 1", f"'{value}'"],
            id=f"minPartitions {value}",
        )
        for value in ("0", "-4")
    ),
    *(
        pytest.param(
            T | {name: value},
            [f"{name}: must be true or false, got '{value}'"],
            id=f"{name} {value!r}",
        )
        for name in ("includeHeaders", "failOnDataLoss")
        for value in ("yes", "maybe", "1", "", " true")
    ),
    *(
        pytest.param(
            T | {name: value},
            [f"isolationLevel: must be one of read_committed, read_uncommitted, got '{value}'"],
            id=f"{name} {value!r}",
        )
        for name in ("isolationLevel", "kafka.isolation.level")
        for value in ("READ_COMMITTED", "committed", "")
    ),
    pytest.param(
        T | {"isolationLevel": "read_committed", "kafka.isolation.level": "read_uncommitted"},
        ["isolationLevel: must agree with kafka.isolation.level"],
        id="isolation levels disagree",
    ),
    pytest.param(
        T | {"columns": "key,valu"},
        ["columns: must be one or more of key, value,", "no column 'valu'"],
        id="unknown column",
    ),
    pytest.param(T | {"columns": ""}, ["columns: must be one or more of"], id="no columns"),
    pytest.param(
        T | {"columns": "headers"}, ["columns: headers needs includeHeaders=true"], id="no headers"
    ),
    pytest.param(
        T | {"startingOffsetsByTimestampStrategy": "x"},
        ["startingOffsetsByTimestampStrategy: must be one of error, latest, got 'x'"],
        id="strategy",
    ),
]


@pytest.mark.parametrize(("options", "parts"), WRONG)
def test_error_names_its_option_and_what_it_must_be(
    options: dict[str, str], parts: list[str]
) -> None:
    check_refused(options, *parts)


def test_error_has_the_form_of_the_glossary() -> None:
    with pytest.raises(OptionError) as caught:
        parse(startingOffsets="first")
    assert str(caught.value) == (
        'startingOffsets: must be "earliest", "latest" or JSON, got \'first\'. '
        'Example: {"orders": {"0": 23}}'
    )


def test_error_shows_the_start_of_a_long_value() -> None:
    with pytest.raises(OptionError) as caught:
        parse(startingOffsets="x" * 100_000)
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize("name", ["endingOffsets", "endingTimestamp"])
def test_stream_has_no_end(name: str) -> None:
    check_refused(T | {name: "latest"}, f"{name}: a stream has no end", is_streaming=True)


def test_stream_may_start_at_latest() -> None:
    assert parse_stream(startingOffsets="latest").starting == LATEST
    limits = parse_stream(startingOffsets='{"t":{"0":-1}}').starting
    assert limits == by_partition(p0=LATEST)


def test_timestamp_wins_over_offsets_that_would_be_refused() -> None:
    # So it does in Spark's connector (docs/migrating.md).
    options = parse(startingTimestamp="5", startingOffsets="latest")
    assert options.starting == OffsetForTime(5)
    options = parse(endingTimestamp="5", endingOffsets="earliest")
    assert options.ending == OffsetForTime(5, latest_if_no_match=True)


@pytest.mark.parametrize("strategy", ["latest", "LATEST", "error"])
def test_strategy_decides_about_a_time_after_the_last_record(strategy: str) -> None:
    options = parse(startingTimestamp="5", startingOffsetsByTimestampStrategy=strategy)
    assert options.starting == OffsetForTime(5, latest_if_no_match=strategy.lower() == "latest")
