"""Settings of a write: its options win over the topic's configs, and these over defaults."""

from __future__ import annotations

from typing import Any

import pytest

from klog.connector.sink.write_settings import (
    WriteSettings,
    parse_buffer_bytes,
    parse_settings,
)
from klog.errors import OptionError
from klog.logformat.codecs.codec_names import GZIP, LZ4, NONE, SNAPPY, ZSTD

DAY_MS = 86_400_000

CASES: list[tuple[dict[str, str], dict[str, str], dict[str, Any]]] = [
    # Nothing said: Kafka's defaults, but zstd and larger batches.
    (
        {},
        {},
        {
            "codec": ZSTD,
            "level": 3,
            "batch_bytes": 512 << 10,
            "max_batch_bytes": 1048588,
            "is_append_time": False,
            "is_compacted": False,
            "before_max_ms": None,
            "after_max_ms": 3_600_000,
            "partitioner": "murmur2",
            "min_indexed_bytes": 4096 * 16,
        },
    ),
    # The topic's codec, and the option over it; each codec's level goes with it.
    ({"compression.type": "uncompressed"}, {}, {"codec": NONE, "level": None}),
    ({"compression.type": "lz4"}, {}, {"codec": LZ4, "level": 9}),
    ({"compression.type": "gzip", "compression.gzip.level": "5"}, {}, {"codec": GZIP, "level": 5}),
    ({"compression.type": "gzip"}, {"compression.type": "none"}, {"codec": NONE}),
    ({"compression.type": "gzip"}, {"compression.type": "producer"}, {"codec": ZSTD, "level": 3}),
    ({"compression.zstd.level": "7"}, {}, {"codec": ZSTD, "level": 7}),
    ({"compression.zstd.level": "7"}, {"compression.zstd.level": "-1"}, {"level": -1}),
    ({}, {"compression.type": "snappy"}, {"codec": SNAPPY, "level": None}),
    ({}, {"compression.type": "uncompressed"}, {"codec": NONE}),
    # A batch is never larger than what holds it.
    ({"max.message.bytes": "1000"}, {}, {"batch_bytes": 1000, "max_batch_bytes": 1000}),
    ({"segment.bytes": "900"}, {}, {"batch_bytes": 900, "max_batch_bytes": 900}),
    ({"segment.bytes": "900"}, {"segment.bytes": "800"}, {"max_batch_bytes": 800}),
    ({}, {"batch.size": "100"}, {"batch_bytes": 100, "max_batch_bytes": 1048588}),
    ({}, {"max.message.bytes": "77"}, {"batch_bytes": 77}),
    ({"index.interval.bytes": "10"}, {}, {"min_indexed_bytes": 160}),
    # Times.
    ({"message.timestamp.type": "LogAppendTime"}, {}, {"is_append_time": True}),
    ({"message.timestamp.before.max.ms": "5"}, {}, {"before_max_ms": 5, "after_max_ms": 3_600_000}),
    ({"message.timestamp.after.max.ms": str((1 << 63) - 1)}, {}, {"after_max_ms": None}),
    (
        {"message.timestamp.difference.max.ms": "9"},
        {},
        {"before_max_ms": 9, "after_max_ms": 9},
    ),
    (
        {"message.timestamp.difference.max.ms": "9", "message.timestamp.after.max.ms": "5"},
        {},
        {"before_max_ms": 9, "after_max_ms": 5},
    ),
    ({"cleanup.policy": "compact,delete"}, {}, {"is_compacted": True}),
    ({}, {"partitioner": "round-robin"}, {"partitioner": "round-robin"}),
]


@pytest.mark.parametrize(("config", "options", "expected"), CASES)
def test_options_win_over_topic_configs(
    config: dict[str, str], options: dict[str, str], expected: dict[str, Any]
) -> None:
    settings = parse_settings(config, options)
    assert {name: getattr(settings, name) for name in expected} == expected


def test_buffer_memory_is_64_mib_unless_set() -> None:
    assert parse_buffer_bytes({}) == 64 << 20
    assert parse_buffer_bytes({"buffer.memory": "0"}) == 0


def test_roll_limits_are_the_topics() -> None:
    config = {"segment.ms": str(DAY_MS), "segment.bytes": "1000", "index.interval.bytes": "7"}
    limits = parse_settings(config, {}).limits
    assert (limits.segment_ms, limits.segment_bytes, limits.index_interval_bytes) == (
        DAY_MS,
        1000,
        7,
    )
    compacted = {"cleanup.policy": "compact", "max.compaction.lag.ms": "60000"}
    assert parse_settings(config | compacted, {}).limits.segment_ms == 60000


REFUSED = [
    ({"batch.sise": "1"}, "batch.sise: unknown write option. Did you mean batch.size"),
    ({"acks": "all"}, "acks: unknown write option. Use one of compression.type"),
    ({"batch.size": "1k"}, "batch.size: must be a number of bytes, at most .*, got '1k'"),
    ({"batch.size": "-1"}, "batch.size: must be .*, got '-1'"),
    ({"batch.size": str((128 << 20) + 1)}, "at most 134217728"),
    ({"buffer.memory": ""}, "buffer.memory: must be .*, got ''"),
    ({"compression.type": "brotli"}, "compression.type: must be .*zstd.*, got 'brotli'"),
    ({"compression.zstd.level": "23"}, "compression.zstd.level: must be .*, got '23'"),
    ({"segment.bytes": "13"}, "segment.bytes: must be .*, got '13'"),
    ({"max.message.bytes": "much"}, "max.message.bytes: must be .*, got 'much'"),
    ({"partitioner": "random"}, "partitioner: must be .*round-robin, got 'random'"),
]


@pytest.mark.parametrize(("options", "message"), REFUSED)
def test_wrong_option_is_refused_by_name(options: dict[str, str], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        parse_settings({}, options)


def test_segments_have_indexes_from_16_intervals_on() -> None:
    assert WriteSettings().min_indexed_bytes == 65536
