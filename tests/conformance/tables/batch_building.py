"""Kafka's MemoryRecordsBuilderTest (section 6), and its compression tests about writing (10).

Kafka's builder writes formats v0 and v1 too; klog's encoder writes v2 only.
"""

from __future__ import annotations

from typing import Any

from klog.logformat.producers.control_records import ABORT, COMMIT
from tests.conformance.case import Case, NotApplicable, Refused
from tests.conformance.encode_runs import (
    compressed_and_back,
    control_value,
    counts,
    level,
    marker_read,
    size_difference,
    written,
    written_control,
    written_fields,
)
from tests.support.batch_bytes import CODECS, GZIP, LZ4, NONE, SNAPPY, ZSTD

TRANSACTION: dict[str, Any] = {"producer_id": 9809, "producer_epoch": 15, "base_sequence": 2342}
ROW = (0, 0, b"a", b"1")


def three(*timestamps: int) -> list[tuple[int, int, bytes, bytes]]:
    """Make three records from offset 0 with these timestamps."""
    return [(i, timestamp, b"%d" % i, b"v") for i, timestamp in enumerate(timestamps)]


PRODUCERS = [
    Case(
        "6 testWriteTransactionalRecordSet",
        written_fields,
        ([ROW], {**TRANSACTION, "is_transactional": True}, "attributes producer_id"),
        (0x10, 9809),
    ),
    Case(
        "6 testWriteTransactionalWithInvalidPID",
        written,
        ([ROW], {**TRANSACTION, "producer_id": -1, "is_transactional": True}),
        Refused(ValueError, "a transactional batch needs a producer id"),
    ),
    Case(
        "6 testWriteIdempotentWithInvalidEpoch",
        written,
        ([ROW], {**TRANSACTION, "producer_epoch": -1}),
        Refused(ValueError, "needs a producer epoch"),
    ),
    Case(
        "6 testWriteIdempotentWithInvalidBaseSequence",
        written,
        ([ROW], {**TRANSACTION, "base_sequence": -1}),
        Refused(ValueError, "needs a base sequence"),
    ),
    # A marker and its batch are made in one step, so that no other batch can get one.
    *[
        Case(
            "6 testWriteEndTxnMarkerNonTransactionalBatch / NonControlBatch",
            marker_read,
            (kind, 0),
            ([(0, 10, kind)], 0x30, 0),
            label=f"type {kind}",
        )
        for kind in (ABORT, COMMIT)
    ],
    Case(
        "6 testWriteLeaderChangeControlBatchWithoutLeaderEpoch",
        written_control,
        ("leader_change", (0, 1000, -1), 1, (2, 3), ()),
        Refused(ValueError, "needs a leader epoch"),
    ),
    Case(
        "6 testWriteLeaderChangeControlBatch",
        control_value,
        ("leader_change", (0, 1000, 1), 1, (2, 3), ()),
        "00000000000103000000020000000003000100",
    ),
]

BUILT = [
    Case("6 testWriteEmptyRecordSet", counts, ([], 512 << 10), []),
    *[
        Case("6 testEstimatedSizeInBytes", size_difference, (three(0, 2, 1)[:n],), 0, label=f"{n}")
        for n in (1, 2, 3)
    ],
    *[
        Case(
            "6 buildUsingLogAppendTime",
            written_fields,
            (
                three(0, 2, 1),
                {"append_time_ms": 777, "codec": codec},
                "timestamps types max_timestamp last_offset",
            ),
            ([777] * 3, [1] * 3, 777, 2),
            label=f"codec {codec}",
        )
        for codec in CODECS
    ],
    *[
        Case(
            "6 buildUsingCreateTime",
            written_fields,
            (three(0, 2, 1), {"codec": codec}, "timestamps types max_timestamp last_offset"),
            ([0, 2, 1], [0] * 3, 2, 2),
            label=f"codec {codec}",
        )
        for codec in CODECS
    ],
    Case("6 testSmallWriteLimit", counts, (three(0, 2, 1), 0), [1, 1, 1]),
    # A limit says where a batch ends in a run of them; who asks for one batch gets one.
    Case(
        "6 writePastLimit",
        written_fields,
        (three(0, 1, 2), {"batch_bytes": 64}, "count max_timestamp last_offset"),
        (3, 2, 2),
    ),
    Case(
        "6 testAppendAtInvalidOffset",
        written,
        ([ROW, ROW], {}),
        Refused(ValueError, "row 1: the offset is not above"),
    ),
    *[
        Case(
            "6 testRecordTimestampsWithDeleteHorizon",
            written_fields,
            (
                three(50, 100, 150),
                {"delete_horizon_ms": 100, "codec": codec},
                "attributes base_timestamp timestamps",
            ),
            (0x40 | codec, 100, [50, 100, 150]),
            label=f"codec {codec}",
        )
        for codec in CODECS
    ],
]

LOWEST = {GZIP: 1, LZ4: 1, ZSTD: -131072}
HIGHEST = {GZIP: 9, LZ4: 17, ZSTD: 22}
LEVELS = [
    *[
        Case(
            "10 Lz4 / Gzip / Zstd testCompressionLevels",
            level,
            (codec, bound),
            bound,
            label=f"codec {codec}, {bound}",
        )
        for bounds in (LOWEST, HIGHEST)
        for codec, bound in bounds.items()
    ],
    *[
        Case(
            "10 Lz4 / Gzip / Zstd testCompressionLevels",
            level,
            (codec, outside),
            Refused(ValueError, f"got level {outside}"),
            label=f"codec {codec}, {outside}",
        )
        for codec, outside in (
            *[(codec, bound - 1) for codec, bound in LOWEST.items()],
            *[(codec, bound + 1) for codec, bound in HIGHEST.items()],
        )
    ],
    *[
        Case(
            "10 testCompressionDecompression (all)",
            compressed_and_back,
            (codec, level, b"data" * 256),
            b"data" * 256,
            label=f"codec {codec}, level {level}",
        )
        for codec, level in (
            *[(codec, None) for codec in (NONE, GZIP, SNAPPY, LZ4, ZSTD)],
            *LOWEST.items(),
            *HIGHEST.items(),
        )
    ],
]

CASES = [*PRODUCERS, *BUILT, *LEVELS]

NOT_APPLICABLE = [
    NotApplicable(
        "6 testLegacyCompressionRate",
        "klog writes no batch of formats v0 and v1, and cuts batches by their uncompressed size, "
        "so it estimates no rate of compression.",
    ),
    NotApplicable(
        "6 convertV2ToV1UsingMixedCreateAndLogAppendTime",
        "A broker converts down for consumers of old versions; klog serves none and writes v2.",
    ),
    NotApplicable(
        "6 convertToV1WithMixedV0AndV2Data",
        "A broker converts down for consumers of old versions; klog serves none and writes v2.",
    ),
    NotApplicable(
        "6 shouldThrowIllegalStateExceptionOn\u2026 (build/close/append) when aborted / closed",
        "klog's encoder is a function from columns to batches: there is no builder that could be "
        "open, closed or aborted.",
    ),
]
