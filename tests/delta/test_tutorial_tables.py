"""The tutorial of Delta tables is true: its blocks run, and print what it says they print.

The topic that it makes of a table is mounted by a broker, as docs/export.md says.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import klog
from tests.corpus.clients import Client
from tests.kafka.mounted_partitions import mount
from tests.support.kafka_broker import Broker
from tests.support.kafka_classes import consume, java_process
from tests.support.page_blocks import blocks_of, project_with_settings, run_blocks
from tests.support.project import PROJECT

BLOCKS = blocks_of((PROJECT / "docs" / "tutorial-tables.md").read_text())
SETTINGS = """\
spark.ui.enabled false
spark.sql.shuffle.partitions 2
spark.databricks.delta.snapshotPartitions 2
"""
"""Spark's own are for tables of many files."""


@pytest.mark.delta
@pytest.mark.kafka
@pytest.mark.full
def test_the_blocks_run_as_pasted(tmp_path: Path) -> None:
    """Delta comes from Maven Central, as for a reader."""
    folder, conf = project_with_settings(tmp_path, SETTINGS)
    run_blocks(folder, BLOCKS, SPARK_CONF_DIR=str(conf))
    root = str(folder / "build" / "tutorial-tables")
    (tmp_path / "mounted").mkdir()
    with Broker(tmp_path / "mounted") as broker, java_process() as gateway:
        Client(broker).create("prices", "", {}, 1)
        broker.stop()
        mount(root, "prices", 1, broker.log_dirs[0], tmp_path)
        broker.start()
        _, records = consume(gateway, broker.bootstrap, [("prices", 0)], "read_committed")
    rows = klog.open(root).scan("prices").read_all()
    assert rows.num_rows > 3
    read = [(record.offset, record.key, record.value) for record in records]
    columns = (rows[name].to_pylist() for name in ("offset", "key", "value"))
    assert read == list(zip(*columns, strict=True))
