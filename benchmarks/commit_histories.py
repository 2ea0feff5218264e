"""Commit logs of any length for benchmarks, without the files of their segments.

The rule: each commit is built and put as a writer does it, and a state of many commits is built at
once, as its checkpoint would say it. No figure reads a segment, so there is none.
"""

from __future__ import annotations

from itertools import count

import numpy as np
import pyarrow as pa

from klog.connector.back_off import back_off
from klog.connector.commit_log import append_commit, commit_builders
from klog.connector.commit_log.commit import Topic
from klog.connector.commit_log.commit_info import CommitInfo
from klog.connector.commit_log.commit_log import CommitLog
from klog.connector.commit_log.commit_log_paths import TopicPaths
from klog.connector.commit_log.live_segments import ROW_SCHEMA, LiveSegments
from klog.connector.commit_log.segment_entry_builder import build_segment_entry
from klog.connector.commit_log.segment_path import SegmentPath
from klog.connector.commit_log.topic_state import MAX_REMEMBERED_WRITES, TopicState
from klog.connector.store.writable_store import WritableStore
from klog.connector.system_clock import now_ms

TOPIC, TOPIC_ID = "orders", "benchmark"
PARTITIONS = 100

_numbers = count()


def log_at(store: WritableStore, path: str) -> CommitLog:
    """Return the log of the topic on a store."""
    return CommitLog(store, TopicPaths(path, TOPIC), now_ms, back_off)


def create(log: CommitLog) -> TopicState:
    """Create the topic."""
    build = commit_builders.create_topic(Topic(TOPIC_ID, PARTITIONS), {})
    return log.commit(log.load(), build, CommitInfo(_write_id(), "create-topic", "benchmark"))


def append(log: CommitLog, state: TopicState) -> TopicState:
    """Commit one segment, as a small stream's batch does."""
    number = next(_numbers)
    partition = number % PARTITIONS
    base = state.log_end[partition]
    file = str(SegmentPath(TOPIC, partition, base, state.version, f"{number:08x}"))
    entry = build_segment_entry(
        file=file,
        partition=partition,
        base_offset=base,
        next_offset=base + 1000,
        size_bytes=100_000,
        crc32c=number,
        record_count=0,
        batch_count=0,
        min_timestamp_ms=0,
        max_timestamp_ms=0,
        leader_epoch=0,
        codec="zstd",
        producer_ids=[1 << 62],
        origin="append",
    )
    build = append_commit.append(append_commit.StagedSegments(TOPIC_ID, state.version, [entry]))
    return log.commit(state, build, CommitInfo(_write_id(), "append", "benchmark"))


def _write_id() -> str:
    return f"benchmark-{next(_numbers):027d}"


def state_of(segments: int, version: int) -> TopicState:
    """Return a state with so many live segments, added evenly by the commits up to a version."""
    each = segments // PARTITIONS
    number = np.arange(each * PARTITIONS)
    partition, base = number // each, number % each * 1000
    added = 1 + (number % each) * version // each
    random = np.random.default_rng(1)
    attempts = random.integers(0, 1 << 32, len(number))
    files = [
        str(SegmentPath(TOPIC, partition_number, first, base_version, f"{attempt:08x}"))
        for partition_number, first, base_version, attempt in zip(
            partition.tolist(), base.tolist(), (added - 1).tolist(), attempts.tolist(), strict=True
        )
    ]
    size_bytes = random.integers(1 << 20, 1 << 30, len(number))
    timestamps = 1_700_000_000_000 + base * 10
    zeros = np.zeros(len(number), np.int64)
    offsets = np.arange(len(number) + 1)
    columns = {
        "partition": partition,
        "file": files,
        "base_offset": base,
        "next_offset": base + 1000,
        "offset_shift": zeros,
        "size_bytes": size_bytes,
        "index_bytes": size_bytes >> 9,
        "time_index_bytes": size_bytes >> 10,
        "crc32c": random.integers(0, 1 << 32, len(number)),
        "record_count": zeros + 1000,
        "batch_count": zeros + 10,
        "min_timestamp_ms": timestamps,
        "max_timestamp_ms": timestamps + 9_999,
        "leader_epoch": zeros,
        "codec": pa.repeat("zstd", len(number)),
        "producer_ids": pa.LargeListArray.from_arrays(
            offsets, random.integers(1 << 62, 1 << 63, len(number))
        ),
        "origin": pa.repeat("append", len(number)),
        "torn_bytes": zeros,
        "aborted": pa.repeat(pa.scalar([], pa.list_(pa.int64())), len(number)),
        "version": added,
    }
    rows = pa.table(
        [pa.array(columns[field.name]).cast(field.type) for field in ROW_SCHEMA], schema=ROW_SCHEMA
    )
    return TopicState(
        version=version,
        timestamp_ms=now_ms(),
        topic_id=TOPIC_ID,
        log_start=(0,) * PARTITIONS,
        log_end=(each * 1000,) * PARTITIONS,
        live=LiveSegments.of(rows),
        writes=remembered_writes(min(version, MAX_REMEMBERED_WRITES)),
        listed_ms=now_ms(),
        loaded_ms=now_ms(),
    )


def remembered_writes(number: int) -> dict[str, int]:
    """Return write ids as long as real ones."""
    return {f"{index:036x}": index for index in range(number)}
