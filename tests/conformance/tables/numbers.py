"""Section 1, ByteUtilsTest: varints and plain numbers."""

from __future__ import annotations

from klog.errors import CorruptRecordError
from tests.conformance import protocol_runs as runs
from tests.conformance.case import Case, NotApplicable, Refused

MAX, LMAX = (1 << 31) - 1, (1 << 63) - 1
VARINT, VARLONG = 5, 10

_UNSIGNED = {
    0: "00", 1: "01", 63: "3f", 64: "40", 8191: "ff3f", 8192: "8040", 1048575: "ffff3f",
    1048576: "808040", MAX: "ffffffff07", -1: "ffffffff0f", -64: "c0ffffff0f",
    -8192: "80c0ffff0f", -8193: "ffbfffff0f", -2147483648: "8080808008",
}  # fmt: skip
_ZIGZAG = {
    0: "00", -1: "01", 1: "02", 63: "7e", -64: "7f", 64: "8001", -65: "8101", 8191: "fe7f",
    -8192: "ff7f", 8192: "808001", -8193: "818001", 1048575: "feff7f", -1048576: "ffff7f",
    1048576: "80808001", -1048577: "81808001", 134217727: "feffff7f", -134217728: "ffffff7f",
    134217728: "8080808001", -134217729: "8180808001", MAX: "feffffff0f", -2147483648: "ffffffff0f",
}  # fmt: skip
_LONGER = {
    17179869183: "feffffff7f", -17179869184: "ffffffff7f", 17179869184: "808080808001",
    -17179869185: "818080808001", 2199023255551: "feffffffff7f", 2199023255552: "80808080808001",
    281474976710655: "feffffffffff7f", 281474976710656: "8080808080808001",
    36028797018963967: "feffffffffffff7f", 36028797018963968: "808080808080808001",
    4611686018427387903: "feffffffffffffff7f", 4611686018427387904: "80808080808080808001",
    LMAX: "feffffffffffffffff01", -9223372036854775808: "ffffffffffffffffff01",
}  # fmt: skip


def _varints(id_: str, table: dict[int, str], max_bytes: int) -> list[Case]:
    return [
        Case(
            id_,
            runs.read_varint,
            (bytes.fromhex(hex_), max_bytes),
            (value, len(hex_) // 2),
            f"{value}",
        )
        for value, hex_ in table.items()
    ]


CASES = [
    *(
        Case(
            "1 testUnsignedVarintSerde",
            runs.unsigned_both_ways,
            (bytes.fromhex(hex_),),
            (value, bytes.fromhex(hex_)),
            f"{value}",
        )
        for value, hex_ in _UNSIGNED.items()
    ),
    *_varints("1 testVarintSerde (zig-zag int)", _ZIGZAG, VARINT),
    *_varints("1 testVarlongSerde", {**_ZIGZAG, **_LONGER}, VARLONG),
    Case(
        "1 testInvalidVarint",
        runs.read_varint,
        (bytes.fromhex("ffffffffff01"), VARINT),
        Refused(CorruptRecordError, "varint of more than 5 bytes"),
        "zig-zag",
    ),
    Case(
        "1 testInvalidVarint",
        runs.unsigned_both_ways,
        (bytes.fromhex("ffffffffff01"),),
        Refused(CorruptRecordError, "varint of more than 5 bytes"),
        "unsigned",
    ),
    Case(
        "1 testInvalidVarlong",
        runs.read_varint,
        (bytes.fromhex("ffffffffffffffffffff01"), VARLONG),
        Refused(CorruptRecordError, "varint of more than 10 bytes"),
    ),
    Case("1 testReadUnsignedInt", runs.header_crc, (bytes.fromhex("00020944"),), 133444),
]

NOT_APPLICABLE: list[NotApplicable] = []
