"""A topic's configs: their names, defaults and what they may be (Kafka's `LogConfig`).

A config is written as text, as Kafka's tools take it, and read by the type its name has. What a
broker refuses at the creation of a topic is refused here: a name it does not know, text that is no
value of the type, a value out of bounds, and values that contradict one another.

Defaults and bounds are those of Kafka 4.2, but for `segment.bytes`, whose minimum there is 1 MiB:
14 is Kafka's before 4.0. A roll is cheap to try with small segments, and readers do not mind.

A topic of klog's takes fewer: `NEEDS_BROKERS` says of each of the others why it would do nothing.
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

_MAX_INT = (1 << 31) - 1
_MAX_LONG = (1 << 63) - 1
_INTEGER = re.compile(r"[+-]?[0-9]+")
_REPLICAS = re.compile(r"([0-9]+:[0-9]+)(,[0-9]+:[0-9]+)*")
_VERSION = re.compile(r"[0-9]+\.[0-9]+(\.[0-9]+)?(-IV[0-9]+)?")
_DERIVED = -2
"""A local retention that is the topic's whole retention."""


@dataclass(frozen=True, slots=True)
class TopicConfig:
    """The value of each config of a topic, by its name: as given, else the default."""

    values: Mapping[str, Value]

    def number(self, name: str) -> int:
        """Give a config that is a whole number."""
        value = self.values[name]
        if not isinstance(value, int):
            raise TypeError(f"{name} is no whole number")
        return value

    @property
    def compacts(self) -> bool:
        """Tell whether old values of a key may go."""
        return self._has_policy("compact")

    @property
    def deletes(self) -> bool:
        """Tell whether old segments may go."""
        return self._has_policy("delete")

    def _has_policy(self, name: str) -> bool:
        policies = self.values["cleanup.policy"]
        return isinstance(policies, tuple) and name in policies

    @property
    def local_retention_ms(self) -> int:
        """Give how long records stay on local disks where the topic is tiered."""
        local = self.number("local.retention.ms")
        return self.number("retention.ms") if local == _DERIVED else local

    @property
    def local_retention_bytes(self) -> int:
        """Give how much stays on local disks where the topic is tiered."""
        local = self.number("local.retention.bytes")
        return self.number("retention.bytes") if local == _DERIVED else local


def read_topic_config(given: Mapping[str, str]) -> TopicConfig:
    """Read a topic's configs; `OptionError` where a broker would refuse to make the topic."""
    values: dict[str, Value] = {name: default for name, (default, _) in _CONFIGS.items()}
    for name, text in given.items():
        if name not in _CONFIGS:
            raise OptionError(f"{name} is no config of a topic; {_nearest(name)}")
        try:
            values[name] = _CONFIGS[name][1](text.strip())
        except ValueError as exc:
            raise OptionError(f"{name} is {text!r}, but {exc}") from exc
    config = TopicConfig(MappingProxyType(values))
    least, most = config.number("min.compaction.lag.ms"), config.number("max.compaction.lag.ms")
    if least > most:
        raise OptionError(
            f"min.compaction.lag.ms {least} is above max.compaction.lag.ms {most}; lower it"
        )
    if config.compacts and values["remote.storage.enable"]:
        raise OptionError(
            "remote.storage.enable is true on a compacted topic; take compact out of cleanup.policy"
        )
    return config


def klog_topic_config(given: Mapping[str, str]) -> dict[str, str]:
    """Check the configs of a topic that klog keeps; gives them as they are to be kept.

    That is as given, without spaces around; `compression.type=none` becomes Kafka's `uncompressed`.
    Raises `OptionError` as `read_topic_config`, and for what has no meaning without brokers.
    """
    check_config_names(given)
    kept = {name: text.strip() for name, text in given.items()}
    if kept.get("compression.type") == "none":
        kept["compression.type"] = "uncompressed"
    read_topic_config(kept)
    return kept


def check_config_names(names: Iterable[str]) -> None:
    """Raise `OptionError` for a name that no topic of klog's takes, with the reason."""
    for name in names:
        if name in NEEDS_BROKERS:
            raise OptionError(
                f"{name} does nothing in a topic of klog's: {NEEDS_BROKERS[name]}. Leave it out"
            )
        if name not in _CONFIGS:
            raise OptionError(f"{name} is no config of a topic; {_nearest(name)}")


