"""Names of tables that stand for a topic, as a table."""

from __future__ import annotations

import pytest

from klog.jobs.copying_to_delta.table_names import table_of_topic


@pytest.mark.parametrize(
    ("table", "topic", "expected"),
    [
        ("lake.orders", "a-b", "lake.orders"),
        ("lake.{topic}", "orders", "lake.`orders`"),
        ("{topic}", "2024", "`2024`"),
        ("lake.`a.{topic}.b`", "x-y", "lake.`a.x-y.b`"),
        ("lake.{topic}", "web.clicks", "lake.`web.clicks`"),
        ("spark_catalog.lake.copy_of_{topic}", "a-b", "spark_catalog.lake.`copy_of_a-b`"),
        ("lake.`{topic}`", "web.clicks", "lake.`web.clicks`"),
        ("s3a://lake/{topic}", "web.clicks", "s3a://lake/web.clicks"),
        ("delta.`/lake/{topic}`", "web.clicks", "delta.`/lake/web.clicks`"),
        ("./{topic}", "a-b", "./a-b"),
    ],
)
def test_names(table: str, topic: str, expected: str) -> None:
    assert table_of_topic(table, topic) == expected
