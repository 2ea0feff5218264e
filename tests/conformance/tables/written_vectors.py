"""Golden vectors of Kafka's classes that klog's encoder writes byte for byte."""

from __future__ import annotations

from typing import Any

from klog.logformat.producers.control_records import ABORT, COMMIT
from tests.conformance.case import Case, NotApplicable
from tests.conformance.encode_runs import written, written_control, written_empty

PRODUCER: dict[str, Any] = {"producer_id": 4000, "producer_epoch": 3}
COMPACTED: dict[str, Any] = {
    "leader_epoch": 3, "producer_id": 7, "producer_epoch": 1, "base_sequence": 40,
}  # fmt: skip

BATCHES = [
    Case(
        "13.1 base 0, leader epoch 0, one record ts 1000 k1/v1",
        written,
        ([(0, 1000, b"k1", b"v1")], {"leader_epoch": 0}),
        "00000000000000000000003c000000000216a7de4c00000000000000000000000003e800000000000003e8ffff"
        "ffffffffffffffffffffffff0000000114000000046b3104763100",
    ),
    Case(
        "13.1 base 100, leader epoch 5: (1000,k1,v1), (1500,null,v2,headers h1=x,h2=null), "
        '(900,k3,null), (1600,"","")',
        written,
        (
            [
                (100, 1000, b"k1", b"v1"),
                (101, 1500, None, b"v2", (("h1", b"x"), ("h2", None))),
                (102, 900, b"k3", None),
                (103, 1600, b"", b""),
            ],
            {"leader_epoch": 5},
        ),
        "00000000000000640000006100000005020cb6e87b00000000000300000000000003e80000000000000640ffff"
        "ffffffffffffffffffffffff0000000414000000046b31047631002400e8070201047632040468310278046832"
        "011200c70104046b3301000e00b00906000000",
    ),
    Case(
        "13.1 LogAppendTime 5555, base 7, leader epoch 3: (1000,a,b),(2000,c,d)",
        written,
        (
            [(7, 1000, b"a", b"b"), (8, 2000, b"c", b"d")],
            {"leader_epoch": 3, "append_time_ms": 5555},
        ),
        "0000000000000007000000440000000302cedbfaa900080000000100000000000003e800000000000015b3ffff"
        "ffffffffffffffffffffffff000000021000000002610262001200d00f020263026400",
    ),
    Case(
        "13.1 idempotent pid 4000 epoch 3 seq 17, base 10, leader epoch 2: (1000,a,b),(1001,c,d)",
        written,
        (
            [(10, 1000, b"a", b"b"), (11, 1001, b"c", b"d")],
            {"leader_epoch": 2, **PRODUCER, "base_sequence": 17},
        ),
        "000000000000000a0000004300000002020635ee0000000000000100000000000003e800000000000003e90000"
        "000000000fa000030000001100000002100000000261026200100002020263026400",
    ),
    Case(
        "13.1 transactional pid 4000 epoch 3 seq 0, base 10: (1000,a,b)",
        written,
        (
            [(10, 1000, b"a", b"b")],
            {"leader_epoch": 2, **PRODUCER, "base_sequence": 0, "is_transactional": True},
        ),
        "000000000000000a0000003a000000020227d898f500100000000000000000000003e800000000000003e80000"
        "000000000fa000030000000000000001100000000261026200",
    ),
    Case(
        "13.1 no timestamp, leader epoch \u22121, (\u22121,a,b)",
        written,
        ([(0, -1, b"a", b"b")], {}),
        "00000000000000000000003affffffff027e7ae9d1000000000000ffffffffffffffffffffffffffffffffffff"
        "ffffffffffffffffffffffff00000001100000000261026200",
    ),
    Case(
        "13.1 delete horizon 86401000, base 20: (1000,k1,null),(2000,k2,v)",
        written,
        (
            [(20, 1000, b"k1", None), (21, 2000, b"k2", b"v")],
            {"leader_epoch": 4, "delete_horizon_ms": 86401000},
        ),
        "00000000000000140000004a00000004028e28544b0040000000010000000005265fe800000000000007d0ffff"
        "ffffffffffffffffffffffff000000021600ffefb25200046b3101001800afe0b25202046b32027600",
    ),
    Case(
        "13.1 empty retained, offsets 10..14, pid 4000/3 seq 17, max ts 1234",
        written_empty,
        ({"leader_epoch": 2, **PRODUCER, "base_sequence": 17}, 10, 4, 1234),
        "000000000000000a00000031000000020258c760d7000000000004ffffffffffffffff00000000000004d20000"
        "000000000fa000030000001100000000",
    ),
    Case(
        "13.1 empty control, offset 15, pid 4000/3",
        written_empty,
        (
            {"leader_epoch": 2, **PRODUCER, "is_transactional": True, "is_control": True},
            15,
            0,
            1234,
        ),
        "000000000000000f00000031000000020217707557003000000000ffffffffffffffff00000000000004d20000"
        "000000000fa00003ffffffff00000000",
    ),
]