def klog_config_names() -> list[str]:
    """Name the configs that a topic of klog's takes."""
    return [name for name in _CONFIGS if name not in NEEDS_BROKERS]


def default_text(name: str) -> str:
    """Give the default of a config as it would be written."""
    value = _CONFIGS[name][0]
    if isinstance(value, tuple):
        return ",".join(value)
    return str(value).lower() if isinstance(value, bool) else str(value)


def _nearest(name: str) -> str:
    close = difflib.get_close_matches(name, klog_config_names(), n=1)
    if close:
        return f"did you mean {close[0]}?"
    return f"those are {', '.join(klog_config_names())}"


Read: TypeAlias = Callable[[str], Value]


def _integer(least: int, most: int, besides: int | None = None) -> Read:
    def read(text: str) -> int:
        number = int(text) if _INTEGER.fullmatch(text) else None
        if number is None or not (least <= number <= most or number == besides):
            raise ValueError(f"must be a whole number from {least} to {most}")
        return number

    return read


def _ratio(text: str) -> float:
    number = float(text)
    if not 0 <= number <= 1:
        raise ValueError("must be from 0 to 1")
    return number


def _boolean(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError("must be true or false")
    return text.lower() == "true"


def _one_of(*names: str) -> Read:
    def read(text: str) -> str:
        if text not in names:
            raise ValueError(f"must be one of {', '.join(names)}")
        return text

    return read


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


_COUNT_OF_BYTES = _integer(0, _MAX_INT)
_DURATION = _integer(0, _MAX_LONG)
_HOUR = 3600 * 1000
_DAY = 24 * _HOUR

_CONFIGS: dict[str, tuple[Value, Read]] = {
    "cleanup.policy": (("delete",), _policies),
    "compression.type": (
        "producer",
        _one_of("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"),
    ),
    "compression.gzip.level": (-1, _integer(1, 9, besides=-1)),
    "compression.lz4.level": (9, _integer(1, 17)),
    "compression.zstd.level": (3, _integer(-131072, 22)),
    "delete.retention.ms": (_DAY, _DURATION),
    "file.delete.delay.ms": (60_000, _DURATION),
    "flush.messages": (_MAX_LONG, _integer(1, _MAX_LONG)),
    "flush.ms": (_MAX_LONG, _DURATION),
    "follower.replication.throttled.replicas": ((), _replicas),
    "index.interval.bytes": (4096, _COUNT_OF_BYTES),
    "leader.replication.throttled.replicas": ((), _replicas),
    "local.retention.bytes": (_DERIVED, _integer(_DERIVED, _MAX_LONG)),
    "local.retention.ms": (_DERIVED, _integer(_DERIVED, _MAX_LONG)),
    "max.compaction.lag.ms": (_MAX_LONG, _integer(1, _MAX_LONG)),
    "max.message.bytes": (1048588, _COUNT_OF_BYTES),
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

_NO_REPLICAS = "klog has no replicas; how often bytes are kept is the store's"
_DURABLE = "a write is durable when its commit is acknowledged"
_ONE_STORE = "all segments are on one store, there is no second tier"

NEEDS_BROKERS: dict[str, str] = {
    "file.delete.delay.ms": "files go when vacuum runs, and its grace says how late",
    "flush.messages": _DURABLE,
    "flush.ms": _DURABLE,
    "follower.replication.throttled.replicas": _NO_REPLICAS,
    "leader.replication.throttled.replicas": _NO_REPLICAS,
    "local.retention.bytes": _ONE_STORE,
    "local.retention.ms": _ONE_STORE,
    "message.downconversion.enable": "no broker stands between to convert for old clients",
    "message.format.version": "klog writes message format v2, always",
    "message.timestamp.difference.max.ms": (
        "Kafka 4 has message.timestamp.before.max.ms and message.timestamp.after.max.ms in its "
        "place, which klog takes"
    ),
    "min.insync.replicas": _NO_REPLICAS,
    "preallocate": "a segment is written whole, once its size is known",
    "remote.log.copy.disable": _ONE_STORE,
    "remote.log.delete.on.disable": _ONE_STORE,
    "remote.storage.enable": _ONE_STORE,
    "segment.jitter.ms": "segments roll within a write, so none wait to roll all at once",
    "unclean.leader.election.enable": "klog has no replicas, so none is elected",
}
"""Configs that Kafka knows and klog's topics refuse, with the reason."""
