"""Options of a read: what each value means, and one `OptionError` for each wrong one."""

from __future__ import annotations

import re
import warnings
from typing import Any

import pytest

from klog.connector.options.consumer_strategy import Assign, Subscribe, SubscribePattern
from klog.connector.options.offset_range_limit import (
    EARLIEST,
    LATEST,
    LastOffsets,
    LimitsByPartition,
    MaxTimestampOffset,
    OffsetForAge,
    OffsetForTime,
    PartitionLimit,
    SpecificOffset,
)
from klog.connector.options.option import Use
from klog.connector.options.option_table import OPTION_TABLE
from klog.connector.options.read_columns import COLUMNS, DEFAULT_COLUMNS
from klog.connector.options.read_options import (
    ReadOptions,
    TaskLimits,
    TriggerLimits,
    parse_read_options,
)
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
    (T | {"minPartitions": "12"}, "task_limits", TaskLimits(12)),
    (
        T | {"maxRecordsPerPartition": "7", "maxBytesPerPartition": "64m"},
        "task_limits",
        TaskLimits(0, 7, 64 << 20),
    ),
    (T | {"startingOffsets": "-100"}, "starting", LastOffsets(100)),
    (T | {"startingOffsets": "NOW-10m"}, "starting", OffsetForAge(600_000)),
    (T | {"startingTimestamp": "now"}, "starting", OffsetForAge(0)),
    (T | {"endingTimestamp": "now-2h"}, "ending", OffsetForAge(7_200_000)),
    (T | {"startingOffsets": "1970-01-01T00:00:01.5Z"}, "starting", OffsetForTime(1500)),
    (T | {"startingTimestamp": "1970-01-01T02:00:01+02:00"}, "starting", OffsetForTime(1000)),
    (T | {"startingTimestamp": "1970-01-01T00:00:00.0001Z"}, "starting", OffsetForTime(1)),
    (T | {"startingTimestamp": "-1"}, "starting", LATEST),
    (T | {"startingTimestamp": "-2"}, "starting", EARLIEST),
    (T | {"startingTimestamp": "-3"}, "starting", MaxTimestampOffset()),
    (T | {"startingTimestamp": "-6"}, "starting", OffsetForTime(-6)),
    (
        T | {"startingOffsetsByTimestamp": '{"t":{"0":5,"1":-1}}'},
        "starting",
        by_partition(p0=OffsetForTime(5), p1=LATEST),
    ),
    (
        T
        | {
            "startingOffsetsByTimestamp": '{"t":{"0":5}}',
            "startingOffsetsByTimestampStrategy": "Latest",
        },
        "starting",
        by_partition(p0=OffsetForTime(5, latest_if_no_match=True)),
    ),
    (
        T | {"endingOffsetsByTimestamp": '{"t":{"0":5}}'},
        "ending",
        by_partition(p0=OffsetForTime(5, latest_if_no_match=True)),
    ),
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
    (option,) = [row for row in OPTION_TABLE if row.name == name]
    check_refused(T | {name: "1"}, f"{name}: not supported yet. {option.next_step}")
    assert option.next_step


@pytest.mark.parametrize("name", [name[:-1] for name in PLANNED])
def test_hint_names_no_option_that_is_refused(name: str) -> None:
    with pytest.raises(OptionError) as caught:
        parse_read_options(T | {name: "1"})
    assert not set(PLANNED) & set(re.findall(r"\w+", str(caught.value)))


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
            ("now-5", ["'now-5'"]),
            ("2026-11-01", ["it has no time zone, such as Z"]),
            ("2026-13-01T00:00Z", ["month must be in 1..12"]),
            ("group:g", ["positions of a group are not supported yet"]),
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
        for name in ("minPartitions", "maxRecordsPerPartition")
        for value in ("", "x", "1.5", "0", "-4")
    ),
    *(
        pytest.param(
            T | {name: value},
            [f"{name}: must be a time in ms since 1970, an age", f"got '{value}'"],
            id=f"{name} {value!r}",
        )
        for name in ("startingTimestamp", "endingTimestamp")
        for value in ("", "x", "1.5", "now-1y", "2026-01-01", str(1 << 63))
    ),
    *(
        pytest.param(
            T | {name: value}, [f"{name}: must be JSON of times", *parts], id=f"{name} {value}"
        )
        for name in ("startingOffsetsByTimestamp", "endingOffsetsByTimestamp")
        for value, parts in [
            ("5", ["not a JSON object"]),
            ('{"t":{"0":"5"}}', ["t-0 has '5'"]),
            ('{"t":{"0":1.5}}', ["t-0 has 1.5"]),
            ('{"t":[5]}', ["t has no timestamps by partition"]),
        ]
    ),
    *(
        pytest.param(
            T | {"maxBytesPerPartition": value},
            ["maxBytesPerPartition: must be a size from 1 byte", f"'{value}'"],
            id=f"maxBytesPerPartition {value}",
        )
        for value in ("0", "-1", "1.5m", "1x", "9999999999p")
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
        'startingOffsets: must be "earliest", "latest", JSON, a number of last offsets such as '
        "-100, an age such as now-10m, or a time such as 2026-11-01T00:00:00Z, got 'first'. "
        'Example: {"orders": {"0": 23}}'
    )


