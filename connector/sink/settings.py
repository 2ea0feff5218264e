"""What a write goes by: the topic's configs, and the options given for this one write over them.

The rule: an option wins over the topic's config of that name, which wins over Kafka's default; but
where nobody chose a codec it is zstd, and `producer`, Kafka's word for "as the producer has it",
means the same, for here the producer is klog. A batch takes `batch.size` bytes uncompressed, never
more than `max.message.bytes` and `segment.bytes` let it be when it is encoded.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from klog.connector.log.rewriting import UNINDEXED_INTERVALS
from klog.connector.option_words import nearest
from klog.errors import OptionError
from klog.logformat.codecs import MAX_BATCH_BYTES, NAMES, ZSTD
from klog.logformat.compress import LEVELS, check_level, codec_number
from klog.logformat.form import BATCH_BYTES
from klog.logformat.rolling import RollLimits, max_segment_ms
from klog.logformat.topic_config import TopicConfig, read_topic_config

BUFFER_BYTES = 64 << 20
PARTITIONERS = ("murmur2", "sticky", "round-robin")

_MAX_LONG = (1 << 63) - 1
LEVEL_OPTIONS = tuple(f"compression.{NAMES[codec]}.level" for codec in LEVELS)
_CONFIGS = ("segment.bytes", "max.message.bytes", *LEVEL_OPTIONS)
"""Options that mean what the topic's config of that name does."""
OPTIONS = ("compression.type", "batch.size", "buffer.memory", "partitioner", *_CONFIGS)
_WHOLE = re.compile(r"[0-9]{1,18}")


@dataclass(frozen=True, slots=True)
class Settings:
    """How rows become segments; sizes in bytes, times in ms.

    `batch_bytes` is uncompressed, `max_batch_bytes` is of an encoded batch. `before_max_ms` and
    `after_max_ms` bound a record's time by the time of staging; None is no bound.
    """

    codec: int = ZSTD
    level: int | None = None
    batch_bytes: int = BATCH_BYTES
    max_batch_bytes: int = MAX_BATCH_BYTES
    buffer_bytes: int = BUFFER_BYTES
    limits: RollLimits = field(default_factory=RollLimits)
    append_time: bool = False
    compacts: bool = False
    before_max_ms: int | None = None
    after_max_ms: int | None = None
    partitioner: str = PARTITIONERS[0]

    @property
    def indexed_bytes(self) -> int:
        """Give the size from which on a segment has indexes."""
        return self.limits.index_interval_bytes * UNINDEXED_INTERVALS


def read_settings(config: Mapping[str, str], options: Mapping[str, str]) -> Settings:
    """Read a topic's configs and a write's options.

    Raises `OptionError` that names the option for one that is not known or cannot be.
    """
    for name in options:
        if name not in OPTIONS:
            raise OptionError(f"{name}: a write has no such option; {nearest(name, OPTIONS)}")
    given = {name: options[name] for name in _CONFIGS if name in options}
    topic = read_topic_config({**config, **given})
    codec, level = _compression(topic, options)
    segment_bytes = topic.number("segment.bytes")
    largest = min(topic.number("max.message.bytes"), segment_bytes, MAX_BATCH_BYTES)
    partitioner = options.get("partitioner", PARTITIONERS[0])
    if partitioner not in PARTITIONERS:
        raise OptionError(f"partitioner is {partitioner!r}; it is {', '.join(PARTITIONERS)}")
    return Settings(
        codec=codec,
        level=level,
        batch_bytes=min(_size(options, "batch.size", BATCH_BYTES, MAX_BATCH_BYTES), largest),
        max_batch_bytes=largest,
        buffer_bytes=_size(options, "buffer.memory", BUFFER_BYTES, _MAX_LONG),
        limits=RollLimits(
            segment_bytes,
            max_segment_ms(
                topic.number("segment.ms"),
                topic.number("max.compaction.lag.ms"),
                compacts=topic.compacts,
            ),
            topic.number("segment.index.bytes"),
            topic.number("index.interval.bytes"),
        ),
        append_time=topic.values["message.timestamp.type"] == "LogAppendTime",
        compacts=topic.compacts,
        before_max_ms=_bound(config, topic, "before"),
        after_max_ms=_bound(config, topic, "after"),
        partitioner=partitioner,
    )


def _compression(topic: TopicConfig, options: Mapping[str, str]) -> tuple[int, int | None]:
    """Give the codec and its level."""
    word = str(options.get("compression.type", topic.values["compression.type"]))
    try:
        codec = ZSTD if word == "producer" else codec_number(word)
        level = topic.number(f"compression.{NAMES[codec]}.level") if codec in LEVELS else None
        check_level(codec, level)
    except ValueError as exc:
        raise OptionError(f"compression.type is {word!r}: {exc}") from exc
    return codec, level


def _size(options: Mapping[str, str], name: str, default: int, most: int) -> int:
    if name not in options:
        return default
    text = options[name].strip()
    if not _WHOLE.fullmatch(text) or int(text) > most:
        raise OptionError(f"{name} is {options[name]!r}; it is a number of bytes, at most {most}")
    return int(text)


def _bound(config: Mapping[str, str], topic: TopicConfig, side: str) -> int | None:
    """Give how far from now a time may lie; the older config counts where the newer is unset."""
    name, older = f"message.timestamp.{side}.max.ms", "message.timestamp.difference.max.ms"
    found = topic.number(older if older in config and name not in config else name)
    return None if found == _MAX_LONG else found
