"""The default and the allowed values of each topic config (Kafka's `LogConfig`).

The rule: a config is written as text, as Kafka's tools take it, and parsed by the type that its
name has. Defaults and bounds are those of Kafka 4.2, except that `segment.bytes` may be as small as
14, as before Kafka 4.0; 4.2 allows 1 MiB and more. So a roll can be tried with small segments, and
readers read both. A klog topic takes fewer configs than a broker: `BROKER_ONLY_CONFIGS` says why.
Names that begin with `klog.` are klog's own: a broker does not know them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeAlias

Value: TypeAlias = int | float | bool | str | tuple[str, ...]
Parser: TypeAlias = Callable[[str], Value]
"""Returns the value of a text; raises `ValueError` with what the text must be."""

_MAX_INT = (1 << 31) - 1
_MAX_LONG = (1 << 63) - 1
_INTEGER = re.compile(r"([+-]?)0*([0-9]{1,19})")
"""A sign and the digits of a long; as in Java, any number of zeros may stand before them."""
_REPLICAS = re.compile(r"([0-9]+:[0-9]+)(,[0-9]+:[0-9]+)*")
_NO_VALUE = "\0"
"""A text that is the value of no config."""
_VERSION = re.compile(r"[0-9]+\.[0-9]+(\.[0-9]+)?(-IV[0-9]+)?")
COMMIT_RETENTION_MS = "klog.commit.retention.ms"
"""How long commits stay: for so long the history of a topic reaches, and its past at most."""
REMOVED_FILE_RETENTION_MS = "klog.removed.file.retention.ms"
"""How long the files of removed segments stay: for readers, and for reads of the past."""
SAME_AS_TOTAL = -2
"""A local retention that equals the topic's retention."""


def _integer(min_value: int, max_value: int, also: int | None = None) -> Parser:
    or_also = "" if also is None else f"{also} or "

    def parse(text: str) -> int:
        match = _INTEGER.fullmatch(text)
        number = int("".join(match.groups())) if match else None
        if number is None or not (min_value <= number <= max_value or number == also):
            raise ValueError(f"must be {or_also}a whole number from {min_value} to {max_value}")
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

TOPIC_CONFIGS: dict[str, tuple[Value, Parser]] = {
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
    COMMIT_RETENTION_MS: (30 * _DAY, _DURATION),
    REMOVED_FILE_RETENTION_MS: (_DAY, _DURATION),
    "local.retention.bytes": (SAME_AS_TOTAL, _integer(SAME_AS_TOTAL, _MAX_LONG)),
    "local.retention.ms": (SAME_AS_TOTAL, _integer(SAME_AS_TOTAL, _MAX_LONG)),
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
_ONE_STORE = "all segments are in one store; there is no second tier"

BROKER_ONLY_CONFIGS: dict[str, str] = {
    "file.delete.delay.ms": f"vacuum deletes files, after {REMOVED_FILE_RETENTION_MS}",
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
    "segment.jitter.ms": "each write begins new segments, so topics do not all roll at one time",
    "unclean.leader.election.enable": "klog has no replicas, so it elects no leader",
}
"""Configs of Kafka's that klog topics refuse, with the reason."""


def klog_config_names() -> list[str]:
    """Return the names of the configs that a klog topic takes."""
    return [name for name in TOPIC_CONFIGS if name not in BROKER_ONLY_CONFIGS]


def config_description(name: str) -> str:
    """Return what the value of a config must be, as errors say it.

    Args:
        name: A name of `TOPIC_CONFIGS`.
    """
    try:
        TOPIC_CONFIGS[name][1](_NO_VALUE)
    except ValueError as exc:
        return str(exc).removeprefix("must be ")
    raise AssertionError(f"{name}: takes any text")


def default_config_text(name: str) -> str:
    """Return the default of a config as a user would write it.

    Args:
        name: A name of `TOPIC_CONFIGS`.
    """
    value = TOPIC_CONFIGS[name][0]
    if isinstance(value, tuple):
        return ",".join(value)
    return str(value).lower() if isinstance(value, bool) else str(value)
