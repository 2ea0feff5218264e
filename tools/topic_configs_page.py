"""Write docs/topic-configs.md from the table of topic configs: `make topic-configs`.

The rule: names, values, defaults and refusals are those that the code checks by
(`logformat/topic_config_defaults.py`). What a config means, and which parts of klog use it, is
written only in this module. A test compares the page with this module.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from klog.connector.commit_log.segment_writer import UNINDEXED_INTERVALS
from klog.logformat.batches.batch_limits import MAX_BATCH_BYTES
from klog.logformat.topic_config_defaults import (
    BROKER_ONLY_CONFIGS,
    COMMIT_RETENTION_MS,
    REMOVED_FILE_RETENTION_MS,
    config_description,
    default_config_text,
)
from tools.generated_part import markdown_table

PAGE = Path(__file__).parents[1] / "docs" / "topic-configs.md"


class ConfigMeaning(NamedTuple):
    """What a config means, and which parts of klog use it; both in Markdown."""

    meaning: str
    used_by: str


_WRITES = "[writes](options.md#writes)"
_COMPACT, _MERGE, _RETAIN, _VACUUM = (
    f"[{job}](jobs.md#{job})" for job in ("compact", "merge", "retain", "vacuum")
)
_EXPORT, _IMPORT = "[export-log](export.md)", "[import-log](adopt.md)"
_DELETE_RECORDS = "[delete-records](command-line.md#klog-delete-records)"
_LEVEL = "A write can set another level by its option of the same name."

SECTIONS: Mapping[str, Mapping[str, ConfigMeaning]] = {
    "How old records are removed": {
        "cleanup.policy": ConfigMeaning(
            "`delete`: retention removes old segments. `compact`: compaction removes each record "
            "whose key has a later record, and a write rejects rows without a key. "
            "`compact,delete`: both. An empty value: no retention and no compaction.",
            f"{_COMPACT}, {_RETAIN}, {_DELETE_RECORDS}, {_MERGE}, {_WRITES}",
        ),
        "retention.ms": ConfigMeaning(
            "Retention removes the oldest segment of a partition if its last record is older than "
            "this. -1: no limit. A merge joins only segments that together span at most a tenth of "
            "this time. The config has an effect only with `delete` in `cleanup.policy`.",
            f"{_RETAIN}, {_MERGE}",
        ),
        "retention.bytes": ConfigMeaning(
            "Retention removes the oldest segment of a partition if the other segments have at "
            "least this many bytes. A negative value: no limit. The config has an effect only with "
            "`delete` in `cleanup.policy`.",
            _RETAIN,
        ),
    },
    "Compaction": {
        "min.cleanable.dirty.ratio": ConfigMeaning(
            "Compaction cleans a partition only if more than this share of its bytes was written "
            "after the last compaction. `klog compact --min-dirty-ratio` replaces the config for "
            "one run.",
            _COMPACT,
        ),
        "min.compaction.lag.ms": ConfigMeaning(
            "Compaction leaves out a segment with a record younger than this, and all segments "
            "after this segment. The value must not be above `max.compaction.lag.ms`.",
            _COMPACT,
        ),
        "max.compaction.lag.ms": ConfigMeaning(
            "If a record waits for compaction longer than this, compaction cleans its partition, "
            "whatever `min.cleanable.dirty.ratio` says. Writes to a compacted topic also use this "
            "config instead of `segment.ms`, if it has the smaller value.",
            f"{_COMPACT}, {_WRITES}",
        ),
        "delete.retention.ms": ConfigMeaning(
            "How long a tombstone (a record with a null value) stays after the first compaction "
            "that reads it. The next compaction after this time removes the tombstone. If no "
            "records of a transaction remain, compaction removes its marker by the same rule.",
            _COMPACT,
        ),
    },
    "Compression": {
        "compression.type": ConfigMeaning(
            "The codec of new batches. `producer` is klog's own codec, `zstd`. The option "
            "`compression.type` of a write wins over the config. klog also accepts `none`, and "
            "stores it as `uncompressed`. Existing batches keep their codec, also in a "
            "compaction.",
            _WRITES,
        ),
        "compression.gzip.level": ConfigMeaning(
            f"The level of gzip. -1 is the default level of gzip. {_LEVEL}", _WRITES
        ),
        "compression.lz4.level": ConfigMeaning(f"The level of lz4. {_LEVEL}", _WRITES),
        "compression.zstd.level": ConfigMeaning(f"The level of zstd. {_LEVEL}", _WRITES),
    },
    "Records that a write accepts": {
        "max.message.bytes": ConfigMeaning(
            "The maximum size of a batch after compression, with its header. `segment.bytes` and "
            f"{MAX_BATCH_BYTES >> 20} MiB are maximums too. A record that is larger than the "
            "write's option `batch.size` is a batch of its own. If this batch is too large after "
            "compression, the write rejects the row. A write can set another value by its option "
            "of the same name.",
            _WRITES,
        ),
        "message.timestamp.type": ConfigMeaning(
            "`CreateTime`: a record has the timestamp of its row, or the time of the write if the "
            "row has none. `LogAppendTime`: a record has the time of the write.",
            _WRITES,
        ),
        "message.timestamp.before.max.ms": ConfigMeaning(
            "A write rejects a row if its timestamp is earlier than the time of the write by more "
            "than this. The config has no effect with `LogAppendTime`.",
            _WRITES,
        ),
        "message.timestamp.after.max.ms": ConfigMeaning(
            "A write rejects a row if its timestamp is later than the time of the write by more "
            "than this. The config has no effect with `LogAppendTime`.",
            _WRITES,
        ),
    },
    "Segments and their indexes": {
        "segment.bytes": ConfigMeaning(
            "The maximum size of a segment that a write makes. A compaction and a merge join "
            "segments only up to this size. A write can set another value by its option of the "
            "same name.",
            f"{_WRITES}, {_COMPACT}, {_MERGE}",
        ),
        "segment.ms": ConfigMeaning(
            "A write begins a new segment if a batch would make the segment span more than this "
            "time. The write compares the last timestamp of the batch with that of the first batch "
            "of the segment. A merge joins only segments that together span at most this time.",
            f"{_WRITES}, {_MERGE}",
        ),
        "segment.index.bytes": ConfigMeaning(
            "The maximum size of an index file. A write begins a new segment if an index is full. "
            "A compaction and a merge join segments only if their indexes fit.",
            f"{_WRITES}, {_COMPACT}, {_MERGE}, {_EXPORT}",
        ),
        "index.interval.bytes": ConfigMeaning(
            "The minimum number of bytes of the log between two entries of an index. A segment "
            f"with less than {UNINDEXED_INTERVALS} times this size has no index files, except in "
            "an export.",
            f"{_WRITES}, {_COMPACT}, {_MERGE}, {_IMPORT}, {_EXPORT}",
        ),
    },
    "Old versions and removed files": {
        COMMIT_RETENTION_MS: ConfigMeaning(
            "How long vacuum keeps commits, which are the history of the topic. "
            "`klog vacuum --log-retention` replaces it for one run. You can read [earlier versions]"
            "(topics.md#the-past) only as long as their commits exist. A broker does not know this "
            "config.",
            _VACUUM,
        ),
        REMOVED_FILE_RETENTION_MS: ConfigMeaning(
            "How long vacuum keeps the files of segments that a commit removed. "
            "`klog vacuum --grace` replaces it for one run. Set it to more than the duration of "
            "your longest read and write: [vacuum](topics.md#vacuum) says why. A broker does not "
            "know this config.",
            _VACUUM,
        ),
    },
}
"""The configs that a klog topic takes, by the headings of the page."""

_TOP = """\
# Topic configs

