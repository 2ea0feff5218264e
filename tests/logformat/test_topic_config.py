"""A topic's configs: defaults, what each may be, and what contradicts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klog.errors import OptionError
from klog.logformat.topic_config import (
    NEEDS_BROKERS,
    check_config_names,
    default_text,
    klog_config_names,
    klog_topic_config,
    read_topic_config,
)


def test_defaults() -> None:
    config = read_topic_config({})
    assert config.number("segment.bytes") == 1 << 30
    assert config.number("segment.ms") == config.number("retention.ms") == 604800000
    assert config.number("segment.index.bytes") == 10485760
    assert config.number("message.timestamp.after.max.ms") == 3_600_000  # Since Kafka 4.0.
    assert config.number("message.timestamp.before.max.ms") == (1 << 63) - 1
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


TAKEN = {
    "cleanup.policy": "compact,delete",
    "compression.gzip.level": "9",
    "compression.lz4.level": "17",
    "compression.type": "zstd",
    "compression.zstd.level": "22",
    "delete.retention.ms": "1",
    "index.interval.bytes": "4096",
    "max.compaction.lag.ms": "2",
    "max.message.bytes": "1000000",
    "message.timestamp.after.max.ms": "1",
    "message.timestamp.before.max.ms": "1",
    "message.timestamp.type": "LogAppendTime",
    "min.cleanable.dirty.ratio": "0.1",
    "min.compaction.lag.ms": "1",
    "retention.bytes": "-1",
    "retention.ms": "1",
    "segment.bytes": "1000",
    "segment.index.bytes": "1000",
    "segment.ms": "1",
}


def test_what_a_topic_of_klogs_takes_is_kept_as_it_was_given() -> None:
    assert klog_topic_config(TAKEN) == TAKEN
    assert klog_topic_config({name: f" {text} " for name, text in TAKEN.items()}) == TAKEN
    assert sorted(klog_config_names()) == sorted(TAKEN)


def test_each_of_kafkas_configs_is_taken_or_has_a_reason() -> None:
    assert NEEDS_BROKERS.keys() | TAKEN.keys() == read_topic_config({}).values.keys()
    assert not NEEDS_BROKERS.keys() & TAKEN.keys()


@pytest.mark.parametrize("name", sorted(NEEDS_BROKERS))
def test_what_needs_brokers_is_refused_with_the_reason(name: str) -> None:
    with pytest.raises(OptionError) as refused:
        klog_topic_config({name: "1"})
    assert str(refused.value).startswith(f"{name} does nothing in a topic of klog's: ")
    assert NEEDS_BROKERS[name] in str(refused.value)
    with pytest.raises(OptionError, match="does nothing"):
        check_config_names([name])


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("segment.byte", "did you mean segment.bytes?"),
        ("Retention.ms", "did you mean retention.ms?"),
        ("min.insync.replica", "those are cleanup.policy"),  # Never one that is refused.
        ("", "those are cleanup.policy"),
    ],
)
def test_an_unknown_name_gets_the_nearest_that_klog_takes(name: str, words: str) -> None:
    with pytest.raises(OptionError) as refused:
        klog_topic_config({name: "1"})
    assert str(refused.value).startswith(f"{name} is no config of a topic; {words}")


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("none", "uncompressed"),
        (" none ", "uncompressed"),
        ("uncompressed", "uncompressed"),
        ("producer", "producer"),
        ("lz4", "lz4"),
    ],
)
def test_no_compression_is_spelled_as_kafka_does(given: str, kept: str) -> None:
    assert klog_topic_config({"compression.type": given}) == {"compression.type": kept}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"compression.type": "brotli"}, "must be one of uncompressed, zstd"),
        ({"compression.type": "None"}, "must be one of uncompressed, zstd"),
        ({"compression.zstd.level": "23"}, "from -131072 to 22"),
        ({"compression.gzip.level": "0"}, "from 1 to 9"),
        ({"compression.lz4.level": "18"}, "from 1 to 17"),
        ({"cleanup.policy": "compact;delete"}, "compact, delete or both"),
        ({"max.compaction.lag.ms": "1", "min.compaction.lag.ms": "2"}, "lower it"),
        ({"retention.ms": "9" * 5000}, "retention.ms is"),
    ],
)
def test_values_are_held_to_kafkas_bounds(given: dict[str, str], words: str) -> None:
    with pytest.raises(OptionError, match=words):
        klog_topic_config(given)


@pytest.mark.parametrize("name", klog_config_names())
def test_a_default_is_written_as_it_would_be_read(name: str) -> None:
    values = read_topic_config({name: default_text(name)}).values
    assert values[name] == read_topic_config({}).values[name]
