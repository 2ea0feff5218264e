"""When the segments of a topic roll, by the topic's configs (Kafka's `LogConfig`)."""

from __future__ import annotations

from klog.logformat.segments.segment_rolling import RollLimits, max_segment_ms
from klog.logformat.topic_config import TopicConfig


def roll_limits(config: TopicConfig) -> RollLimits:
    """Return the sizes and the age at which a segment of the topic is closed.

    A compacted topic also bounds the age by `max.compaction.lag.ms`, as Kafka's
    `LogConfig.maxSegmentMs` does.

    Args:
        config: The configs of the topic.
    """
    return RollLimits(
        segment_bytes=config.number("segment.bytes"),
        segment_ms=max_segment_ms(
            config.number("segment.ms"),
            config.number("max.compaction.lag.ms"),
            compacts=config.has_compact_policy,
        ),
        segment_index_bytes=config.number("segment.index.bytes"),
        index_interval_bytes=config.number("index.interval.bytes"),
    )
