"""Kafka's compression codecs: their numbers, names and levels.

The rule: a codec's number is bits 0 to 2 of a batch's attributes (docs/format.md, 5). Its name is
that of the topic config `compression.type`, its levels are Kafka's (`CompressionType`).
"""

from __future__ import annotations

NONE, GZIP, SNAPPY, LZ4, ZSTD = range(5)
CODEC_NAMES = ("none", "gzip", "snappy", "lz4", "zstd")
"""Names by number."""
CODEC_LEVELS: dict[int, tuple[int, int, int]] = {
    GZIP: (-1, 9, -1),
    LZ4: (1, 17, 9),
    ZSTD: (-131072, 22, 3),
}
"""Lowest, highest and default level of the codecs that have levels; gzip has no level 0."""


def codec_number(name: str) -> int:
    """Return the number of a codec.

    Args:
        name: A value of Kafka's `compression.type`: a codec, or `uncompressed`, the topic's word
            for `none`. `producer` is not a codec: it keeps the codec that a batch has.

    Raises:
        ValueError: There is no such codec.
    """
    if name == "uncompressed":
        return NONE
    if name not in CODEC_NAMES:
        raise ValueError(
            f"codec {name!r} does not exist; choose {', '.join(CODEC_NAMES)} or uncompressed"
        )
    return CODEC_NAMES.index(name)


def check_level(codec: int, level: int | None) -> int:
    """Return the level to compress at: the codec's default for None, 0 if it has no levels.

    Args:
        codec: A number of this module.
        level: The level to check, or None.

    Raises:
        ValueError: The codec does not exist, has no levels, or the level is outside Kafka's range.
    """
    if not NONE <= codec <= ZSTD:
        raise ValueError(f"compression codec {codec} does not exist; choose {NONE} to {ZSTD}")
    if codec not in CODEC_LEVELS:
        if level is not None:
            raise ValueError(f"{CODEC_NAMES[codec]} has no levels, got level {level}; leave it out")
        return 0
    min_level, max_level, default_level = CODEC_LEVELS[codec]
    if level is None:
        return default_level
    if not min_level <= level <= max_level or (codec == GZIP and level == 0):
        allowed = "-1 or 1 to 9" if codec == GZIP else f"{min_level} to {max_level}"
        raise ValueError(f"{CODEC_NAMES[codec]} has levels {allowed}, got level {level}")
    return level
