"""Write docs/options.md from the table of options: `make options`.

The rule: the page says what the code does, because it is made of the rows that the code parses by.
A test holds the page to this module.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from textwrap import fill
from typing import Any

from klog.connector.options.as_of import AS_OF_TIMESTAMP
from klog.connector.options.offset_range_values import OFFSET_RANGE_LIMIT, TIMESTAMP
from klog.connector.options.option import Option, Use
from klog.connector.options.option_map import REFUSED_KEYS
from klog.connector.options.option_table import OPTION_TABLE
from klog.connector.options.write_option_table import SEGMENT_OPTIONS, TOPIC_CONFIGS
from klog.logformat.topic_config_defaults import config_description
from tools.generated_part import markdown_table

PAGE = Path(__file__).parents[1] / "docs" / "options.md"

_TOP = """\
# Options

This page lists the options of reads, writes and stores: their values, their defaults and what they
mean. Most names and meanings are those of Spark's Kafka connector.

```python
orders = spark.read.format("klog").option("subscribe", "orders").load("/data/klog")
df.write.format("klog").option("topic", "copies").mode("append").save("/data/klog")
print(orders.count())
```

```text
100
```

* klog ignores capitals in the names of options: `startingoffsets` is `startingOffsets`.
* An unknown option is an error. The error names the most similar option.
* "for" says which calls take the option: "batch" means `spark.read` and `df.write`, "stream" means
  `spark.readStream` and `df.writeStream`. Under [Batches and segments](#batches-and-segments), a
  batch is Kafka's [record batch](glossary.md).
"""
_READ = """\
## Reads

Options of `spark.read` and `spark.readStream`.
"""
_LOAD = """
Spark does not say at `load()` whether the read is a batch or a stream. An option that is wrong for
both is an error at `load()`. An option that is wrong for one of them is an error when the batch
runs or the stream starts.
"""
_FORMS = """\
### Offsets and times

`startingOffsets` and `endingOffsets` are options for offsets. `startingTimestamp`,
`endingTimestamp` and `asOfTimestamp` are options for times. The column "for" says which of them
take a form. Options with `ByTimestamp` in their name take only JSON of times in ms.

| form | for | meaning |
| --- | --- | --- |
| `earliest` | offsets | the log start offset of each partition |
| `latest` | offsets | the end of each partition, see below |
| `{"orders": {"0": 23, "1": -2}}` | offsets | in this JSON, -2 is earliest and -1 is latest |
| `-100` | offsets | the last 100 offsets of each partition |
| `now`, `now-10m` | both | now, and ten minutes ago; units are `ms`, `s`, `m`, `h`, `d` and `w` |
| `2026-11-01T00:00:00Z` | both | a date and time with its zone |
| `1793491200000` | times | a time in ms since 1970 |
| `-1`, `-2`, `-3` | times | latest, earliest, and the record with the largest timestamp |

`asOfTimestamp` does not take `-1`, `-2` and `-3`.

**`-1` has three meanings.** As a value of `startingOffsets` it is the last offset of each
partition. In JSON of offsets it is the end, as in Kafka. As a time it is the end, too.

`latest` is the log end offset of each partition. But
with `read_committed` it is the offset before the first open transaction, if there is one: the
[last stable offset](glossary.md).

### Sizes and durations

A size is a number of bytes, or a number with `k`, `m`, `g`, `t` or `p`. Each unit is 1024 times the
unit before. A duration is a number of ms, or a number with `us`, `ms`, `s`, `m`, `min`, `h` or `d`.
These are Spark's units.
"""
_WRITE = """\
## Writes

Options of `df.write` and `df.writeStream`. Those under
[Batches and segments](#batches-and-segments) are also `options=` of `klog.open(...).append`.
"""
_READ_GROUPS: Mapping[str, Sequence[str]] = {
    "Topics and partitions": ("path", "paths", "subscribe", "subscribePattern", "assign"),
    "Start and end": (
        "startingOffsets",
        "startingTimestamp",
        "startingOffsetsByTimestamp",
        "startingOffsetsByTimestampStrategy",
        "endingOffsets",
        "endingTimestamp",
        "endingOffsetsByTimestamp",
        "asOfVersion",
        "asOfTimestamp",
    ),
    "Records and columns": ("isolationLevel", "includeHeaders", "columns", "failOnDataLoss"),
    "Tasks": ("minPartitions", "maxRecordsPerPartition", "maxBytesPerPartition", "engine"),
    "Micro-batches": (
        "maxOffsetsPerTrigger",
        "maxBytesPerTrigger",
        "minOffsetsPerTrigger",
        "maxTriggerDelay",
    ),
}
_WRITE_GROUPS: Mapping[str, Sequence[str]] = {
    "Topic and writer": (
        "path",
        "topic",
        "createTopic",
        "numPartitions",
        "transactionalId",
        "transactionVersion",
        "deadLetterTopic",
        "includeHeaders",
    ),
    "Engine of a write": ("engine", "distributionMode"),
    "Batches and segments": tuple(row.name for row in SEGMENT_OPTIONS),
}
_STORAGE = """\
## Stores

Options of reads and writes. `klog.open` and `klog.register` take them as keywords without
`storage.`. Most jobs in Python take them as `storage={"endpoint": ...}`. The jobs `to_delta`,
`from_delta`, `to_files` and `import_files` take them as `options={"storage.endpoint": ...}`, and
their commands as `--option storage.endpoint=...`. [SQL](sql.md#secrets) has rules of its own for
secrets. Values that you do not set come from the
environment ([stores](stores.md#options)). Errors and logs of klog do not show secrets.
"""
_NO_EFFECT = """\
## Options of Kafka's clients

To move a job from `format("kafka")` to `format("klog")`, change its format and its path
([migrating](migrating.md)). These options of Kafka's clients set the option of klog with the same
name without `kafka.`. For example, `kafka.isolation.level` sets `isolationLevel`.

{aliases}.

All other options that begin with `kafka.` have no effect. In a read, `kafkaConsumer.*`,
`fetchOffset.*` and `groupIdPrefix` have no effect either. One warning names these options. A read
refuses the options that Spark's Kafka connector refuses:

{of_read}
A write refuses these:

{of_write}"""
_PLANNED = """\
## Not supported yet

A read with one of these options is an error. A later version of klog will support them.
"""

_MAKE = """\
`make options` writes this page from the table of options (`connector/options/option_table.py`).
"""


def options_page() -> str:
    """Return the text of docs/options.md."""
    aliases = [row.kafka_name for row in OPTION_TABLE if row.kafka_name]
    sections = [
        _TOP,
        _READ + _LOAD,
        *_tables(Use.READ, _READ_GROUPS),
        _FORMS,
        _WRITE,
        *_tables(Use.WRITE, _WRITE_GROUPS),
        _STORAGE + "\n" + _storage_table(),
        _NO_EFFECT.format(
            aliases=_wrapped(f"`{name}`" for name in aliases),
            of_read=_refused(Use.READ),
            of_write=_refused(Use.WRITE),
        ),
        _PLANNED + "\n" + _planned_table(),
    ]
    return "\n".join([*sections, _MAKE])


def _wrapped(names: Iterable[str]) -> str:
    return fill(", ".join(names), 100, break_long_words=False)


def _rows(use: Use) -> list[Option[Any]]:
    return [row for row in OPTION_TABLE if row.use is use and row.is_supported]


def _tables(use: Use, groups: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Yield a heading and a table for each group; each option is in one group."""
    rows = {row.name: row for row in _rows(use)}
    for title, names in groups.items():
        yield f"### {title}\n\n{_table([rows.pop(name) for name in names])}"
    if rows:
        raise ValueError(f"no table has {', '.join(rows)}; add them to the groups of options_page")


def _table(rows: Sequence[Option[Any]]) -> str:
    return markdown_table(
        ("option", "value", "default", "for", "meaning"),
        ((f"`{row.name}`", _value(row), _default(row), row.mode.value, row.help) for row in rows),
    )


def _value(row: Option[Any]) -> str:
    if row in TOPIC_CONFIGS:
        return f"[{config_description(row.name)}](topic-configs.md)"
    if row.parser == OFFSET_RANGE_LIMIT:
        return "[offsets or a time](#offsets-and-times), such as `latest`, `-100` or JSON"
    if row.parser in (TIMESTAMP, AS_OF_TIMESTAMP):
        return "[a time](#offsets-and-times), such as `now-10m`"
    example = f", such as `{row.parser.example}`" if row.parser.example else ""
    return row.parser.description + example


def _default(row: Option[Any]) -> str:
    default = "" if row.default is None else f"`{row.default}`"
    stream_default = f"streams `{row.stream_default}`" if row.stream_default else ""
    return "; ".join(filter(None, (default, stream_default, row.default_help)))


def _storage_table() -> str:
    return markdown_table(
        ("option", "store", "secret", "meaning"),
        (
            (f"`{row.name}`", ", ".join(row.client_names), "yes" if row.is_secret else "", row.help)
            for row in _rows(Use.STORAGE)
        ),
    )


def _refused(use: Use) -> str:
    rows = ((f"`{key}`", f"{text}.") for key, text in REFUSED_KEYS[use].items())
    return markdown_table(("option", "why, and what to do"), rows)


def _planned_table() -> str:
    rows = (row for row in OPTION_TABLE if not row.is_supported)
    return markdown_table(
        ("option", "for", "meaning"), ((f"`{row.name}`", row.mode.value, row.help) for row in rows)
    )


if __name__ == "__main__":
    PAGE.write_text(options_page())
