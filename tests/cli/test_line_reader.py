"""Lines to records: the cases of Kafka's LineMessageReaderTest, and more."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klog.cli.line_reader import MAX_LINE_BYTES, Lines, parse_line_format, read_lines
from klog.errors import KlogError, OptionError

KEY = {"parse.key": "true"}
HEADERS = {"parse.headers": "true"}
BOTH = {**KEY, **HEADERS}
IGNORING = {"ignore.error": "true"}
H = [("h", b"")]
NULL = {"null.marker": "<NULL>"}

Record = tuple[bytes | None, bytes | None, list[tuple[str, bytes | None]]]


def records(properties: dict[str, str], *lines: bytes, first_line: int = 1) -> list[Record]:
    batch = read_lines(lines, first_line, parse_line_format(properties))
    return [
        (
            row["key"],
            row["value"],
            [(header["key"], header["value"]) for header in row["headers"] or ()],
        )
        for row in batch.to_pylist()
    ]


@pytest.mark.parametrize(
    ("properties", "line", "key", "value", "headers"),
    [
        ({}, b"a\tb", None, b"a\tb", []),
        ({}, b"", None, b"", []),
        ({"parse.key": "yes"}, b"a\tb", None, b"a\tb", []),
        ({"parse.key": " TRUE "}, b"a\tb", b"a", b"b", []),
        (KEY, b"a\tb\tc", b"a", b"b\tc", []),
        (KEY, b"\t", b"", b"", []),
        ({**KEY, "key.separator": "-"}, b"a-b", b"a", b"b", []),
        ({**KEY, "key.separator": "::"}, b"a:::b", b"a", b":b", []),
        ({**KEY, "key.separator": ""}, b"ab", b"", b"ab", []),
        ({**KEY, **IGNORING}, b"ab", None, b"ab", []),
        (HEADERS, b"h:v\tvalue", None, b"value", [("h", b"v")]),
        (HEADERS, b"h:v,h:w:x,i:\tvalue", None, b"value", [("h", b"v"), ("h", b"w:x"), ("i", b"")]),
        (BOTH, b"h:v\tk\tvalue\t", b"k", b"value\t", [("h", b"v")]),
        (BOTH, b":v\tk\tv", b"k", b"v", [("", b"v")]),
        (
            {**BOTH, "headers.delimiter": "!", "headers.separator": "&", "key.separator": "#"},
            b"h:v&g:w!k#v",
            b"k",
            b"v",
            [("h", b"v"), ("g", b"w")],
        ),
        ({**HEADERS, "headers.key.separator": "=>"}, b"h=>v\tx", None, b"x", [("h", b"v")]),
        # A separator of headers is a regular expression; empty headers at the end are none.
        ({**HEADERS, "headers.separator": r"\|+"}, b"h:||g:|\t", None, b"", [*H, ("g", b"")]),
        (HEADERS, b",\tx", None, b"x", []),
        # With errors ignored, a record lacks the part before a missing separator.
        ({**BOTH, **IGNORING}, b"value", None, b"value", []),
        ({**BOTH, **IGNORING}, b"k\tvalue", None, b"value", [("k", None)]),
        ({**BOTH, **IGNORING}, b"h\tk\tv", b"k", b"v", [("h", None)]),
        ({**HEADERS, **IGNORING, "null.marker": "N"}, b"N,\t", None, b"", [("N", None)]),
        (
            {**BOTH, **IGNORING, "headers.delimiter": "!"},
            b"h:v\tvalue",
            b"h:v",
            b"value",
            [],
        ),
        # What stands for null.
        (NULL, b"<NULL>", None, None, []),
        (NULL, b"<NULL> ", None, b"<NULL> ", []),
        ({**BOTH, **NULL}, b"<NULL>\t<NULL>\t<NULL>", None, None, []),
        ({**BOTH, **NULL}, b"h:<NULL>,g:w\tk\t", b"k", b"", [("h", None), ("g", b"w")]),
        ({"null.marker": ""}, b"", None, None, []),
        # Bytes that are no UTF-8 stay.
        (BOTH, b"h:\xff\t\xfe\t\xc3\xa4\xfd", b"\xfe", b"\xc3\xa4\xfd", [("h", b"\xff")]),
        ({**KEY, "key.separator": "ä"}, "kä\u00e4".encode(), b"k", "ä".encode(), []),
        ({**HEADERS, **IGNORING}, b"\xff:v\tx", None, b"x", [("\ufffd", b"v")]),
        (HEADERS, "ä:ö\tx".encode(), None, b"x", [("ä", "ö".encode())]),
    ],
)  # fmt: skip
def test_a_line(
    properties: dict[str, str],
    line: bytes,
    key: bytes | None,
    value: bytes | None,
    headers: list[tuple[str, bytes | None]],
) -> None:
    assert records(properties, line) == [(key, value, headers)]


@pytest.mark.parametrize(
    ("properties", "lines", "says"),
    [
        (KEY, [b"a\tb", b"ab"], "line 8: no key separator '\\t' in 'ab'"),
        (HEADERS, [b"ab"], "line 7: no headers delimiter '\\t' in 'ab'"),
        (BOTH, [b"h:v\tab"], "line 7: no key separator '\\t' in 'h:v\\tab'"),
        (BOTH, [b"h\tk\tv", b"ab"], "line 7: no header key separator ':' in the header 'h'"),
        (HEADERS, [b"\tx"], "line 7: no header key separator ':' in the header ''"),
        ({**HEADERS, **NULL}, [b"<NULL>:v\tx"], "line 7: a header's key is the null marker"),
        ({**HEADERS, **NULL, **IGNORING}, [b"<NULL>:v\tx"], "a header's key is the null marker"),
        (HEADERS, [b"h\xff:v\tx"], "line 7: a header's key 'h\ufffd' is not UTF-8"),
        (KEY, [b"x" * 1000], "line 7: no key separator '\\t' in '" + "x" * 100 + "...'"),
    ],
)
def test_the_first_bad_line_is_named(
    properties: dict[str, str], lines: list[bytes], says: str
) -> None:
    with pytest.raises(KlogError) as raised:
        records(properties, *lines, first_line=7)
    assert says in str(raised.value)


@pytest.mark.parametrize(
    ("properties", "says"),
    [
        ({"parse.keys": "true"}, "parse.keys: the line reader has no such property; did you mean"),
        ({"topic": "t"}, "topic: the line reader has no such property"),
        ({"headers.separator": "\t"}, "headers.delimiter and headers.separator are both '\\t'"),
        ({"headers.delimiter": ":"}, "headers.delimiter and headers.key.separator are both ':'"),
        ({"headers.separator": ":"}, "headers.separator and headers.key.separator are both ':'"),
        ({"null.marker": "\t"}, "null.marker and key.separator are both '\\t'"),
        ({"null.marker": ","}, "null.marker and headers.separator are both ','"),
        ({"null.marker": "x", "headers.delimiter": "x"}, "null.marker and headers.delimiter are"),
        ({"null.marker": ":"}, "null.marker and headers.key.separator are both ':'"),
        ({"headers.separator": "["}, "headers.separator: must be a regular expression, got '['"),
    ],
)
def test_properties_that_cannot_be(properties: dict[str, str], says: str) -> None:
    with pytest.raises(OptionError, match=f"^{re.escape(says)}"):
        parse_line_format(properties)


def test_key_and_headers_may_end_at_the_same_text() -> None:
    parse_line_format({"key.separator": ",", "headers.separator": ","})


@given(st.lists(st.text("ab\r\n").map(str.encode), max_size=8))
def test_lines_are_the_same_however_they_arrive(parts: list[bytes]) -> None:
    lines = Lines()
    result = [line for part in parts if part for line in lines.feed(part)] + lines.finish()
    assert result == b"".join(parts).splitlines()
    assert lines.count == len(result)


def test_a_line_is_given_out_when_it_ends() -> None:
    lines = Lines()
    assert lines.feed(b"on") == []
    assert lines.feed(b"e\r") == [b"one"]
    assert lines.feed(b"\n") == []
    assert lines.feed(b"\ntwo") == [b""]
    assert lines.finish() == [b"two"]


@pytest.mark.parametrize("line_end", [b"", b"\n"])
def test_a_line_that_is_too_long_is_named(line_end: bytes) -> None:
    lines = Lines()
    lines.feed(b"one\ntwo" + bytes(MAX_LINE_BYTES - 3))
    with pytest.raises(KlogError, match="line 2: longer than"):
        lines.feed(b"x" + line_end)


def test_no_lines_are_no_records() -> None:
    assert records({}) == records(BOTH) == []
