"""Section 10: lz4's framing, whose header checksum format v0 had wrong."""

from __future__ import annotations

from klog.errors import CorruptRecordError
from tests.conformance.case import Case, NotApplicable, Refused
from tests.conformance.readers_runs import decompressed
from tests.support.batch_bytes import LZ4
from tests.support.legacy_bytes import packed


def _with(data: bytes, at: int, value: bytes) -> bytes:
    return data[:at] + value + data[at + len(value) :]


DATA = b"data" * 256
RIGHT, WRONG = packed(DATA, 1, LZ4), packed(DATA, 0, LZ4)
CASES: list[Case] = [
    Case("10 Lz4 testLz4FramingMagicV0", decompressed, (LZ4, WRONG, 0), DATA, "wrong"),
    Case("10 Lz4 testLz4FramingMagicV0", decompressed, (LZ4, RIGHT, 0), DATA, "right"),
    Case("10 Lz4 testLz4FramingMagicV1", decompressed, (LZ4, RIGHT, 1), DATA, "right"),
    Case(
        "10 Lz4 testLz4FramingMagicV1",
        decompressed,
        (LZ4, WRONG, 1),
        Refused(CorruptRecordError, "header checksum"),
        "wrong",
    ),
    *(
        Case(f"10 Lz4 {name}", decompressed, (LZ4, data, magic), answer, f"v{magic}")
        for magic in (0, 1, 2)
        for name, data, answer in (
            (
                "testHeaderPrematureEnd",
                bytes(2),
                Refused(CorruptRecordError, "lz4 data is damaged"),
            ),
            (
                "testNotSupported",
                b"\0" + RIGHT[1:],
                Refused(CorruptRecordError, "not an lz4 frame"),
            ),
            (
                "testBadFrameChecksum",
                _with(RIGHT, 6, b"\xff"),
                Refused(CorruptRecordError, "header checksum") if magic else DATA,
            ),
            (
                "testBadBlockSize",
                _with(RIGHT, 7, (1 << 24).to_bytes(4, "little")),
                Refused(CorruptRecordError, "larger than the frame allows"),
            ),
        )
    ),
]

NOT_APPLICABLE: list[NotApplicable] = []
