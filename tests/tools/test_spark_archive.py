"""The archive of Spark's classes: a JVM takes them from it, or goes on without a word."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.waiting import TIMEOUT_SECONDS
from tools.spark_archive import jvm_options, write_archive

pytestmark = [pytest.mark.spark, pytest.mark.full]

FROM_ARCHIVE = "org.apache.spark.SparkContext source: shared objects file"
SESSION = "from pyspark.sql import SparkSession; SparkSession.builder.getOrCreate().stop()"


def session(options: str) -> str:
    """Return all that a session and its JVM print."""
    return subprocess.run(
        [sys.executable, "-c", SESSION],
        env={**os.environ, "SPARK_SUBMIT_OPTS": options},
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=True,
        timeout=TIMEOUT_SECONDS,
    ).stdout  # fmt: skip


def test_a_session_takes_its_classes_from_the_archive(tmp_path: Path) -> None:
    archive = tmp_path / "with a space.jsa"
    write_archive(archive)
    assert list(tmp_path.iterdir()) == [archive]
    assert FROM_ARCHIVE in session(f"{jvm_options(archive)} -Xlog:class+load:stdout")


@pytest.mark.parametrize("is_there", [False, True])
def test_a_session_needs_no_archive(tmp_path: Path, is_there: bool) -> None:
    archive = tmp_path / "absent.jsa"
    if is_there:
        archive.write_bytes(b"no archive")
    printed = session(f"{jvm_options(archive)} -Xlog:class+load:stdout")
    assert (
        "org.apache.spark.SparkContext source: jar:file:" in printed or "source: file:" in printed
    )
    assert FROM_ARCHIVE not in printed
    assert str(archive) not in printed
