"""An `OptionError` for each wrong value of a read option names it and says what it must be."""

from __future__ import annotations

import pytest

from klog.errors import OptionError
from tests.connector.options.parsed_options import T, check_refused, parse

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
    pytest.param(
        {"subscribePattern": " \t"},
        ["subscribePattern: must be a regular expression", "it is empty; .* finds every topic"],
        id="empty pattern",
    ),
    pytest.param({"assign": "t"}, ["assign: must be JSON", "not JSON"], id="assign not JSON"),
    pytest.param({"assign": "[" * 1_000_000}, ["assign:", "not JSON"], id="assign deep JSON"),
    pytest.param({"assign": "[1]"}, ["assign:", "not a JSON object"], id="assign a list"),
    pytest.param({"assign": '{"t":[2147483648]}'}, ["assign:", "32 bits"], id="assign 33 bits"),
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
            ('{"t":{"0":-3}}', ["t-0 has -3: the special offsets are -1 and -2"]),
            ('{"t":{"0":9223372036854775808}}', ["t-0 has 9223372036854775808"]),
            ('{"t":{"2147483648":3}}', ["no partition 2147483648"]),
            ('{"t":{"a":3}}', ["no partition a"]),
            ('{"t":{"-1":3}}', ["no partition -1"]),
            ('{"t":{"\u0663":3}}', ["no partition \u0663"]),
            ('{"t":{"0":0,"00":2}}', ["t-0 is there twice"]),
            ('{"t":{"0":0,"0":2}}', ["0 is there twice"]),
            ('{"t":{"0":0},"t":{"1":2}}', ["t is there twice"]),
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
        T | {"startingOffsets": "-0"},
        ["startingOffsets: must not be -0, with which a batch is empty. Use earliest or an offset"],
        id="starting at the last 0 offsets",
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
        for value in ("", "x", "1.5", "0", "-4", " 5", "1_000", "\u0665", "1" * 30)
    ),
    pytest.param(
        T | {"minPartitions": "2147483648"},
        ["minPartitions: must be a whole number of 32 bits from 1"],
        id="minPartitions of 33 bits",
    ),
    *(
        pytest.param(
            T | {name: value},
            [f"{name}: must be a time in ms since 1970, an age", f"got '{value}'"],
            id=f"{name} {value!r}",
        )
        for name in ("startingTimestamp", "endingTimestamp")
        for value in ("", "x", "1.5", "now-1y", "2026-01-01", str(1 << 63), "-6", "1_000")
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
            ('{"t":{"0":-6}}', ["t-0 has -6: the special times are -1 to -5"]),
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
