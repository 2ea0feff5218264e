"""The configs of a topic: their names, defaults and allowed values (Kafka's `LogConfig`).

The rule: a config is written as text, as Kafka's tools take it, and parsed by the type that its
name has. klog refuses what a broker refuses when a topic is created: unknown names, text that is
not a value of the type, values out of bounds, and values that contradict each other.

Defaults and bounds are those of Kafka 4.2, except that `segment.bytes` may be as small as 14, as
before Kafka 4.0; 4.2 allows 1 MiB and more. So a roll can be tried with small segments, and readers
read both. A klog topic takes fewer configs than a broker: `BROKER_ONLY_CONFIGS` says why.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeAlias

from klog.errors import OptionError

Value: TypeAlias = int | float | bool | str | tuple[str, ...]
Parser: TypeAlias = Callable[[str], Value]
"""Returns the value of a text; raises `ValueError` that says what the text must be."""

_MAX_INT = (1 << 31) - 1
_MAX_LONG = (1 << 63) - 1
_INTEGER = re.compile(r"[+-]?[0-9]{1,30}")
_REPLICAS = re.compile(r"([0-9]+:[0-9]+)(,[0-9]+:[0-9]+)*")
_VERSION = re.compile(r"[0-9]+\.[0-9]+(\.[0-9]+)?(-IV[0-9]+)?")
_SAME_AS_TOTAL = -2
"""A local retention that equals the topic's retention."""


@dataclass(frozen=True, slots=True)
class TopicConfig:
    """The value of each config of a topic by name: the topic's own value, else the default."""

    values: Mapping[str, Value]

    def number(self, name: str) -> int:
        """Return the value of a config whose type is a whole number.

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
        return self.number("retention.ms") if local_ms == _SAME_AS_TOTAL else local_ms

    @property
    def local_retention_bytes(self) -> int:
        """Return how many bytes stay on local disks if the topic is tiered."""
        local_bytes = self.number("local.retention.bytes")
        return self.number("retention.bytes") if local_bytes == _SAME_AS_TOTAL else local_bytes


def parse_topic_config(config: Mapping[str, str]) -> TopicConfig:
    """Return the values of a topic's configs, with Kafka's defaults.

    Args:
        config: Texts by name; any config of Kafka's.

    Raises:
        OptionError: A broker would refuse to create the topic.
    """
    values: dict[str, Value] = {name: default for name, (default, _) in _CONFIGS.items()}
    for name, text in config.items():
        _check_known(name)
        try:
            values[name] = _CONFIGS[name][1](text.strip())
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

    Raises:
        OptionError: A name is unknown, or the config does nothing without brokers.
    """
    for name in names:
        if name in BROKER_ONLY_CONFIGS:
            raise OptionError(
                f"{name}: does nothing in a klog topic: {BROKER_ONLY_CONFIGS[name]}. Leave it out"
            )
        _check_known(name)


def klog_config_names() -> list[str]:
    """Return the names of the configs that a klog topic takes."""
    return [name for name in _CONFIGS if name not in BROKER_ONLY_CONFIGS]


def default_config_text(name: str) -> str:
    """Return the default of a config as a user would write it."""
    value = _CONFIGS[name][0]
    if isinstance(value, tuple):
        return ",".join(value)
    return str(value).lower() if isinstance(value, bool) else str(value)


def _check_known(name: str) -> None:
    if name in _CONFIGS:
        return
    names = klog_config_names()
    close = difflib.get_close_matches(name, names, n=1)
    fix = f"did you mean {close[0]}?" if close else f"choose one of {', '.join(names)}"
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


def _integer(min_value: int, max_value: int, also: int | None = None) -> Parser:
    def parse(text: str) -> int:
        number = int(text) if _INTEGER.fullmatch(text) else None
        if number is None or not (min_value <= number <= max_value or number == also):
            raise ValueError(f"must be a whole number from {min_value} to {max_value}")
        return number

    return parse


