"""The values of a topic's configs: parsed, checked against each other, as a commit log stores them.

The rule: klog refuses what a broker refuses when a topic is created: unknown names, text that is
not a value of the type, values out of bounds, and values that contradict each other. Names,
defaults and bounds are those of `topic_config_defaults`. (Kafka's `LogConfig.validate`.)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from klog.errors import OptionError, nearest_name
from klog.logformat.topic_config_defaults import (
    BROKER_ONLY_CONFIGS,
    SAME_AS_TOTAL,
    TOPIC_CONFIGS,
    Value,
    klog_config_names,
)


@dataclass(frozen=True, slots=True)
class TopicConfig:
    """The value of each config of a topic by name: the topic's own value, else the default."""

    values: Mapping[str, Value]

    def number(self, name: str) -> int:
        """Return the value of a config whose type is a whole number.

        Args:
            name: The config.

        Raises:
            TypeError: The config has another type.
        """
        value = self.values[name]
        if not isinstance(value, int):
            raise TypeError(f"{name} is not a whole number")
        return value

    @property
    def has_compact_policy(self) -> bool:
        """Return whether a compaction may remove older values of a key."""
        return self._has_policy("compact")

    @property
    def has_delete_policy(self) -> bool:
        """Return whether retention may remove old segments."""
        return self._has_policy("delete")

    def _has_policy(self, name: str) -> bool:
        policies = self.values["cleanup.policy"]
        return isinstance(policies, tuple) and name in policies

    @property
    def local_retention_ms(self) -> int:
        """Return how long records stay on local disks if the topic is tiered."""
        local_ms = self.number("local.retention.ms")
        return self.number("retention.ms") if local_ms == SAME_AS_TOTAL else local_ms

    @property
    def local_retention_bytes(self) -> int:
        """Return how many bytes stay on local disks if the topic is tiered."""
        local_bytes = self.number("local.retention.bytes")
        return self.number("retention.bytes") if local_bytes == SAME_AS_TOTAL else local_bytes


def parse_topic_config(config: Mapping[str, str]) -> TopicConfig:
    """Return the values of a topic's configs, with Kafka's defaults.

    Args:
        config: Texts by name; any config of Kafka's.

    Raises:
        OptionError: A broker would refuse to create the topic.
    """
    values: dict[str, Value] = {name: default for name, (default, _) in TOPIC_CONFIGS.items()}
    for name, text in config.items():
        _check_known(name)
        try:
            values[name] = TOPIC_CONFIGS[name][1](text.strip())
        except ValueError as exc:
            raise OptionError(f"{name}: {exc}, got {text!r}") from exc
    topic_config = TopicConfig(MappingProxyType(values))
    _check_agreement(topic_config)
    return topic_config


def normalize_topic_config(config: Mapping[str, str]) -> dict[str, str]:
    """Return the configs of a klog topic as its commit log stores them.

    These are the texts without surrounding spaces; `compression.type=none` becomes Kafka's
    `uncompressed`.

    Args:
        config: Texts by name.

    Raises:
        OptionError: As `parse_topic_config`, or a config does nothing without brokers.
    """
    check_config_names(config)
    normalized = {name: text.strip() for name, text in config.items()}
    if normalized.get("compression.type") == "none":
        normalized["compression.type"] = "uncompressed"
    parse_topic_config(normalized)
    return normalized


def check_config_names(names: Iterable[str]) -> None:
    """Check that a klog topic takes configs of these names.

    Args:
        names: Names of configs, known or not.

    Raises:
        OptionError: A name is unknown, or the config does nothing without brokers.
    """
    for name in names:
        if name in BROKER_ONLY_CONFIGS:
            raise OptionError(
                f"{name}: does nothing in a klog topic: {BROKER_ONLY_CONFIGS[name]}. Leave it out"
            )
        _check_known(name)


def _check_known(name: str) -> None:
    if name in TOPIC_CONFIGS:
        return
    names = klog_config_names()
    nearest = nearest_name(name, names)
    fix = f"did you mean {nearest}?" if nearest else f"choose one of {', '.join(names)}"
    raise OptionError(f"{name}: not a topic config; {fix}")


def _check_agreement(config: TopicConfig) -> None:
    min_lag_ms = config.number("min.compaction.lag.ms")
    max_lag_ms = config.number("max.compaction.lag.ms")
    if min_lag_ms > max_lag_ms:
        raise OptionError(
            f"min.compaction.lag.ms: {min_lag_ms} is above max.compaction.lag.ms {max_lag_ms}; "
            "lower it"
        )
    if config.has_compact_policy and config.values["remote.storage.enable"]:
        raise OptionError(
            "remote.storage.enable: is true on a compacted topic; remove compact from "
            "cleanup.policy"
        )
