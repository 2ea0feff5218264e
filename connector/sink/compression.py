"""The codec and the level of a write.

The rule: the option `compression.type` wins over the topic's config, which wins over klog's
default. Kafka's value `producer` means "the codec of the producer". The producer is klog, so it
means the default as well. The level is that of the chosen codec.
"""

from __future__ import annotations

from collections.abc import Mapping

from klog.logformat.codecs.codec_names import CODEC_LEVELS, CODEC_NAMES, ZSTD, codec_number
from klog.logformat.topic_config import TopicConfig

DEFAULT_CODEC = ZSTD
"""The codec when neither the write nor the topic names one."""


def choose_compression(config: TopicConfig, options: Mapping[str, str]) -> tuple[int, int | None]:
    """Return the number of the codec in a batch's attributes, and its level.

    Args:
        config: The topic's configs, with the write's options `compression.<codec>.level` over them.
        options: The options of the write, checked by the table of options.

    Returns:
        The level is None for a codec that has no levels.
    """
    name = str(options.get("compression.type", config.values["compression.type"]))
    codec = DEFAULT_CODEC if name == "producer" else codec_number(name)
    if codec not in CODEC_LEVELS:
        return codec, None
    return codec, config.number(f"compression.{CODEC_NAMES[codec]}.level")
