"""Files of Spark's offset log: read and written again byte by byte; damage is an error."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klog.connector.spark_checkpoint.offset_log_entry import decode_offset_log_entry
from klog.errors import InvalidFileError, UnsupportedFormatError

METADATA = '{"batchWatermarkMs":0,"conf":{"a":"b:c"}}'
V1 = f'v1\n{METADATA}\n{{"t":{{"0":5}}}}\n-'
V2 = f'v2\n{METADATA}\n0:{{"t":{{"0":5}}}}\nclicks:-'


@pytest.mark.parametrize(("text", "second"), [(V1, "1"), (V2, "clicks")])
def test_both_versions(text: str, second: str) -> None:
    entry = decode_offset_log_entry("offsets/3", text.encode())
    assert entry.metadata == METADATA
    assert entry.offsets == {"0": '{"t":{"0":5}}', second: "-"}
    assert entry.encode() == text.encode()
    assert entry.with_offsets({second: "{}"}).encode() == text[:-1].encode() + b"{}"


@pytest.mark.parametrize(
    "data",
    [b"", b"v1", f"v1\n{METADATA}".encode(), b"1\n{}\n{}", b"\xff\n{}\n{}", b"v2\n{}\n{}",
     b"v2\n{}\n:{}", b"v2\n{}\n0:{}\n0:{}"],
)  # fmt: skip
def test_a_damaged_file(data: bytes) -> None:
    with pytest.raises(InvalidFileError, match=r"^/c/offsets/3: .*damaged"):
        decode_offset_log_entry("/c/offsets/3", data)


def test_a_later_version() -> None:
    with pytest.raises(UnsupportedFormatError, match="version v3, and klog knows v1 and v2"):
        decode_offset_log_entry("offsets/3", V1.replace("v1", "v3", 1).encode())


@given(st.binary())
def test_any_bytes(data: bytes) -> None:
    try:
        entry = decode_offset_log_entry("offsets/3", b"v2\n" + data)
    except InvalidFileError:
        return
    assert entry.encode() == b"v2\n" + data