CONTROLS = [
    Case(
        "13.2 COMMIT, offset 12, ts 1000, leader epoch 2, pid 4000/3, coordinator epoch 9 "
        "(78 bytes)",
        written_control,
        ("end_transaction", (12, 1000, 2), COMMIT, 4000, 3, 9),
        "000000000000000c00000042000000020228b1739d00300000000000000000000003e800000000000003e80000"
        "000000000fa00003ffffffff000000012000000008000000010c00000000000900",
    ),
    Case(
        "13.2 ABORT, offset 13, ts 1001",
        written_control,
        ("end_transaction", (13, 1001, 2), ABORT, 4000, 3, 9),
        "000000000000000d0000004200000002028f123a5600300000000000000000000003e900000000000003e90000"
        "000000000fa00003ffffffff000000012000000008000000000c00000000000900",
    ),
    Case(
        "13.2 LeaderChange leader 1, voters 1,2, granting 1 (ts 1000, leader epoch 1)",
        written_control,
        ("leader_change", (0, 1000, 1), 1, (1, 2), (1,)),
        "0000000000000000000000540000000102f1fcfdec00200000000000000000000003e800000000000003e8ffff"
        "ffffffffffffffffffffffff000000014400000008000000023000000000000103000000010000000002000200"
        "000001000000",
    ),
    Case(
        "13.2 SnapshotHeader 999",
        written_control,
        ("snapshot_header", (0, 1000, 1), 999),
        "00000000000000000000004700000001026d4cbd6400200000000000000000000003e800000000000003e8ffff"
        "ffffffffffffffffffffffff000000012a000000080000000316000000000000000003e70000",
    ),
    Case(
        "13.2 SnapshotFooter (offset 1)",
        written_control,
        ("snapshot_footer", (1, 1000, 1)),
        "00000000000000010000003f00000001028db697cb00200000000000000000000003e800000000000003e8ffff"
        "ffffffffffffffffffffffff000000011a00000008000000040600000000",
    ),
    Case(
        "13.2 KRaftVersion 1",
        written_control,
        ("kraft_version", (0, 1000, 1), 1),
        "0000000000000000000000410000000102db904e7400200000000000000000000003e800000000000003e8ffff"
        "ffffffffffffffffffffffff000000011e00000008000000050a000000010000",
    ),
]

# What the cleaner keeps of (1000,a,1), (1500,b,2), (1200,c,null), (1100,d,4), offsets 100 to 103:
# base offset, last offset delta and sequences stay.
COMPACTION = [
    Case(
        "13.5 a, d (no tombstone left)",
        written,
        ([(100, 1000, b"a", b"1"), (103, 1100, b"d", b"4")], COMPACTED, 100, 3),
        "0000000000000064000000440000000302e8109d1800000000000300000000000003e8000000000000044c0000"
        "000000000007000100000028000000021000000002610231001200c801060264023400",
    ),
    Case(
        "13.5 a, c(tombstone), d",
        written,
        (
            [(100, 1000, b"a", b"1"), (102, 1200, b"c", None), (103, 1100, b"d", b"4")],
            {**COMPACTED, "delete_horizon_ms": 86405000},
            100,
            3,
        ),
        "000000000000006400000054000000030260d4a8770040000000030000000005266f8800000000000004b00000"
        "000000000007000100000028000000031600bfaeb3520002610231001400afabb35204026301001600f7acb352"
        "060264023400",
    ),
    Case(
        "13.5 nothing, RETAIN_EMPTY",
        written_empty,
        (COMPACTED, 100, 3, 1500),
        "0000000000000064000000310000000302e3ba3fda000000000003ffffffffffffffff00000000000005dc0000"
        "000000000007000100000028"
        "00000000",
    ),
]

CASES = [*BATCHES, *CONTROLS, *COMPACTION]
NOT_APPLICABLE: list[NotApplicable] = []