def _ratio(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number <= 1:
        raise ValueError("must be a number from 0 to 1")
    return number


def _boolean(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError("must be true or false")
    return text.lower() == "true"


def _one_of(*names: str) -> Parser:
    def parse(text: str) -> str:
        if text not in names:
            raise ValueError(f"must be one of {', '.join(names)}")
        return text

    return parse


def _policies(text: str) -> tuple[str, ...]:
    policies = tuple(name.strip() for name in text.split(",")) if text else ()
    if not set(policies) <= {"compact", "delete"}:
        raise ValueError("must be compact, delete or both")
    return policies


def _replicas(text: str) -> tuple[str, ...]:
    if text not in ("", "*") and not _REPLICAS.fullmatch(text):
        raise ValueError("must be * or partition:broker,partition:broker,...")
    return tuple(text.split(",")) if text else ()


def _version(text: str) -> str:
    if not _VERSION.fullmatch(text):
        raise ValueError("must be a version such as 3.0-IV1")
    return text


_BYTE_COUNT = _integer(0, _MAX_INT)
_DURATION = _integer(0, _MAX_LONG)
_HOUR = 3600 * 1000
_DAY = 24 * _HOUR

_CONFIGS: dict[str, tuple[Value, Parser]] = {
    "cleanup.policy": (("delete",), _policies),
    "compression.type": (
        "producer",
        _one_of("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"),
    ),
    "compression.gzip.level": (-1, _integer(1, 9, also=-1)),
    "compression.lz4.level": (9, _integer(1, 17)),
    "compression.zstd.level": (3, _integer(-131072, 22)),
    "delete.retention.ms": (_DAY, _DURATION),
    "file.delete.delay.ms": (60_000, _DURATION),
    "flush.messages": (_MAX_LONG, _integer(1, _MAX_LONG)),
    "flush.ms": (_MAX_LONG, _DURATION),
    "follower.replication.throttled.replicas": ((), _replicas),
    "index.interval.bytes": (4096, _BYTE_COUNT),
    "leader.replication.throttled.replicas": ((), _replicas),
    "local.retention.bytes": (_SAME_AS_TOTAL, _integer(_SAME_AS_TOTAL, _MAX_LONG)),
    "local.retention.ms": (_SAME_AS_TOTAL, _integer(_SAME_AS_TOTAL, _MAX_LONG)),
    "max.compaction.lag.ms": (_MAX_LONG, _integer(1, _MAX_LONG)),
    "max.message.bytes": (1048588, _BYTE_COUNT),
    "message.downconversion.enable": (True, _boolean),
    "message.format.version": ("3.0-IV1", _version),
    "message.timestamp.after.max.ms": (_HOUR, _DURATION),
    "message.timestamp.before.max.ms": (_MAX_LONG, _DURATION),
    "message.timestamp.difference.max.ms": (_MAX_LONG, _DURATION),
    "message.timestamp.type": ("CreateTime", _one_of("CreateTime", "LogAppendTime")),
    "min.cleanable.dirty.ratio": (0.5, _ratio),
    "min.compaction.lag.ms": (0, _DURATION),
    "min.insync.replicas": (1, _integer(1, _MAX_INT)),
    "preallocate": (False, _boolean),
    "remote.log.copy.disable": (False, _boolean),
    "remote.log.delete.on.disable": (False, _boolean),
    "remote.storage.enable": (False, _boolean),
    "retention.bytes": (-1, _integer(-_MAX_LONG - 1, _MAX_LONG)),
    "retention.ms": (7 * _DAY, _integer(-1, _MAX_LONG)),
    "segment.bytes": (1 << 30, _integer(14, _MAX_INT)),
    "segment.index.bytes": (10 << 20, _integer(4, _MAX_INT)),
    "segment.jitter.ms": (0, _DURATION),
    "segment.ms": (7 * _DAY, _integer(1, _MAX_LONG)),
    "unclean.leader.election.enable": (False, _boolean),
}
"""The default and the parser of each config."""

_NO_REPLICAS = "klog has no replicas; the store decides how many copies it keeps"
_DURABLE = "a write is durable when its commit is acknowledged"
_ONE_STORE = "all segments are in one store, there is no second tier"

BROKER_ONLY_CONFIGS: dict[str, str] = {
    "file.delete.delay.ms": "vacuum deletes files, after its grace period",
    "flush.messages": _DURABLE,
    "flush.ms": _DURABLE,
    "follower.replication.throttled.replicas": _NO_REPLICAS,
    "leader.replication.throttled.replicas": _NO_REPLICAS,
    "local.retention.bytes": _ONE_STORE,
    "local.retention.ms": _ONE_STORE,
    "message.downconversion.enable": "there is no broker that converts records for old clients",
    "message.format.version": "klog always writes message format v2",
    "message.timestamp.difference.max.ms": (
        "Kafka 4 replaced it by message.timestamp.before.max.ms and "
        "message.timestamp.after.max.ms, which klog takes"
    ),
    "min.insync.replicas": _NO_REPLICAS,
    "preallocate": "a segment is written at once, when its size is known",
    "remote.log.copy.disable": _ONE_STORE,
    "remote.log.delete.on.disable": _ONE_STORE,
    "remote.storage.enable": _ONE_STORE,
    "segment.jitter.ms": "segments roll within a write, so they do not all wait for one time",
    "unclean.leader.election.enable": "klog has no replicas, so it elects no leader",
}
"""Configs of Kafka's that klog topics refuse, with the reason."""
