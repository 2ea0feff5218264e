"""A topic and its table on a real S3 server: klog by `s3://`, Delta by Hadoop's `s3a://`."""

from __future__ import annotations

from pathlib import Path

import pytest

import klog
from tests.delta.copied_rows import TOPIC, append, numbered, rows_of_topic
from tests.delta.copy_process import CopyProcess
from tests.delta.verb_process import SETTINGS
from tests.support.store_servers import ACCESS_KEY_ID, BUCKET, SECRET_ACCESS_KEY, S3Server
from tools.jars import jars

pytestmark = [pytest.mark.delta, pytest.mark.stores, pytest.mark.slow, pytest.mark.full]


def s3a_settings(server: S3Server) -> dict[str, str]:
    """Return the settings that docs/tables.md names."""
    return {
        "spark.jars": ",".join(
            [SETTINGS["spark.jars"], *map(str, jars("hadoop-aws").glob("*.jar"))]
        ),
        "spark.hadoop.fs.s3a.endpoint": server.endpoint,
        "spark.hadoop.fs.s3a.access.key": ACCESS_KEY_ID,
        "spark.hadoop.fs.s3a.secret.key": SECRET_ACCESS_KEY,
        "spark.hadoop.fs.s3a.path.style.access": "true",
        "spark.hadoop.fs.s3a.endpoint.region": "us-east-1",
    }


def test_a_topic_and_its_table_on_s3(s3_server: S3Server, tmp_path: Path) -> None:
    """The second run is killed in the middle; a third one ends what it has begun."""
    prefix = f"{BUCKET}/{tmp_path.name}"
    options = s3_server.options()
    log = klog.open(
        f"s3://{prefix}/root",
        **{name.removeprefix("storage."): text for name, text in options.items()},
    )
    log.create_topic(TOPIC, partitions=2)
    arguments = ["--root", f"s3://{prefix}/root", "--topic", TOPIC]
    arguments += ["--table", f"s3a://{prefix}/table", "--option", "maxOffsetsPerTrigger=50"]
    for name, text in options.items():
        arguments += ["--option", f"{name}={text}"]
    settings = s3a_settings(s3_server)
    append(log, numbered(0, 100))
    with CopyProcess(tmp_path / "first", arguments, **settings) as process:
        assert process.report()["rowsInserted"] == 100
    append(log, numbered(100, 300))
    table = s3_server.folder / tmp_path.name / "table"
    commits = len(list(table.glob("_delta_log/*.json")))
    with CopyProcess(tmp_path / "killed", arguments, **settings) as process:
        process.wait_until(lambda: len(list(table.glob("_delta_log/*.json"))) > commits)
    with CopyProcess(tmp_path / "last", arguments, **settings) as process:
        report = process.report()
    assert report["partitions"][0]["startOffset"] > 0
    offsets = _copied_offsets(table)
    assert offsets == sorted((row["partition"], row["offset"]) for row in rows_of_topic(log))


def _copied_offsets(table: Path) -> list[tuple[int, int]]:
    """Return the places of the rows, from the files that the log of the table names."""
    import json

    import pyarrow.parquet as pq

    paths = [
        json.loads(line)["add"]["path"]
        for commit in sorted(table.glob("_delta_log/*.json"))
        for line in commit.read_text().splitlines()
        if "add" in json.loads(line)
    ]
    columns = ["partition", "offset"]
    rows = [
        row for path in paths for row in pq.read_table(table / path, columns=columns).to_pylist()
    ]
    return sorted((row["partition"], row["offset"]) for row in rows)
