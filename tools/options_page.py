"""Write docs/options.md from the table of options: `make options`.

The rule: the page says what the code does, because it is made of the rows that the code parses by.
A test holds the page to this module.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from textwrap import fill
from typing import Any

from klog.connector.options.option import Option, Use
from klog.connector.options.option_map import REFUSED_KEYS
from klog.connector.options.option_table import OPTION_TABLE
from tools.generated_part import markdown_table

PAGE = Path(__file__).parents[1] / "docs" / "options.md"

_TOP = """\
# Options

`make options` writes this page from the table of options
(`connector/options/option_table.py`). Names and meanings are those of Spark's Kafka connector.
Names have any case. An unknown option is an error that names the nearest one.

```python
df = spark.read.format("klog").option("subscribe", "orders").load("/data/klog")
df.write.format("klog").option("topic", "copies").mode("append").save("/data/klog")
```
"""
_READ = """\
## Reads

Options of `spark.read` and `spark.readStream`. Set exactly one of `subscribe`, `subscribePattern`
and `assign`.
"""
_LOAD = """
Spark does not say at `load()` whether the read is a batch or a stream. An option that is wrong for
both is an error at `load()`. An option that is wrong for one of them is an error when the batch
runs or the stream starts.
"""
_WRITE = """\
## Writes

Options of `df.write` and `df.writeStream`; those from `compression.type` on are also `options=` of
`klog.open(...).append`.
"""
_STORAGE = """\
## Stores

Options of reads, writes and jobs, and without `storage.` keywords of `klog.open`. What is not set
comes from the environment ([stores](stores.md#options)). Errors and logs of klog show no secret.
"""
_NO_EFFECT = """\
## Options of Kafka's clients

To move a job from `format("kafka")` to `format("klog")`, change its format and its path. These
options of Kafka's clients set the option of klog that has the same name without `kafka.`
(`kafka.isolation.level` sets `isolationLevel`):

{aliases}.

Any other option that begins with `kafka.`, and `kafkaConsumer.*`, `fetchOffset.*` and
`groupIdPrefix` of a read, has no effect; one warning names them. A read refuses what Spark's Kafka
connector refuses:

{of_read}
A write refuses these:

{of_write}"""
_PLANNED = """\
## Not supported yet

A read with one of these options is an error until a later version brings it.
"""


def options_page() -> str:
    """Return the text of docs/options.md."""
    aliases = [row.kafka_name for row in OPTION_TABLE if row.kafka_name]
    sections = [
        _TOP,
        _READ + "\n" + _table(_rows(Use.READ)) + _LOAD,
        _WRITE + "\n" + _table(_rows(Use.WRITE)),
        _STORAGE + "\n" + _storage_table(),
        _NO_EFFECT.format(
            aliases=_wrapped(f"`{name}`" for name in aliases),
            of_read=_refused(Use.READ),
            of_write=_refused(Use.WRITE),
        ),
        _PLANNED + "\n" + _planned_table(),
    ]
    return "\n".join(sections)


def _wrapped(names: Iterable[str]) -> str:
    return fill(", ".join(names), 100, break_long_words=False)


def _rows(use: Use) -> list[Option[Any]]:
    return [row for row in OPTION_TABLE if row.use is use and row.is_supported]


def _table(rows: Sequence[Option[Any]]) -> str:
    return markdown_table(
        ("option", "value", "default", "for", "meaning"),
        ((f"`{row.name}`", _value(row), _default(row), row.mode.value, row.help) for row in rows),
    )


def _value(row: Option[Any]) -> str:
    example = f", such as `{row.parser.example}`" if row.parser.example else ""
    return row.parser.description + example


def _default(row: Option[Any]) -> str:
    default = "" if row.default is None else f"`{row.default}`"
    return default + (f"; streams `{row.stream_default}`" if row.stream_default else "")


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
    return markdown_table(("option", "instead"), rows)


def _planned_table() -> str:
    rows = (row for row in OPTION_TABLE if not row.is_supported)
    return markdown_table(
        ("option", "for", "meaning"), ((f"`{row.name}`", row.mode.value, row.help) for row in rows)
    )


if __name__ == "__main__":
    PAGE.write_text(options_page())
