"""How a write makes segments out of rows: the topic's configs, and the write's options over them.

The rule: an option wins over the topic's config of that name, which wins over Kafka's default. Only
the default codec is klog's own (`compression.py`). A batch has at most `batch.size` bytes before
compression, and at most what `max.message.bytes` and `segment.bytes` allow when it is encoded.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from klog.connector.commit_log.segment_writer import UNINDEXED_INTERVALS
from klog.connector.options import write_option_table as table
from klog.connector.options.write_options import segment_option_map
from klog.connector.roll_limits import roll_limits
from klog.connector.sink.compression import DEFAULT_CODEC, choose_compression
from klog.logformat.batches.batch_limits import DEFAULT_BATCH_BYTES, MAX_BATCH_BYTES
from klog.logformat.indexes.index_building import INDEX_INTERVAL_BYTES
from klog.logformat.segments.segment_rolling import RollLimits
from klog.logformat.topic_config import TopicConfig, parse_topic_config

_MAX_LONG = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class WriteSettings:
    """How rows become segments; sizes in bytes, times in ms.

    Attributes:
        codec: The codec, by its number in a batch's attributes.
        level: The compression level; None if the codec has none.
        batch_bytes: The size of a batch before compression.
        max_batch_bytes: The largest size of an encoded batch.
        limits: When a segment rolls.
        min_indexed_bytes: Smaller segments have no indexes.
        is_append_time: Whether records get the time of staging (`LogAppendTime`).
        is_compacted: Whether the topic is compacted, so that records need keys.
        before_max_ms: How far before the time of staging a timestamp may be; None for any.
        after_max_ms: How far after the time of staging a timestamp may be; None for any.
        partitioner: A value of the option `partitioner`.
    """

    codec: int = DEFAULT_CODEC
    level: int | None = None
    batch_bytes: int = DEFAULT_BATCH_BYTES
    max_batch_bytes: int = MAX_BATCH_BYTES
    limits: RollLimits = field(default_factory=RollLimits)
    min_indexed_bytes: int = INDEX_INTERVAL_BYTES * UNINDEXED_INTERVALS
    is_append_time: bool = False
    is_compacted: bool = False
    before_max_ms: int | None = None
    after_max_ms: int | None = None
    partitioner: str = table.PARTITIONERS[0]


def parse_settings(config: Mapping[str, str], options: Mapping[str, str]) -> WriteSettings:
    """Read a topic's configs and a write's options.

    Args:
        config: The topic's configs.
        options: The options of the write that decide how rows become segments.

    Raises:
        OptionError: An option or its value is wrong; the message names the option.
    """
    values = segment_option_map(options)
    overrides = {row.name: values.texts[row.name] for row in table.TOPIC_CONFIGS if row in values}
    topic_config = parse_topic_config({**config, **overrides})
    codec, level = choose_compression(topic_config, options)
    limits = roll_limits(topic_config)
    max_batch_bytes = min(
        topic_config.number("max.message.bytes"), limits.segment_bytes, MAX_BATCH_BYTES
    )
    return WriteSettings(
        codec=codec,
        level=level,
        batch_bytes=min(values[table.BATCH_SIZE], max_batch_bytes),
        max_batch_bytes=max_batch_bytes,
        limits=limits,
        min_indexed_bytes=limits.index_interval_bytes * UNINDEXED_INTERVALS,
        is_append_time=topic_config.values["message.timestamp.type"] == "LogAppendTime",
        is_compacted=topic_config.has_compact_policy,
        before_max_ms=_max_difference_ms(config, topic_config, "before"),
        after_max_ms=_max_difference_ms(config, topic_config, "after"),
        partitioner=values[table.PARTITIONER],
    )


def parse_buffer_bytes(options: Mapping[str, str]) -> int:
    """Return how many bytes of rows and batches a task keeps in memory.

    Args:
        options: The options of the write that decide how rows become segments.

    Raises:
        OptionError: `buffer.memory` is not a number of bytes.
    """
    return segment_option_map(options)[table.BUFFER_MEMORY]


def _max_difference_ms(
    config: Mapping[str, str], topic_config: TopicConfig, side: str
) -> int | None:
    """Return how far from now a timestamp may be; the older config counts if the newer is unset."""
    name, older_name = f"message.timestamp.{side}.max.ms", "message.timestamp.difference.max.ms"
    is_older_set = older_name in config and name not in config
    max_ms = topic_config.number(older_name if is_older_set else name)
    return None if max_ms == _MAX_LONG else max_ms
