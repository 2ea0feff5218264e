"""Spark has each member that klog's jar links to, in the oldest version and in the newest."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.spark_jar.class_file import Link
from tests.spark_jar.jar_links import LISTED, Jars, klog_jar, links, spark_jars

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def jars() -> Iterator[Jars]:
    """Return klog's jar and those of Spark."""
    opened = Jars([klog_jar(), *spark_jars()])
    yield opened
    opened.close()


def listed() -> list[Link]:
    return [Link(*line.split()) for line in LISTED.read_text().splitlines()]


def test_the_list_is_that_of_the_jar() -> None:
    """Someone who adds a link has to look for it in the newest Spark, too."""
    assert links() == listed(), (
        "write the list again by `python -m tests.spark_jar.jar_links`, then run `make spark-next`"
    )


def test_this_spark_has_each_member(jars: Jars) -> None:
    assert [link for link in listed() if not jars.has(link)] == []


@pytest.mark.parametrize(
    "link",
    [
        Link("org/apache/spark/SparkContext", "<init>", "(I)V"),
        Link("org/apache/spark/SparkContext", "parallelize", "()V"),
        Link("org/apache/spark/NoSuchClass", "name", "()V"),
        Link("klog/spark/KlogTable", "no_such_method", "()V"),
    ],
)
def test_a_member_that_is_missing_is_seen(jars: Jars, link: Link) -> None:
    assert not jars.has(link)


def test_a_member_of_a_parent_is_seen(jars: Jars) -> None:
    assert jars.has(
        Link(
            "klog/spark/DistributedRowsExec",
            "executeCollect",
            "()[Lorg/apache/spark/sql/catalyst/InternalRow;",
        )
    )
