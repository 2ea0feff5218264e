"""A Delta table that tests change, and what a topic that is its copy has."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

import klog
from klog.jobs import from_delta
from klog.jobs.copying_from_delta.from_delta_report import FromDeltaReport
from tests.delta.copied_rows import TOPIC

FEED = "delta.enableChangeDataFeed"


@dataclass(frozen=True, slots=True)
class ChangedTable:
    """A table with a column `id`, its key, and the root of its copy."""

    spark: SparkSession
    path: str
    root: str

    @property
    def name(self) -> str:
        """Return the name of the table in SQL."""
        return f"delta.`{self.path}`"

    def sql(self, text: str) -> None:
        """Run SQL, in which `{t}` is the table."""
        self.spark.sql(text.replace("{t}", self.name))

    def create(self, columns: str = "id bigint, name string", **properties: str) -> ChangedTable:
        """Create the table, by default with change data feed."""
        texts = {FEED: "true", **{name.replace("_", "."): t for name, t in properties.items()}}
        pairs = ", ".join(f"'{name}' = '{text}'" for name, text in texts.items())
        self.sql(f"create table {{t}} ({columns}) using delta tblproperties ({pairs})")
        return self

    def copy(self, **options: Any) -> FromDeltaReport:
        """Run the job."""
        options = {"key": "id", "options": {"numPartitions": "3"}, **options}
        return from_delta.run(self.spark, self.root, TOPIC, self.path, **options)

    def has_topic(self) -> bool:
        """Return whether the topic has records."""
        log = klog.open(self.root)
        return TOPIC in log.topics() and any(log.count(TOPIC).values())

    def records(self) -> list[tuple[Any, Any]]:
        """Return keys and values of the topic, sorted by key and then in the order of the log."""
        table = klog.open(self.root).scan(TOPIC).read_all()
        rows = sorted(
            table.to_pylist(),
            key=lambda row: (row["key"] or b"", row["partition"], row["offset"]),
        )
        return [(_text(row["key"]), _value(row["value"])) for row in rows]

    def last_values(self) -> dict[Any, Any]:
        """Return the last value of each key that has one."""
        last = dict(self.records())
        return {key: value for key, value in last.items() if value is not None}

    def rows(self) -> dict[str, dict[str, Any]]:
        """Return the rows of the table, as values of a topic, by key."""
        columns = self.spark.sql(f"select * from {self.name}").columns
        fields = ", ".join(f"`{column}`" for column in columns)
        nulls = "map('ignoreNullFields', 'false')"
        rows = self.spark.sql(f"select to_json(struct({fields}), {nulls}) from {self.name}")
        return {str(row["id"]): row for row in (json.loads(text) for (text,) in rows.collect())}

    def versions(self, report: FromDeltaReport) -> list[tuple[int, int | None, int | None]]:
        """Return the versions of a report, with records and tombstones."""
        return [(v.version, v.records, v.tombstones) for v in report.versions]


def _text(data: bytes | None) -> str | None:
    return None if data is None else data.decode()


def _value(data: bytes | None) -> Any:
    return None if data is None else json.loads(data)
