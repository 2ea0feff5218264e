"""A topic and its table on a real S3 server: klog by `s3://`, Delta by Hadoop's `s3a://`."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import klog
from klog.connector.embedded import Log
from klog.jobs.copying_to_delta.batch_writer import MODES
from tests.delta.copied_rows import TOPIC, append, rows_of_table, rows_of_topic
from tests.delta.copy_process import CopyProcess, commits
from tests.delta.killed_executors import ExecutorKills
from tests.delta.verb_process import SETTINGS
from tests.spark_faults.standalone_cluster import Cluster
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


class TopicOnS3:
    """A topic on the server, and the arguments of its copy."""

    def __init__(self, server: S3Server, name: str, mode: str) -> None:
        """Create it, under a prefix of the bucket."""
        prefix = f"{BUCKET}/{name}"
        options = server.options()
        storage = {name.removeprefix("storage."): text for name, text in options.items()}
        self.log: Log = klog.open(f"s3://{prefix}/root", **storage)
        self.log.create_topic(TOPIC, partitions=2)
        self.folder = server.folder / name / "table"
        self.arguments = ["--root", f"s3://{prefix}/root", "--topic", TOPIC, "--mode", mode]
        self.arguments += [
            "--table",
            f"s3a://{prefix}/table",
            "--option",
            "maxOffsetsPerTrigger=50",
        ]
        for option, text in options.items():
            self.arguments += ["--option", f"{option}={text}"]

    def append(self, start: int, end: int) -> None:
        """Write records with keys of their own."""
        append(self.log, [(f"k{number}", f"v{number}") for number in range(start, end)])

    def check(self, spark: SparkSession) -> None:
        """Compare the table with the topic; a table names its files by relative paths."""
        assert rows_of_table(spark, str(self.folder)) == rows_of_topic(self.log)


@pytest.mark.parametrize("mode", MODES)
def test_a_killed_driver(
    delta_spark: SparkSession, s3_server: S3Server, tmp_path: Path, mode: str
) -> None:
    """The second run is killed in the middle; a third one ends what it has begun."""
    topic = TopicOnS3(s3_server, tmp_path.name, mode)
    settings = s3a_settings(s3_server)
    topic.append(0, 100)
    with CopyProcess(tmp_path / "first", topic.arguments, **settings) as process:
        assert process.report()["rowsInserted"] == 100
    topic.append(100, 300)
    before = commits(topic.folder)
    with CopyProcess(tmp_path / "killed", topic.arguments, **settings) as process:
        process.wait_until(lambda: commits(topic.folder) > before)
    with CopyProcess(tmp_path / "last", topic.arguments, **settings) as process:
        report = process.report()
    assert report["partitions"][0]["startOffset"] > 0
    topic.check(delta_spark)


@pytest.mark.parametrize("mode", MODES)
def test_killed_executors(
    delta_spark: SparkSession, s3_server: S3Server, tmp_path: Path, mode: str
) -> None:
    topic = TopicOnS3(s3_server, tmp_path.name, mode)
    topic.append(0, 400)
    with Cluster(tmp_path / "cluster") as cluster:
        kills = ExecutorKills(cluster, topic.folder)
        settings = {**s3a_settings(s3_server), **kills.settings()}
        with CopyProcess(tmp_path / "run", topic.arguments, **settings) as process:
            process.wait_until(kills.are_done)
            process.report()
    topic.check(delta_spark)