def test_error_shows_the_start_of_a_long_value() -> None:
    with pytest.raises(OptionError) as caught:
        parse(startingOffsets="x" * 100_000)
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize("name", ["endingOffsets", "endingTimestamp", "endingOffsetsByTimestamp"])
def test_stream_has_no_end(name: str) -> None:
    check_refused(T | {name: "latest"}, f"{name}: a stream has no end", is_streaming=True)


def test_stream_may_start_at_latest() -> None:
    assert parse_stream(startingOffsets="latest").starting == LATEST
    limits = parse_stream(startingOffsets='{"t":{"0":-1}}').starting
    assert limits == by_partition(p0=LATEST)


def test_timestamp_wins_over_offsets_that_would_be_refused() -> None:
    # So it does in Spark's connector (docs/migrating.md), which does not look at the others.
    for offsets in ("latest", "nonsense"):
        with pytest.warns(UserWarning, match="^startingOffsets: ignored, because"):
            options = parse(startingTimestamp="5", startingOffsets=offsets)
        assert options.starting == OffsetForTime(5)
        assert options.starting_option == "startingTimestamp"
    with pytest.warns(UserWarning, match="^endingOffsets: ignored, because endingTimestamp"):
        options = parse(endingTimestamp="5", endingOffsets="earliest")
    assert options.ending == OffsetForTime(5, latest_if_no_match=True)


def test_time_for_all_partitions_wins_over_times_by_partition() -> None:
    with pytest.warns(UserWarning, match="ignored") as caught:
        options = parse(startingTimestamp="5", startingOffsetsByTimestamp="x", startingOffsets="y")
    assert options.starting == OffsetForTime(5)
    (warning,) = caught
    assert str(warning.message) == (
        "startingOffsetsByTimestamp, startingOffsets: ignored, because startingTimestamp is set"
    )
    with pytest.warns(UserWarning, match="^endingOffsets: ignored, because endingOffsetsByTime"):
        options = parse(endingOffsetsByTimestamp='{"t":{"0":5}}', endingOffsets="y")
    assert options.ending_option == "endingOffsetsByTimestamp"


def test_limits_of_a_trigger() -> None:
    options = parse_stream(
        maxOffsetsPerTrigger="0", minOffsetsPerTrigger="0", maxTriggerDelay="90s"
    )
    assert options.trigger_limits == TriggerLimits(0, None, 0, 90_000)
    options = parse_stream(maxBytesPerTrigger="1g", minOffsetsPerTrigger="5")
    assert options.trigger_limits == TriggerLimits(None, 1 << 30, 5, 900_000)


@pytest.mark.parametrize(
    ("options", "part"),
    [
        (
            {"maxOffsetsPerTrigger": "-1"},
            "maxOffsetsPerTrigger: must be a whole number of 64 bits from 0",
        ),
        (
            {"maxOffsetsPerTrigger": "x"},
            "maxOffsetsPerTrigger: must be a whole number of 64 bits from 0",
        ),
        ({"maxBytesPerTrigger": "0"}, "maxBytesPerTrigger: must be a size"),
        ({"maxTriggerDelay": "soon"}, "maxTriggerDelay: must be a duration such as"),
        (
            {"maxOffsetsPerTrigger": "5", "minOffsetsPerTrigger": "6"},
            "minOffsetsPerTrigger: must not be above maxOffsetsPerTrigger, got 6 and 5",
        ),
    ],
)
def test_wrong_limits_of_a_trigger(options: dict[str, str], part: str) -> None:
    check_refused(T | options, part, is_streaming=True)


def test_limits_of_a_trigger_have_no_effect_on_a_batch() -> None:
    """Spark does not look at their values either."""
    with pytest.warns(UserWarning, match="Trigger, maxTriggerDelay: ignored") as caught:
        options = parse(maxOffsetsPerTrigger="x", maxTriggerDelay="y")
    assert len(caught) == 1
    assert options == parse()


@pytest.mark.parametrize("strategy", ["latest", "LATEST", "error"])
def test_strategy_decides_about_a_time_after_the_last_record(strategy: str) -> None:
    options = parse(startingTimestamp="5", startingOffsetsByTimestampStrategy=strategy)
    assert options.starting == OffsetForTime(5, latest_if_no_match=strategy.lower() == "latest")
