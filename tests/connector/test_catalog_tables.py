"""Which options of a table and of a statement on it count."""

from __future__ import annotations

import json

import pytest
from pyspark.sql.types import StructType

from klog.connector.catalog_tables import table_read_options, table_write_options
from klog.errors import OptionError

SCHEMA = StructType()
STORED = {
    "path": "/data", "subscribe": "a", "topic": "b", "startingtimestamp": "1",
    "isolationlevel": "read_committed", "includeheaders": "true", "compression.type": "lz4",
    "storage.region": "r", "kafka.bootstrap.servers": "x",
}  # fmt: skip


def of_table(stored: dict[str, str], **own: str) -> dict[str, str]:
    """Return options as klog's jar hands them over."""
    entry = {"name": "spark_catalog.default.t", "options": [*stored]}
    return stored | own | {"klog.table": json.dumps(entry)}


def test_a_read_takes_what_is_for_reads_and_a_write_what_is_for_writes() -> None:
    both = {"path", "includeheaders", "storage.region", "kafka.bootstrap.servers"}
    of_reads = {"subscribe", "startingtimestamp", "isolationlevel"}
    assert set(table_read_options(of_table(STORED), SCHEMA)) == both | of_reads
    assert set(table_write_options(of_table(STORED))) == both | {"topic", "compression.type"}


@pytest.mark.parametrize(
    ("own", "dropped"),
    [
        ({"assign": "{}"}, "subscribe"),
        ({"subscribepattern": "a"}, "subscribe"),
        ({"startingoffsets": "earliest"}, "startingtimestamp"),
        ({"paths": '["/other"]'}, "path"),
        ({"kafka.isolation.level": "read_uncommitted"}, "isolationlevel"),
    ],
)
def test_an_option_of_the_statement_wins_over_another_that_says_the_same(
    own: dict[str, str], dropped: str
) -> None:
    options = table_read_options(of_table(STORED, **own), SCHEMA)
    assert dropped not in options
    assert own.items() <= options.items()


def test_options_of_a_statement_are_all_checked_later() -> None:
    assert table_read_options(of_table({"path": "/d", "subscribe": "a"}, topic="a"), SCHEMA) == {
        "path": "/d", "subscribe": "a", "topic": "a",
    }  # fmt: skip
    options = {"path": "/d", "topic": "a"}
    assert table_read_options(options, SCHEMA) == table_write_options(options) == options


@pytest.mark.parametrize("use", ["read", "write"])
def test_what_a_table_lacks_is_named(use: str) -> None:
    def options(stored: dict[str, str]) -> dict[str, str]:
        entry = of_table(stored)
        return table_read_options(entry, SCHEMA) if use == "read" else table_write_options(entry)

    with pytest.raises(OptionError, match=r"path: not in the options of .*default.t WITH"):
        options({"subscribe": "a", "topic": "a"})
    with pytest.raises(OptionError, match=r"path: not in the options of .*create the table with"):
        options({})
    with pytest.raises(OptionError, match=r"storage.account_key: a table must not keep a secret"):
        options({"path": "/data", "storage.account_key": "x"})


def test_a_read_needs_topics() -> None:
    with pytest.raises(OptionError, match="subscribe: not in the options of the table"):
        table_read_options(of_table({"path": "/data"}), SCHEMA)


@pytest.mark.parametrize("text", ["abc", "", "[]", '{"name": "x"}', '{"name": "x", "schema": ""}'])
def test_what_only_klogs_jar_sets_is_an_unknown_option_of_users(text: str) -> None:
    options = {"path": "/d", "Klog.Table": text}
    with pytest.raises(OptionError, match=r"^klog\.table: unknown read option\. Leave it out"):
        table_read_options(options | {"subscribe": "a"}, SCHEMA)
    with pytest.raises(OptionError, match=r"^klog\.table: unknown write option\. Leave it out"):
        table_write_options(options | {"topic": "a"})
