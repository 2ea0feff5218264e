"""A topic's configs: defaults, what each may be, and what contradicts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klog.errors import OptionError
from klog.logformat.topic_config import read_topic_config


def test_defaults() -> None:
    config = read_topic_config({})
    assert config.number("segment.bytes") == 1 << 30
    assert config.number("segment.ms") == config.number("retention.ms") == 604800000
    assert config.number("segment.index.bytes") == 10485760
    assert config.values["cleanup.policy"] == ("delete",)
    assert config.values["min.cleanable.dirty.ratio"] == 0.5
    assert not config.compacts


def test_values_are_read_by_their_type() -> None:
    config = read_topic_config(
        {
            "cleanup.policy": "compact, delete",
            "segment.bytes": " +20 ",
            "preallocate": "TRUE",
            "min.cleanable.dirty.ratio": "1",
            "compression.type": "zstd",
            "compression.zstd.level": "-131072",
        }
    )
    assert config.compacts
    assert config.number("segment.bytes") == 20
    assert config.values["preallocate"] is True
    assert config.values["min.cleanable.dirty.ratio"] == 1.0
    assert config.number("compression.zstd.level") == -131072


@pytest.mark.parametrize(
    ("name", "legal", "illegal"),
    [
        ("segment.bytes", "14", "13"),
        ("segment.bytes", "2147483647", "2147483648"),
        ("retention.ms", "-1", "-2"),
        ("retention.bytes", "-5", "9223372036854775808"),
        ("compression.gzip.level", "-1", "0"),
        ("compression.gzip.level", "9", "10"),
        ("compression.lz4.level", "17", "18"),
        ("compression.zstd.level", "22", "23"),
        ("local.retention.ms", "-2", "-3"),
        ("segment.index.bytes", "4", "3"),
        ("max.compaction.lag.ms", "1", "0"),
        ("min.cleanable.dirty.ratio", "0", "nan"),
        ("segment.ms", "1", "1.0"),
        ("segment.ms", "7", ""),
        ("message.format.version", "2.8", "latest"),
    ],
)
def test_bounds(name: str, legal: str, illegal: str) -> None:
    read_topic_config({name: legal})
    with pytest.raises(OptionError, match=f"^{name} is '{illegal}', but"):
        read_topic_config({name: illegal})


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(OptionError, match=r"segment\.byte is no config"):
        read_topic_config({"segment.byte": "20"})


def test_lags_must_agree() -> None:
    lags = {"min.compaction.lag.ms": "200", "max.compaction.lag.ms": "200"}
    assert read_topic_config(lags).number("max.compaction.lag.ms") == 200
    with pytest.raises(OptionError, match="lower it"):
        read_topic_config(lags | {"min.compaction.lag.ms": "201"})


def test_a_word_is_no_number() -> None:
    with pytest.raises(TypeError, match=r"compression\.type"):
        read_topic_config({}).number("compression.type")


@given(st.sampled_from(sorted(read_topic_config({}).values)), st.text(max_size=20))
def test_any_text_is_read_or_refused(name: str, text: str) -> None:
    try:
        config = read_topic_config({name: text})
    except OptionError:
        return
    assert config.values.keys() == read_topic_config({}).values.keys()