This page lists the configs of a klog topic: their values, their defaults, what they mean, and which
parts of klog use them. It also lists the configs of Kafka that klog refuses.

Set a config, show the configs that are set, and set one back to its default:

```sh
klog configs --root /data/klog --topic orders --config retention.ms=86400000
klog configs --root /data/klog --topic orders
klog configs --root /data/klog --topic orders --delete-config retention.ms
```

```text
Completed updating config for topic orders.
Configs for topic orders are:
  retention.ms=86400000
Completed updating config for topic orders.
```

`klog configs --all` shows the defaults too. `klog topics create --config` sets configs of a new
topic. In Python, use `create_topic` and `alter_config` of [klog.open](embedded.md#manage-topics).

## Rules

* Names, meanings, defaults and bounds are those of a broker of Kafka 4.2, except for the configs
  that begin with `klog.`, and for `segment.bytes`.
* The minimum of `segment.bytes` is 14, as in Kafka before 4.0, so that tests can use small
  segments. The minimum of Kafka 4.2 is 1048576. If a broker must be able to use the config, set
  1048576 or more.
* klog checks a config as a broker does: its name, its type and its bounds. It also checks that
  `min.compaction.lag.ms` is not above `max.compaction.lag.ms`. If a config has no effect without
  brokers, klog refuses it ([Refused configs](#refused-configs)).
* A config that you change has an effect on later writes and on later runs of jobs. klog does not
  rewrite existing segments because of it. Jobs run only when you start them, so `retention.ms`
  removes nothing until `klog retain` runs.
* Whatever the configs say, a write rejects a row if its timestamp is before 1970, or if the
  timestamp in milliseconds does not fit in 64 bits. One value before 1970 is allowed: -1 ms, which
  means "no timestamp".
* Times are in milliseconds, sizes in bytes.
* You set a config for a topic, and not for the whole root. A root has only the setting
  `num.partitions`: the number of partitions of a new topic if you give no number.
"""
_REFUSED = """\
## Refused configs

These configs of Kafka have no effect without brokers. If you set one, klog changes nothing, and the
error gives the reason.
"""
_MAKE = """\
`make topic-configs` writes this page from `tools/topic_configs_page.py` and
`logformat/topic_config_defaults.py`.
"""
_POWERS = {str((1 << power) - 1): f"2^{power} - 1" for power in (31, 63)} | {
    str(-(1 << 63)): "-2^63"
}
_MS_UNITS = {"day": 86_400_000, "hour": 3_600_000, "minute": 60_000}
_BYTE_UNITS = {"GiB": 1 << 30, "MiB": 1 << 20, "KiB": 1 << 10}


def topic_configs_page() -> str:
    """Return the text of docs/topic-configs.md."""
    sections = [f"## {title}\n\n{_table(configs)}" for title, configs in SECTIONS.items()]
    return "\n".join([_TOP, *sections, f"{_REFUSED}\n{_refused_table()}", _MAKE])


def _table(configs: Mapping[str, ConfigMeaning]) -> str:
    return markdown_table(
        ("config", "value", "default", "meaning", "used by"),
        (
            (f"`{name}`", _value(name), _default(name), config.meaning, config.used_by)
            for name, config in configs.items()
        ),
    )


def _value(name: str) -> str:
    return re.sub(r"-?[0-9]{10,}", lambda number: _POWERS[number[0]], config_description(name))


def _default(name: str) -> str:
    text = default_config_text(name)
    readable = _POWERS.get(text) or _in_units(name, text)
    return f"`{text}`" + (f" ({readable})" if readable else "")


def _in_units(name: str, text: str) -> str:
    """Return a time or a size in its largest unit that divides it; empty if there is none."""
    units = {".ms": _MS_UNITS, "tes": _BYTE_UNITS}.get(name[-3:], {})
    for unit, size in units.items():
        number, rest = divmod(int(text), size)
        if number > 0 and not rest:
            plural = "s" if units is _MS_UNITS and number > 1 else ""
            return f"{number} {unit}{plural}"
    return ""


def _refused_table() -> str:
    return markdown_table(("config", "reason"), _refused_rows())


def _refused_rows() -> Iterator[tuple[str, str]]:
    """Yield a row for each reason, with all configs that are refused for it."""
    for reason in dict.fromkeys(BROKER_ONLY_CONFIGS.values()):
        names = [name for name, other in BROKER_ONLY_CONFIGS.items() if other == reason]
        yield ", ".join(f"`{name}`" for name in names), reason


if __name__ == "__main__":
    PAGE.write_text(topic_configs_page())
