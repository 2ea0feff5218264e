"""The configs of a topic: defaults, allowed values and contradictions."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klog.errors import OptionError
from klog.logformat.topic_config import (
    check_config_names,
    normalize_topic_config,
    parse_topic_config,
)
from klog.logformat.topic_config_defaults import (
    BROKER_ONLY_CONFIGS,
    TOPIC_CONFIGS,
    config_description,
    default_config_text,
    klog_config_names,
)


def test_defaults_are_kafkas() -> None:
    config = parse_topic_config({})
    assert config.number("segment.bytes") == 1 << 30
    assert config.number("segment.ms") == config.number("retention.ms") == 604800000
    assert config.number("segment.index.bytes") == 10485760
    assert config.number("message.timestamp.after.max.ms") == 3_600_000  # Since Kafka 4.0.
    assert config.number("message.timestamp.before.max.ms") == (1 << 63) - 1
    assert config.values["cleanup.policy"] == ("delete",)
    assert config.values["min.cleanable.dirty.ratio"] == 0.5
    assert not config.has_compact_policy


@pytest.mark.parametrize("name", TOPIC_CONFIGS)
def test_description_is_what_an_error_says(name: str) -> None:
    description = config_description(name)
    with pytest.raises(OptionError) as error:
        parse_topic_config({name: "?"})
    assert str(error.value) == f"{name}: must be {description}, got '?'"


def test_values_are_parsed_by_their_type() -> None:
    config = parse_topic_config(
        {
            "cleanup.policy": "compact, delete",
            "segment.bytes": " +20 ",
            "preallocate": "TRUE",
            "min.cleanable.dirty.ratio": "1",
            "compression.type": "zstd",
            "compression.zstd.level": "-131072",
        }
    )
    assert config.has_compact_policy
    assert config.number("segment.bytes") == 20
    assert config.values["preallocate"] is True
    assert config.values["min.cleanable.dirty.ratio"] == 1.0
    assert config.number("compression.zstd.level") == -131072


@pytest.mark.parametrize("zeros", [30, 5000])
def test_zeros_may_stand_before_a_number(zeros: int) -> None:
    """A topic that is stored with such a number stays readable."""
    text = "0" * zeros
    assert parse_topic_config({"retention.ms": f"-{text}1"}).number("retention.ms") == -1
    assert parse_topic_config({"segment.bytes": f"+{text}20"}).number("segment.bytes") == 20


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
def test_values_out_of_bounds_are_refused(name: str, legal: str, illegal: str) -> None:
    parse_topic_config({name: legal})
    with pytest.raises(OptionError, match=rf"^{name}: must be .*, got '{illegal}'$"):
        parse_topic_config({name: illegal})


def test_unknown_name_is_refused() -> None:
    with pytest.raises(OptionError, match=r"segment\.byte: not a topic config"):
        parse_topic_config({"segment.byte": "20"})


def test_lags_must_agree() -> None:
    lags = {"min.compaction.lag.ms": "200", "max.compaction.lag.ms": "200"}
    assert parse_topic_config(lags).number("max.compaction.lag.ms") == 200
    with pytest.raises(OptionError, match="lower it"):
        parse_topic_config(lags | {"min.compaction.lag.ms": "201"})


def test_text_config_is_not_a_number() -> None:
    with pytest.raises(TypeError, match=r"compression\.type"):
        parse_topic_config({}).number("compression.type")


@given(st.sampled_from(sorted(parse_topic_config({}).values)), st.text(max_size=20))
def test_any_text_is_parsed_or_refused(name: str, text: str) -> None:
    try:
        config = parse_topic_config({name: text})
    except OptionError:
        return
    assert config.values.keys() == parse_topic_config({}).values.keys()


KLOG_CONFIG = {
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
    "klog.commit.retention.ms": "1",
    "klog.removed.file.retention.ms": "0",
    "min.cleanable.dirty.ratio": "0.1",
    "min.compaction.lag.ms": "1",
    "retention.bytes": "-1",
    "retention.ms": "1",
    "segment.bytes": "1000",
    "segment.index.bytes": "1000",
    "segment.ms": "1",
}


def test_klog_configs_are_stored_without_spaces() -> None:
    assert normalize_topic_config(KLOG_CONFIG) == KLOG_CONFIG
    assert (
        normalize_topic_config({name: f" {text} " for name, text in KLOG_CONFIG.items()})
        == KLOG_CONFIG
    )
    assert sorted(klog_config_names()) == sorted(KLOG_CONFIG)


def test_each_config_of_kafka_is_taken_or_has_a_reason() -> None:
    assert BROKER_ONLY_CONFIGS.keys() | KLOG_CONFIG.keys() == parse_topic_config({}).values.keys()
    assert not BROKER_ONLY_CONFIGS.keys() & KLOG_CONFIG.keys()


@pytest.mark.parametrize("name", sorted(BROKER_ONLY_CONFIGS))
def test_broker_only_config_is_refused_with_the_reason(name: str) -> None:
    with pytest.raises(OptionError) as error:
        normalize_topic_config({name: "1"})
    assert str(error.value).startswith(f"{name}: does nothing in a klog topic: ")
    assert BROKER_ONLY_CONFIGS[name] in str(error.value)
    with pytest.raises(OptionError, match="does nothing"):
        check_config_names([name])


@pytest.mark.parametrize(
    ("name", "fix"),
    [
        ("segment.byte", "did you mean segment.bytes?"),
        ("Retention.ms", "did you mean retention.ms?"),
        ("min.insync.replica", "choose one of cleanup.policy"),  # Not a broker-only config.
        ("", "choose one of cleanup.policy"),
    ],
)
def test_error_of_an_unknown_name_suggests_a_klog_config(name: str, fix: str) -> None:
    with pytest.raises(OptionError) as error:
        normalize_topic_config({name: "1"})
    assert str(error.value).startswith(f"{name}: not a topic config; {fix}")


@pytest.mark.parametrize(
    ("text", "stored"),
    [
        ("none", "uncompressed"),
        (" none ", "uncompressed"),
        ("uncompressed", "uncompressed"),
        ("producer", "producer"),
        ("lz4", "lz4"),
    ],
)
def test_no_compression_is_spelled_as_kafka_does(text: str, stored: str) -> None:
    assert normalize_topic_config({"compression.type": text}) == {"compression.type": stored}


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"compression.type": "brotli"}, "must be one of uncompressed, zstd"),
        ({"compression.type": "None"}, "must be one of uncompressed, zstd"),
        ({"compression.zstd.level": "23"}, "from -131072 to 22"),
        ({"compression.gzip.level": "0"}, "-1 or a whole number from 1 to 9"),
        ({"compression.lz4.level": "18"}, "from 1 to 17"),
        ({"cleanup.policy": "compact;delete"}, "compact, delete or both"),
        ({"max.compaction.lag.ms": "1", "min.compaction.lag.ms": "2"}, "lower it"),
        ({"retention.ms": "9" * 5000}, "retention.ms: must be a whole number"),
    ],
)
def test_values_are_held_to_kafkas_bounds(config: dict[str, str], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        normalize_topic_config(config)


@pytest.mark.parametrize("name", klog_config_names())
def test_default_text_parses_to_the_default(name: str) -> None:
    values = parse_topic_config({name: default_config_text(name)}).values
    assert values[name] == parse_topic_config({}).values[name]
