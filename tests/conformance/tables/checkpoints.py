"""Section 24, the files of a log directory and who loads them; their vectors in 13.6."""

from __future__ import annotations

from klog.errors import CorruptRecordError
from tests.conformance.case import Case, NotApplicable, Refused
from tests.conformance.checkpoint_runs import (
    clean_shutdown,
    clean_shutdown_written,
    epoch_checkpoint,
    epoch_checkpoint_round_trip,
    meta_properties,
    meta_properties_written,
    offset_checkpoint,
    offset_checkpoint_round_trip,
    partition_metadata,
)
from tests.conformance.directory_runs import offsets_found, partitions_found
from tests.conformance.state_runs import snapshot

TOPIC_ID = "ASNFZ4mrze_-3LqYdlQyEA"
STRAY = "0123456789abcdef" * 2 + "-stray"
TEN = tuple(((f"test-topic-{number}", number), number * 10) for number in range(10))
PERSISTED = "shouldHandleMultipleLines / shouldPersistAndOverwriteAndReloadFile"
META = "MetaPropertiesTest (V0/V1 variants)"
SHUTDOWN = "CleanShutdownFile…testCleanShutdownFileBasic / CanParseWithUnknownFields"
METADATA = "PartitionMetadataFile…testMaybeFlushWithTopicIdPresent / testRead"
EPOCHS = "LeaderEpochCheckpointFile…shouldPersistAndOverwriteAndReloadFile"
NO_RETENTION = (
    "What retention deletes is not built yet; the files it would delete are read as they lie."
)
NO_IMAGE = (
    "Which replicas are assigned to a broker is in its cluster's metadata, which klog has none of."
)


def meta(text: str, expect: object, label: str) -> Case:
    """Read a `meta.properties`."""
    return Case(f"24 {META}", meta_properties, (text,), expect, label)


