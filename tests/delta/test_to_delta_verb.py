"""The command `to-delta`: its options are those of `run`."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from klog.errors import OptionError
from klog.jobs.commands.to_delta_command import COMMAND
from klog.jobs.shared.common_options import add_root_option
from klog.jobs.shared.job_command import add_options
from tests.delta.copied_rows import TOPIC, append, new_log

pytestmark = pytest.mark.delta


def test_the_options_of_the_command(delta_spark: SparkSession, tmp_path: Path) -> None:
    root, table = str(tmp_path / "root"), str(tmp_path / "table")
    log = new_log(root, 1)
    append(log, [("a", '{"id": 1}'), ("b", "?")])
    parser = argparse.ArgumentParser()
    add_root_option(parser, "", repeatable=False)
    add_options(parser, COMMAND)
    run_job = COMMAND.load()
    words = ["--root", root, "--topic-pattern", "^ord", "--table", f"{table}-{{topic}}"]
    words += ["--mode", "upsert", "-s", "key=string", "-s", "value=json"]
    values = ["--on-error", "dead-letters", "--dead-letter-table", f"{table}-dead"]
    table_options = ["--deletion-vectors", "--table-property", "mine=yes"]
    first = run_job(
        delta_spark, parser.parse_args([*words, *values, *table_options, "--zorder-by", "key"])
    )
    assert first.as_json()["rowsInserted"] == 1
    detail = delta_spark.sql(f"DESCRIBE DETAIL delta.`{table}-{TOPIC}`").collect()[0]
    assert detail["properties"]["delta.enableDeletionVectors"] == "true"
    assert detail["properties"]["mine"] == "yes"
    history = delta_spark.sql(f"DESCRIBE HISTORY delta.`{table}-{TOPIC}`").collect()
    assert [row["operationParameters"]["zOrderBy"] for row in history[:1]] == ['["key"]']
    append(log, [("a", '{"id": 2, "city": "Rome"}')])
    with pytest.raises(OptionError, match="--zorder-by, --cluster-by"):
        run_job(delta_spark, parser.parse_args([*words, "--zorder-by", "a", "--cluster-by", "b"]))
    run_job(delta_spark, parser.parse_args([*words, *values, "--merge-schema"]))
    rows = delta_spark.read.format("delta").load(f"{table}-{TOPIC}")
    assert rows.select("key", "value.id", "value.city").collect() == [("a", 2, "Rome")]
    assert delta_spark.read.format("delta").load(f"{table}-dead").count() == 1
    clustered = ["--root", root, "--topic", TOPIC, "--table", f"{table}-clustered"]
    planned = run_job(delta_spark, parser.parse_args([*clustered, "--dry-run"]))
    assert planned.as_json()["dryRun"]
    assert not Path(f"{table}-clustered").exists()
    clustered += ["--cluster-by", "partition", "--cluster-by", "offset"]
    run_job(delta_spark, parser.parse_args([*clustered, "-o", "startingOffsets=-1"]))
    detail = delta_spark.sql(f"DESCRIBE DETAIL delta.`{table}-clustered`").collect()[0]
    assert detail["clusteringColumns"] == ["partition", "offset"]
    assert detail["numFiles"] == 1
