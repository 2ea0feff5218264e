"""LogConfigTest: what a topic's configs may be. A broker's ConfigException is an OptionError."""

from __future__ import annotations

from collections.abc import Mapping

from klog.errors import OptionError
from klog.logformat.topic_config import parse_topic_config
from tests.conformance.case import Case, NotApplicable, Refused

# What the test does not name is refused as "not_a_number" and as -1.
NAMED: dict[str, list[str]] = {
    "retention.bytes": ["not_a_number"],
    "retention.ms": ["not_a_number"],
    "cleanup.policy": ["true", "foobar"],
    "min.cleanable.dirty.ratio": ["-0.1", "1.2"],
    "min.insync.replicas": ["0", "-1"],
    "message.format.version": [""],
    "compression.gzip.level": ["-2"],
    "compression.lz4.level": ["-1"],
    "compression.zstd.level": ["-0.1"],
    "local.retention.ms": ["-3"],
    "local.retention.bytes": ["-3"],
    "message.downconversion.enable": ["not a boolean"],
    "preallocate": ["not a boolean"],
    "remote.log.copy.disable": ["not a boolean"],
    "remote.log.delete.on.disable": ["not a boolean"],
    "remote.storage.enable": ["not a boolean"],
    "unclean.leader.election.enable": ["not a boolean"],
}
OTHERS = [
    "compression.type",
    "delete.retention.ms",
    "file.delete.delay.ms",
    "flush.messages",
    "flush.ms",
    "follower.replication.throttled.replicas",
    "index.interval.bytes",
    "leader.replication.throttled.replicas",
    "max.compaction.lag.ms",
    "max.message.bytes",
    "message.timestamp.after.max.ms",
    "message.timestamp.before.max.ms",
    "message.timestamp.difference.max.ms",
    "message.timestamp.type",
    "min.compaction.lag.ms",
    "segment.bytes",
    "segment.index.bytes",
    "segment.jitter.ms",
    "segment.ms",
]
REFUSED = NAMED | {name: ["not_a_number", "-1"] for name in OTHERS}
THROTTLED = ("leader.replication.throttled.replicas", "follower.replication.throttled.replicas")


def read(options: Mapping[str, str], name: str) -> object:
    return parse_topic_config(options).values[name]


def local_retention(options: Mapping[str, str]) -> tuple[int, int]:
    config = parse_topic_config(options)
    return config.local_retention_ms, config.local_retention_bytes


def names() -> list[str]:
    """Return the configs that a broker knows too."""
    return sorted(name for name in parse_topic_config({}).values if not name.startswith("klog."))


CASES = [
    Case("24 testFromPropsInvalid", names, (), sorted(REFUSED), "each config is in the table"),
    *(
        Case(
            "24 testFromPropsInvalid",
            read,
            ({name: text}, name),
            Refused(OptionError, f", got {text!r}"),
            f"{name}={text}",
        )
        for name, texts in REFUSED.items()
        for text in texts
    ),
    Case("24 testFromPropsInvalid", read, ({"retention.ms": "-1"}, "retention.ms"), -1, "no limit"),
    Case(
        "24 testFromPropsInvalid",
        read,
        ({"retention.bytes": "-1"}, "retention.bytes"),
        -1,
        "no limit of bytes",
    ),
    Case(
        "24 testInvalidCompactionLagConfig",
        read,
        ({"max.compaction.lag.ms": "100", "min.compaction.lag.ms": "200"}, "segment.ms"),
        Refused(OptionError, "200 is above max.compaction.lag.ms 100"),
    ),
    *(
        Case(
            "24 shouldValidateThrottledReplicasConfig",
            read,
            ({name: text}, name),
            expect,
            f"{name}={text}",
        )
        for name in THROTTLED
        for text, expect in (
            ("*", ("*",)),
            ("", ()),
            ("100:10,12:10", ("100:10", "12:10")),
            ("100", Refused(OptionError, "partition:broker")),
            ("100:", Refused(OptionError, "partition:broker")),
            ("100:0,10", Refused(OptionError, "partition:broker")),
            ("*,100:10", Refused(OptionError, "partition:broker")),
        )
    ),
    Case(
        "24 testLocalLogRetentionDerivedProps",
        local_retention,
        ({"retention.ms": "3600000", "retention.bytes": "1024"},),
        (3600000, 1024),
    ),
    Case(
        "24 testLocalLogRetentionDerivedProps",
        local_retention,
        ({"retention.ms": "3600000", "local.retention.ms": "60", "local.retention.bytes": "7"},),
        (60, 7),
        "given",
    ),
    Case(
        "24 testEnableRemoteLogStorageOnCompactedTopic",
        read,
        ({"remote.storage.enable": "true", "cleanup.policy": "delete"}, "remote.storage.enable"),
        True,
        "deleting",
    ),
    *(
        Case(
            "24 testEnableRemoteLogStorageOnCompactedTopic",
            read,
            ({"remote.storage.enable": "true", "cleanup.policy": policy}, "cleanup.policy"),
            Refused(OptionError, "remote.storage.enable: is true on a compacted topic"),
            policy,
        )
        for policy in ("compact", "delete,compact", "compact,delete")
    ),
]

NOT_APPLICABLE: list[NotApplicable] = []