CASES = [
    Case(
        f"24 {EPOCHS}",
        epoch_checkpoint_round_trip,
        ((0, 1), (1, 2), (2, 3)),
        [(0, 1), (1, 2), (2, 3)],
        "first",
    ),
    # Each writing is a whole file, so there is nothing of the first to be left.
    Case(f"24 {EPOCHS}", epoch_checkpoint_round_trip, ((3, 4), (4, 5)), [(3, 4), (4, 5)], "again"),
    Case(
        "24 OffsetCheckpointFile…shouldReturnEmptyMapForEmptyFile",
        offset_checkpoint,
        (b"",),
        {},
        "empty file",
    ),
    Case(
        "24 OffsetCheckpointFile…shouldReturnEmptyMapForEmptyFile",
        offset_checkpoint_round_trip,
        (),
        [],
        "empty map",
    ),
    Case(
        "24 …shouldThrowIfVersionIsNotRecognised",
        offset_checkpoint,
        (b"1\n0\n",),
        Refused(CorruptRecordError, "version 1"),
    ),
    Case(f"24 {PERSISTED}", offset_checkpoint_round_trip, TEN, list(TEN), "ten"),
    Case(
        f"24 {PERSISTED}", offset_checkpoint_round_trip, (TEN[7], TEN[2]), [TEN[7], TEN[2]], "again"
    ),
    Case(
        f"24 {METADATA}",
        partition_metadata,
        (f"version: 0\ntopic_id: {TOPIC_ID}".encode(),),
        TOPIC_ID,
        "two lines",
    ),
    Case(
        f"24 {METADATA}",
        partition_metadata,
        (b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA",),
        Refused(CorruptRecordError, "is not a topic id"),
        "no id",
    ),
    Case(
        f"24 {SHUTDOWN}",
        clean_shutdown_written,
        (10,),
        b'{"version":0,"brokerEpoch":10}',
        "written",
    ),
    Case(f"24 {SHUTDOWN}", clean_shutdown, (b'{"version":0,"brokerEpoch":10}',), 10, "read"),
    Case(
        f"24 {SHUTDOWN}",
        clean_shutdown,
        (b'{"version":0,"brokerEpoch":10,"unknown":{"a":[]}}',),
        10,
        "unknown field",
    ),
    Case(f"24 {SHUTDOWN}", clean_shutdown, (b"",), Refused(CorruptRecordError, "JSON"), "empty"),
    meta("version=0\nbroker.id=0\ncluster.id=foo\n", (0, 0, "foo", None), "v0"),
    meta("version=0\n", (0, None, None, None), "v0 without all"),
    meta(
        f"version=0\nbroker.id=5\ndirectory.id={TOPIC_ID}",
        (0, 5, None, TOPIC_ID),
        "v0 with a directory",
    ),
    meta("version=1\nnode.id=0\ncluster.id=foo\n", (1, 0, "foo", None), "v1"),
    meta(
        f"version=1\nnode.id=1\ncluster.id=a b\ndirectory.id={TOPIC_ID}\n",
        (1, 1, "a b", TOPIC_ID),
        "v1 with all",
    ),
    meta(
        "#\n#Mon Jan 01\nversion=1\nnode.id=1\ncluster.id=8a-_\\=:\\u00e9\n",
        (1, 1, "8a-_=:é", None),
        "v1, any cluster id",
    ),
    meta(
        "version=1\ncluster.id=foo\n", Refused(CorruptRecordError, "node.id"), "v1 without a node"
    ),
    meta(
        "version=1\nbroker.id=4\ncluster.id=foo\n",
        Refused(CorruptRecordError, "node.id"),
        "v1 with v0's key",
    ),
    meta(
        "version=1\nnode.id=4\n", Refused(CorruptRecordError, "cluster.id"), "v1 without a cluster"
    ),
    meta("version=2\nnode.id=4\ncluster.id=foo\n", Refused(CorruptRecordError, "version 2"), "v2"),
    meta("node.id=4\ncluster.id=foo\n", Refused(CorruptRecordError, "version"), "no version"),
    Case(
        f"24 {META}",
        meta_properties_written,
        (1, 4, "foo=", TOPIC_ID),
        f"#\n#now\ncluster.id=foo\\=\ndirectory.id={TOPIC_ID}\nnode.id=4\nversion=1\n".encode(),
        "written",
    ),
    Case(
        "24 testLoadDirectoryIds",
        meta_properties,
        (f"version=1\nnode.id=1\ncluster.id=c\ndirectory.id={TOPIC_ID}",),
        (1, 1, "c", TOPIC_ID),
        "with",
    ),
    Case(
        "24 testLoadDirectoryIds",
        meta_properties,
        ("version=1\nnode.id=1\ncluster.id=c",),
        (1, 1, "c", None),
        "without",
    ),
    Case(
        "24 testLoadLogsSkipRemoteIndexCache",
        partitions_found,
        ("foo-0", "remote-log-index-cache", "remote-log-index-1"),
        [("foo", 0), ("remote-log-index", 1)],
    ),
    Case(
        "24 testLoadLogRenameLogThatShouldBeStray",
        offsets_found,
        ("foo", [("foo-0", 0, 2), (f"foo-0.{STRAY}", 0, 9), (f"foo-1.{STRAY}", 0, 9)]),
        [0, 1],
    ),
    Case(
        "13.6 snapshot, 2 entries: pid 4000 epoch 3 lastSeq 19 lastOffset 109 delta 2 ts 1234 "
        "coord 9 txn 105; pid 4001 epoch 7 no batch ts 1500 coord 5",
        snapshot,
        (
            bytes.fromhex(
                "0001d9c5aebe000000020000000000000fa0000300000013000000000000006d0000000200000000"
                "000004d20000000900000000000000690000000000000fa10007ffffffffffffffffffffffff0000"
                "000000000000000005dc00000005ffffffffffffffff"
            ),
        ),
        [(4000, 3, 19, 109, 2, 1234, 9, 105), (4001, 7, -1, -1, 0, 1500, 5, -1)],
    ),
    Case("13.6 empty snapshot", snapshot, (bytes.fromhex("000148674bc700000000"),), []),
    Case(
        "13.6 leader-epoch-checkpoint (0,0),(3,120)",
        epoch_checkpoint,
        (b"0\n2\n0 0\n3 120\n",),
        [(0, 0), (3, 120)],
    ),
    Case(
        "13.6 leader-epoch-checkpoint (0,0),(3,120)",
        epoch_checkpoint,
        (b"0\n0\n",),
        [],
        "empty list",
    ),
    Case(
        "13.6 offset checkpoint",
        offset_checkpoint,
        (b"0\n2\nmy-topic 0 120\nt.x 11 0\n",),
        {("my-topic", 0): 120, ("t.x", 11): 0},
    ),
    Case(
        "13.6 partition.metadata",
        partition_metadata,
        (b"version: 0\ntopic_id: ASNFZ4mrze_-3LqYdlQyEA",),
        TOPIC_ID,
    ),
    Case(
        "13.6 .kafka_cleanshutdown",
        clean_shutdown_written,
        (7,),
        b'{"version":0,"brokerEpoch":7}',
        "written",
    ),
    Case(
        "13.6 .kafka_cleanshutdown", clean_shutdown, (b'{"version":0,"brokerEpoch":7}',), 7, "read"
    ),
]

NOT_APPLICABLE = [
    NotApplicable(
        "24 testLazyOffsetCheckpoint(+InvalidLogDir)",
        "It is about how often a broker reads the file; klog's functions take its bytes.",
    ),
    NotApplicable("24 testCleanupExpiredSegments", NO_RETENTION),
    NotApplicable("24 testCleanupSegmentsToMaintainSize", NO_RETENTION),
    NotApplicable("24 testDoesntCleanLogsWithCompact(Delete)Policy", NO_RETENTION),
    NotApplicable("24 testIsStrayKraftReplica*", NO_IMAGE),
    NotApplicable(
        "24 testCheckpointLogStartOffsetForNormalTopic",
        "When a running broker writes its checkpoint is the broker's; klog reads what it wrote.",
    ),
    NotApplicable(
        "24 testGetOffsetsAfterDeleteRecords",
        "The old OffsetRequest lists segments' bases to clients; klog has no such interface.",
    ),
]
