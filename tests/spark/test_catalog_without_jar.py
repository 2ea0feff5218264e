"""Tables of Spark's catalog without klog's jar: the error names the statement that works."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import klog
from tests.support.orders_root import make_orders
from tests.support.plain_session import PlainSession

pytestmark = pytest.mark.spark

SELECT = r"SELECT \* FROM t WITH \(.*?\)"
READER = r"spark\.read\.option.*?\.table\(\"t\"\)"
INSERT = r"INSERT INTO t WITH \(.*?\)"
WRITER = r"df\.writeTo\(.*?\.append\(\)"


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PlainSession]:
    with PlainSession(tmp_path_factory.mktemp("plain")) as session:
        yield session


@pytest.fixture(autouse=True)
def _drop_table(session: PlainSession) -> Iterator[None]:
    yield
    sql(session, "DROP TABLE IF EXISTS t")


@pytest.fixture
def root(tmp_path: Path) -> str:
    return make_orders(tmp_path / "root")


def sql(session: PlainSession, statement: str) -> str:
    return session.run(f"[tuple(row) for row in spark.sql({statement!r}).collect()]")


def values(root: str) -> list[bytes]:
    return sorted(klog.open(root).scan("orders").read_all()["value"].to_pylist())


def error_of(session: PlainSession, expression: str) -> str:
    """Return the error of an expression, which names the jar and has no traceback of Python."""
    with pytest.raises(ValueError, match="klog got no options") as error:
        session.run(expression)
    message = str(error.value)
    assert "or start the session with klog's jar" in message
    assert "Traceback" not in message
    return message


def named(message: str, pattern: str, root: str) -> str:
    """Return what an error names, for this root."""
    match = re.search(pattern, message)
    assert match is not None, message
    return match[0].replace("/data/klog", root)


CREATIONS = {
    "options": "spark.sql(\"CREATE TABLE t USING klog OPTIONS (path '{}', subscribe 'orders') "
    "COMMENT 'c' TBLPROPERTIES ('a'='b')\")",
    "no options": 'spark.sql("CREATE TABLE t USING klog")',
    "location": "spark.sql(\"CREATE TABLE t USING klog OPTIONS (subscribe 'orders') "
    "LOCATION '{}'\")",
    "own columns": 'spark.sql("CREATE TABLE t (value binary) USING klog")',
    "createTable": "spark.catalog.createTable('t', source='klog', path='{}', subscribe='orders')",
}


@pytest.mark.parametrize("creation", CREATIONS.values(), ids=CREATIONS)
def test_reading_a_table_names_the_statement_that_works(
    session: PlainSession, root: str, creation: str
) -> None:
    session.run(creation.format(root))
    message = error_of(session, "spark.table('t').collect()")
    rows = sql(session, f"SELECT value FROM ({named(message, SELECT, root)})")
    assert rows.count("b'x'") == 1
    assert session.run(f"{named(message, READER, root)}.count()") == "1"


def test_a_table_of_save_as_table_has_columns_of_its_own(session: PlainSession, root: str) -> None:
    writer = "spark.sql(\"SELECT 'y' value\").write.format('klog').mode('append')"
    session.run(f"{writer}.option('path', {root!r}).option('topic', 'orders').saveAsTable('t')")
    assert values(root) == [b"x", b"y"]
    message = error_of(session, "spark.table('t').collect()")
    for renewal in ("DROP TABLE t", "CREATE TABLE t USING klog"):
        assert renewal in message
        sql(session, renewal)
    assert sql(session, f"SELECT count(*) FROM ({named(message, SELECT, root)})") == "[(2,)]"


def test_writing_a_table_names_the_statement_that_works(session: PlainSession, root: str) -> None:
    sql(session, "CREATE TABLE t (value binary) USING klog")
    message = error_of(session, "spark.sql(\"INSERT INTO t SELECT binary('y')\")")
    sql(session, f"{named(message, INSERT, root)} SELECT binary('y')")
    rows = "spark.sql(\"SELECT binary('z') value\")"
    session.run(named(message, WRITER, root).replace("df", rows, 1))
    assert values(root) == [b"x", b"y", b"z"]
    creation = f"CREATE TABLE u USING klog OPTIONS (path '{root}') AS SELECT 'y' value"
    assert INSERT.split(" WITH")[0] in error_of(session, f"spark.sql({creation!r})")


def test_a_table_keeps_no_secret(session: PlainSession) -> None:
    statement = "CREATE TABLE t USING klog OPTIONS ('storage.secret_access_key' 'not-to-be-seen')"
    with pytest.raises(ValueError, match=r"storage\.secret_access_key: a table must not") as error:
        sql(session, statement)
    assert "not-to-be-seen" not in str(error.value)
