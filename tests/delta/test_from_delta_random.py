"""Random changes of a table: whenever it is copied, the topic's last values are its rows."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import klog
from tests.delta.changed_table import ChangedTable
from tests.delta.copied_rows import TOPIC

pytestmark = pytest.mark.delta

STATEMENTS = (
    "insert into {t} ({columns}) select id, name {nulls} from values ({new}, 'i') as s(id, name)",
    "update {t} set name = concat(name, '{n}') where id % 3 = {n} % 3",
    "update {t} set id = {new} where id = {old}",
    "delete from {t} where id = {old}",
    "delete from {t} where id % 5 = {n} % 5",
    "merge into {t} using (select id + {n} as id from range(4)) as s on {t}.id = s.id "
    "when matched and s.id % 2 = 0 then delete when matched then update set name = 'm{n}' "
    "when not matched then insert (id, name) values (s.id, 'n{n}')",
    "optimize {t}",
    "alter table {t} add column c{n} string",
    "restore table {t} to version as of {earlier}",
    "insert overwrite {t} ({columns}) select id + 1, name {nulls} from {t} where id < {n} + 3",
)


def version_of(table: ChangedTable) -> int:
    row = table.spark.sql(f"describe history {table.name} limit 1").collect()[0]
    return int(row["version"])


def changed_rows(table: ChangedTable) -> set[int]:
    """Return versions that changed rows. A MERGE that changed none rewrites files, too."""
    changed = set()
    for path in (Path(table.path) / "_delta_log").glob("*.json"):
        actions = [json.loads(line) for line in path.read_text().splitlines()]
        is_merge = any(
            action.get("commitInfo", {}).get("operation") == "MERGE" for action in actions
        )
        files = [action.get("add") or action.get("remove") or {} for action in actions]
        has_changed_files = not is_merge and any(file.get("dataChange") for file in files)
        if has_changed_files or any("cdc" in action for action in actions):
            changed.add(int(path.stem))
    return changed


def without_nulls(rows: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return rows without null columns: one that is added later is missing in earlier values."""
    return {
        key: {name: value for name, value in row.items() if value is not None}
        for key, row in rows.items()
    }


@pytest.mark.parametrize(
    ("seed", "steps"),
    [(1, 8), *((seed, 40) for seed in range(2, 12))],
)
@pytest.mark.full  # CI copies changes that are chosen by hand (test_from_delta.py).
def test_random_changes(delta_spark: SparkSession, tmp_path: Path, seed: int, steps: int) -> None:
    """Each version with changes is one commit; keys that are gone have tombstones."""
    chance = random.Random(seed)
    table = ChangedTable(delta_spark, str(tmp_path / "table"), str(tmp_path / "root")).create(
        **{
            "delta.enableDeletionVectors": str(seed % 2 == 0).lower(),
        }
    )
    next_id, statements, copied = 0, list[str](), list[int]()
    for step in range(steps):
        columns = table.spark.table(table.name).columns
        next_id, now = next_id + 1, version_of(table)
        ids = [row["id"] for row in table.rows().values()]
        statement = chance.choice(STATEMENTS[: 4 if step < 4 else None])
        values = {
            "columns": ", ".join(columns),
            "nulls": ", null" * (len(columns) - 2),
            "new": str(100 + next_id),
            "old": str(chance.choice(ids or [0])),
            "n": str(step),
            "earlier": str(chance.randint(max(now - 3, 0), now)),
        }
        for name, text in values.items():
            statement = statement.replace("{" + name + "}", text)
        statements.append(statement)
        table.sql(statement)
        if chance.random() < 0.3:
            copied.append(table.copy().end_version or 0)
            assert without_nulls(table.last_values()) == without_nulls(table.rows()), statements
    copied.append(table.copy().end_version or 0)
    assert without_nulls(table.last_values()) == without_nulls(table.rows()), statements
    commits = klog.open(table.root).history(TOPIC)
    versions = [
        commit.actions.writer_transaction.batch_id
        for commit in commits
        if commit.actions.writer_transaction is not None
        and not commit.actions.writer_transaction.name.endswith(":snapshot")
    ]
    assert len(versions) == len(set(versions))
    assert versions == sorted(versions, reverse=True)
    assert versions[0] == version_of(table)
    assert set(range(copied[0] + 1, versions[0] + 1)) & changed_rows(table) <= set(versions)
