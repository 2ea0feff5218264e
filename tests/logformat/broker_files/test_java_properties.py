"""Java's properties files, by the examples of `java.util.Properties`."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klog.errors import CorruptRecordError
from klog.logformat.broker_files.java_properties import decode_properties, encode_properties


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        (r"Truth = Beauty", {"Truth": "Beauty"}),
        (r"  Truth:Beauty", {"Truth": "Beauty"}),
        (r"Truth    :Beauty", {"Truth": "Beauty"}),
        (
            "fruits   apple, banana, \\\n      pear, \\\n   mango",
            {"fruits": "apple, banana, pear, mango"},
        ),
        ("cheeses", {"cheeses": ""}),
        ("", {}),
        ("# comment\n  ! another\n\n \t \na=1", {"a": "1"}),
        ("a=1\r\nb=2\rc=3\n", {"a": "1", "b": "2", "c": "3"}),
        ("a=1\na=2", {"a": "2"}),
        (r"a\ b\:c\=d=e=f:g", {"a b:c=d": "e=f:g"}),
        (r"a=\t\n\r\f\\\z", {"a": "\t\n\r\f\\z"}),
        (r"a=\u00e9\uD83D\ude00", {"a": "\u00e9\U0001f600"}),
        ("a=b\\\\\nc=d", {"a": "b\\", "c": "d"}),
        ("a=b\\", {"a": "b"}),
        ("=b", {"": "b"}),
    ],
)
def test_decoding(text: str, fields: dict[str, str]) -> None:
    assert decode_properties(text.encode("latin-1")) == fields


def test_bytes_are_latin_1() -> None:
    assert decode_properties(b"a=\xe9") == {"a": "\xe9"}


def test_encoding() -> None:
    encoded = encode_properties({"a b": " x=y\t\xe9\U0001f600"}, ("", "now\nthen"))
    assert encoded == (b"#\n#now\\u000Athen\na\\ b=\\ x\\=y\\t\\u00E9\\uD83D\\uDE00\n")


@pytest.mark.parametrize("text", [r"a=\u12", r"a=\u", r"\uzzzz=1"])
def test_malformed_escape_is_corrupt(text: str) -> None:
    with pytest.raises(CorruptRecordError, match="hex digits") as caught:
        decode_properties(b"x=1\n" + text.encode())
    assert caught.value.position == 4


TEXT = st.text(st.characters(exclude_categories=["Cs"]))


@given(st.dictionaries(TEXT, TEXT), st.lists(TEXT))
def test_round_trip(fields: dict[str, str], comments: list[str]) -> None:
    assert decode_properties(encode_properties(fields, comments)) == fields


@given(st.binary())
def test_any_bytes_decode_or_raise(data: bytes) -> None:
    try:
        fields = decode_properties(data)
    except CorruptRecordError:
        assert b"\\u" in data
    else:
        assert decode_properties(encode_properties(fields)) == fields
