"""A partition's files built from its batches, compared to what a broker loads from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from klog.errors import UnsupportedFormatError
from klog.logformat.batches.rewrite_offsets import rewrite_offsets
from klog.logformat.batches.scan_batches import scan_batches
from klog.logformat.broker_files.checkpoint_files import (
    decode_epoch_checkpoint,
    encode_epoch_checkpoint,
)
from klog.logformat.broker_files.file_names import segment_file_name
from klog.logformat.broker_files.leader_epochs import EpochEntry
from klog.logformat.broker_files.metadata_files import decode_partition_metadata
from klog.logformat.indexes.abstract_index import MAX_RELATIVE_OFFSET
from klog.logformat.producers.producer_snapshot import decode_snapshot
from klog.logformat.producers.producer_state import EXPIRATION_MS
from klog.logformat.segments.partition_exporter import FileChunk, PartitionExporter
from tests.kafka.written_topics import write_all
from tests.support.batch_bytes import Record, batch, marker, plain, transactional
from tests.support.broker_loader.load_partition import load
from tests.support.legacy_bytes import plain as legacy

TOPIC_ID = "ASNFZ4mrze_-3LqYdlQyEA"
NOW_MS = 1_700_000_000_000
WRITTEN = write_all(NOW_MS)
PARTITION_FILES = {"leader-epoch-checkpoint", "partition.metadata"}


def exported(
    segments: Mapping[int, bytes | Sequence[bytes]],
    log_end: int,
    *,
    log_start: int = 0,
    shift: int = 0,
    **limits: int,
) -> dict[str, bytes]:
    """Export segments by base offset, each in one chunk or in several; returns the files."""
    exporter = PartitionExporter(log_start, NOW_MS, **limits)
    file_chunks: list[FileChunk] = []
    for base_offset, chunks in segments.items():
        file_chunks += exporter.start_segment(base_offset)
        for chunk in [chunks] if isinstance(chunks, bytes) else chunks:
            file_chunks += exporter.append(chunk, scan_batches(chunk, 0, len(chunk)), shift)
    file_chunks += exporter.finish(log_end, TOPIC_ID)
    files: dict[str, bytes] = {}
    for number, file_chunk in enumerate(file_chunks):
        name = file_chunk.name
        assert name not in files or file_chunks[number - 1].name == name, "chunks out of order"
        files[name] = files.get(name, b"") + bytes(file_chunk.data)
    return files


def stamped(data: bytes, epoch: int) -> bytes:
    copy = bytearray(data)
    rewrite_offsets(copy, scan_batches(data, 0, len(data)), leader_epoch=epoch)
    return bytes(copy)


def epochs_of(data: bytes) -> list[int]:
    epochs: list[int] = scan_batches(data, 0, len(data)).headers["leader_epoch"].tolist()
    return epochs


def logs_of(files: Mapping[str, bytes]) -> dict[int, bytes]:
    return {int(name[:20]): files[name] for name in sorted(files) if name.endswith(".log")}


@pytest.mark.parametrize("partition", WRITTEN, ids=lambda name: f"{name[0]}-{name[1]}")
def test_export_is_what_a_broker_would_have_written(partition: tuple[str, int]) -> None:
    """Partitions that real brokers accept, exported from their logs alone."""
    log = WRITTEN[partition]
    expected = log.files()
    for name in expected:
        if name.endswith(".log"):
            expected[name] = stamped(expected[name], 0)
    expected["leader-epoch-checkpoint"] = encode_epoch_checkpoint([EpochEntry(0, 0)])
    last_snapshot = f"{log.next_offset:020}.snapshot"
    files = exported(
        logs_of(expected),
        log.next_offset,
        segment_index_bytes=log.limits.segment_index_bytes,
        index_interval_bytes=log.limits.index_interval_bytes,
    )
    assert decode_partition_metadata(files.pop("partition.metadata")) == TOPIC_ID
    names = {name for name in expected if ".snapshot" not in name or name == last_snapshot}
    assert set(files) == names
    if all(len(append) == 1 for append in log.appends):
        assert files == {name: expected[name] for name in names}


@pytest.mark.parametrize("partition", [("written.codecs", 2), ("written.txn", 0)])
def test_export_is_independent_of_chunks(partition: tuple[str, int]) -> None:
    log = WRITTEN[partition]
    segments = logs_of(log.files())
    in_batches = {}
    for base_offset, data in segments.items():
        batches = scan_batches(data, 0, len(data))
        in_batches[base_offset] = [
            data[start:end]
            for start, end in zip(batches.starts.tolist(), batches.ends.tolist(), strict=True)
        ]
    assert exported(in_batches, log.next_offset) == exported(segments, log.next_offset)


def test_shifted_batches_equal_batches_written_at_those_offsets() -> None:
    segments = {0: plain(0, [b"a", b"b"]), 2: plain(0, [b"c"]) + plain(1, [b"d", b"e"])}
    exporter = PartitionExporter(0, NOW_MS)
    file_chunks = [
        *exporter.start_segment(0),
        *exporter.append(segments[0], scan_batches(segments[0], 0, len(segments[0]))),
    ]
    file_chunks += exporter.start_segment(2)
    file_chunks += exporter.append(segments[2], scan_batches(segments[2], 0, len(segments[2])), 2)
    files = {file_chunk.name: bytes(file_chunk.data) for file_chunk in file_chunks}
    assert files[segment_file_name(2, "log")] == stamped(
        plain(2, [b"c"]) + plain(3, [b"d", b"e"]), 0
    )
    assert exporter.next_offset == 5
    assert segments[2] == plain(0, [b"c"]) + plain(1, [b"d", b"e"]), "the input was changed"


def test_leader_epochs_of_another_cluster_become_zero() -> None:
    written = (-1, 3, 0, -1, 7)
    log = b"".join(stamped(plain(offset), epoch) for offset, epoch in enumerate(written))
    files = exported({0: log}, 5)
    assert epochs_of(files[segment_file_name(0, "log")]) == [0] * 5
    entries = decode_epoch_checkpoint(files["leader-epoch-checkpoint"]).entries
    assert entries == (EpochEntry(0, 0),)


def test_leader_epoch_starts_at_the_log_start() -> None:
    log = b"".join(stamped(plain(offset), 0) for offset in range(3))
    files = exported({0: log}, 3, log_start=2)
    entries = decode_epoch_checkpoint(files["leader-epoch-checkpoint"]).entries
    assert entries == (EpochEntry(0, 2),)
    assert files[segment_file_name(0, "log")] == log, "a segment keeps all its batches"


@pytest.mark.parametrize("gap", [MAX_RELATIVE_OFFSET, MAX_RELATIVE_OFFSET + 1])
def test_gap_larger_than_a_relative_offset_rolls(gap: int) -> None:
    log = stamped(plain(10) + plain(10 + gap) + plain(11 + gap), 0)
    logs = logs_of(exported({10: log}, 12 + gap))
    size = len(log) // 3
    in_first = 2 if gap == MAX_RELATIVE_OFFSET else 1
    assert logs == {10: log[: in_first * size], 9 + in_first + gap: log[in_first * size :]}
    loaded = load(exported({10: log}, 12 + gap))
    assert loaded.logs == logs
    assert loaded.log_end == 12 + gap


def test_large_gap_before_the_first_batch_rolls() -> None:
    offset = MAX_RELATIVE_OFFSET + 6
    log = stamped(plain(offset), 0)
    assert logs_of(exported({5: log}, offset + 1)) == {5: b"", offset: log}


def test_full_index_rolls() -> None:
    log = b"".join(stamped(plain(offset), 0) for offset in range(9))
    files = exported({0: log}, 9, segment_index_bytes=36, index_interval_bytes=0)
    assert len(logs_of(files)) > 1
    assert b"".join(logs_of(files).values()) == log
    assert all(len(files[name]) <= 36 for name in files if name.endswith("index"))


@pytest.mark.parametrize(("log_start", "log_end"), [(0, 0), (50, 50)])
def test_log_without_records_is_an_empty_segment(log_start: int, log_end: int) -> None:
    files = exported({}, log_end, log_start=log_start)
    segment = {segment_file_name(log_end, suffix) for suffix in ("log", "index", "timeindex")}
    assert set(files) == segment | PARTITION_FILES
    assert all(files[name] == b"" for name in segment)
    loaded = load(files, log_start=log_start, was_clean=True)
    assert (loaded.log_start, loaded.log_end) == (log_start, log_end)


def test_empty_segment_holds_the_log_end_after_compaction() -> None:
    """The cleaner may have removed the last batches; a broker must not assign offsets twice."""
    log = stamped(plain(0), 0)
    files = exported({0: log}, 40)
    assert logs_of(files) == {0: log, 40: b""}
    assert load(files, was_clean=True).log_end == 40


def test_old_formats_are_unchanged_and_cannot_be_shifted() -> None:
    log = legacy([Record(0, 1000, None, b"v")], 1) + stamped(plain(1), 0)
    assert logs_of(exported({0: log}, 2)) == {0: log}
    with pytest.raises(UnsupportedFormatError, match="cannot get other offsets"):
        exported({5: log}, 7, shift=5)


def test_aborted_transaction_is_in_the_index_of_its_marker() -> None:
    first = stamped(transactional(0, 7) + transactional(1, 8), 0)
    second = stamped(marker(2, 7, 0) + marker(3, 8, 1), 0)
    files = exported({0: first, 2: second}, 4)
    assert [name for name in files if "txnindex" in name] == [segment_file_name(2, "txnindex")]
    assert load(files).segments[2]["txnindex"] == files[segment_file_name(2, "txnindex")]


def test_open_transactions() -> None:
    exporter = PartitionExporter(0, NOW_MS)
    log = transactional(4, 7)
    list(exporter.start_segment(4))
    list(exporter.append(log, scan_batches(log, 0, len(log))))
    assert exporter.open_transactions == {7: 4}


def test_snapshot_has_no_expired_producers() -> None:
    def written(producer_id: int, offset: int, timestamp_ms: int) -> bytes:
        row = Record(offset, timestamp_ms, None, b"v")
        return stamped(batch([row], producer_id=producer_id, producer_epoch=2, base_sequence=9), 0)

    log = written(1, 0, NOW_MS - EXPIRATION_MS) + written(2, 1, NOW_MS - EXPIRATION_MS + 1)
    (entry,) = decode_snapshot(exported({0: log}, 2)[segment_file_name(2, "snapshot")])
    assert (entry.producer_id, entry.epoch, entry.last_sequence, entry.last_offset) == (2, 2, 9, 1)


def test_misuse_is_refused() -> None:
    log = plain(5)
    batches = scan_batches(log, 0, len(log))
    with pytest.raises(ValueError, match="no segment is open"):
        list(PartitionExporter(0, NOW_MS).append(log, batches))
    for base_offset, shift in ((6, 0), (5, -1)):
        exporter = PartitionExporter(0, NOW_MS)
        list(exporter.start_segment(base_offset))
        with pytest.raises(ValueError, match="is below base offset"):
            list(exporter.append(log, batches, shift))
    exporter = PartitionExporter(0, NOW_MS)
    list(exporter.start_segment(5))
    list(exporter.append(log, batches))
    with pytest.raises(ValueError, match="rise"):
        list(exporter.append(log, batches))
    no_batches = batches.where(np.zeros(1, np.bool_))
    assert list(exporter.append(log, no_batches)) == []
