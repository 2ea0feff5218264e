"""The JVM engine follows docs/slice.md: golden tasks, and damaged bytes as Python takes them."""

from __future__ import annotations

import json
import os
import random
import shutil
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.contracts import slice_runner
from tests.fuzz.seal import sealed_log
from tests.spark.jvm_slices import JvmSlices
from tests.support.project import PROJECT

pytestmark = pytest.mark.spark

PATHS = sorted(slice_runner.FOLDER.glob("*.json"))
SEEDS = range(int(os.environ.get("KLOG_SLICE_SEEDS", "60")))


@cache
def read(path: Path) -> dict[str, Any]:
    case: dict[str, Any] = json.loads(path.read_text())
    return case


def absolute(values: dict[str, Any]) -> dict[str, Any]:
    """Return a slice with paths that any working directory finds."""
    paths = {name: str(PROJECT / values[name]) for name in ("root", "path")}
    return (
        values | paths | {"indexPath": values["indexPath"] and str(PROJECT / values["indexPath"])}
    )


def tasks(case: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        slice_runner.with_identity(absolute(values)) if "each" not in values else values
        for values in case["task"]
    ]


@pytest.fixture(scope="module")
def jvm(spark: SparkSession) -> JvmSlices:
    return JvmSlices(spark)


GOLDEN = [path for path in PATHS if not read(path)["isPythonOnly"] and "run" not in path.stem]
READABLE = [path for path in GOLDEN if "rows" in read(path)]


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_jvm_gives_the_golden_rows(jvm: JvmSlices, path: Path) -> None:
    case = read(path)
    expected = {name: case[name] for name in ("rows", "error") if name in case}
    assert jvm.run(tasks(case)) == expected


@pytest.mark.parametrize("path", READABLE, ids=lambda path: path.stem)
def test_jvm_leaves_out_only_rows_before_a_time(jvm: JvmSlices, path: Path) -> None:
    """Whatever wrote the batches: brokers, their cleaner, old formats."""
    case = read(path)
    times_us = sorted({row["timestampUs"] for row in case["rows"]})
    for time_us in {times_us[len(times_us) * third // 3] for third in (1, 2)} if times_us else ():
        late = [row for row in case["rows"] if row["timestampUs"] >= time_us]
        got = jvm.run(tasks(case), time_us // 1000)["rows"]
        assert [row for row in got if row["timestampUs"] >= time_us] == late


def test_jvm_checks_the_crc_of_a_batch_before_a_time(jvm: JvmSlices, tmp_path: Path) -> None:
    case = read(slice_runner.FOLDER / "whole_segment.json")
    (values, *_) = tasks(case)
    data = bytearray(Path(values["path"]).read_bytes())
    data[values["startPosition"] + 70] ^= 1
    path = tmp_path / "t-0" / Path(values["path"]).name
    path.parent.mkdir()
    path.write_bytes(data)
    damaged_slice = values | {"root": str(tmp_path), "path": str(path), "crc32c": -1}
    task = [slice_runner.with_identity(damaged_slice)]
    assert jvm.run(task, 1 << 60) == {"error": "corrupt"}
    assert jvm.run(tasks(case), 1 << 60) == {"rows": []}


Change = Callable[[Path], None]


def to_name_of_deleted(path: Path) -> None:
    path.rename(f"{path}.deleted")


def to_copy(path: Path) -> None:
    """Replace a file by another one with the same bytes and times, as a cleaner's swap does."""
    status = path.stat()
    copy = path.with_suffix(".swap")
    shutil.copyfile(path, copy)
    copy.replace(path)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def to_other_topic(path: Path) -> None:
    write_metadata(path, "version: 0\ntopic_id: dG9waWMgaWQgb2YgMTYgYg\n")


def write_metadata(path: Path, text: str) -> None:
    path.with_name("partition.metadata").write_text(text)


NO_TOPIC_IDS = (
    "version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA", "version: 0\ntopic_id: short",
    "topic_id: dG9waWMgaWQgb2YgMTYgYg", "version: -1\ntopic_id: dG9waWMgaWQgb2YgMTYgYg",
    "version:0\ntopic_id:dG9waWMgaWQgb2YgMTYgYg", "version: 0\n\ntopic_id: dG9waWMgaWQgb2YgMTYgYg",
    "version: 0\ntopic_id: dG9waWMgaWQgb2YgMTYgé",
)  # fmt: skip
"""Files that have no id, as the topic of the slice."""


@pytest.mark.parametrize(
    ("change", "answer"),
    [
        (lambda path: None, "rows"),
        (to_name_of_deleted, "rows"),
        (to_copy, "changed"),
        (lambda path: path.write_bytes(path.read_bytes()[:400]), "changed"),
        (Path.unlink, "changed"),
        (to_other_topic, "changed"),
        *((partial(write_metadata, text=text), "rows") for text in NO_TOPIC_IDS),
    ],
)
def test_jvm_opens_the_file_of_a_broker_that_was_planned(
    jvm: JvmSlices, tmp_path: Path, change: Change, answer: str
) -> None:
    case = read(slice_runner.FOLDER / "raw_cut.json")
    (values,) = tasks(case)
    folder = tmp_path / "t-0"
    shutil.copytree(Path(values["path"]).parent, folder)
    path = folder / Path(values["path"]).name
    task = [slice_runner.with_identity(values | {"root": str(tmp_path), "path": str(path)})]
    change(path)
    expected = {"rows": case["rows"]} if answer == "rows" else {"error": answer}
    assert jvm.run(task) == slice_runner.run_task(task) == expected


def damaged(data: bytes, source: random.Random) -> bytes:
    """Return bytes with a few changed; every second time with right checksums."""
    out = bytearray(data)
    for _ in range(source.choice((1, 1, 2, 5))):
        at = source.randrange(len(out))
        kind = source.random()
        if kind < 0.5:
            out[at] ^= 1 << source.randrange(8)
        elif kind < 0.8:
            out[at] = source.choice((0, 1, 0x7F, 0x80, 0xFF))
        elif kind < 0.9:
            del out[at : at + source.randrange(1, 9)]
        else:
            out[at:at] = source.randbytes(source.randrange(1, 9))
    return sealed_log(bytes(out)) if source.random() < 0.6 else bytes(out)


@pytest.mark.parametrize("seed", SEEDS)
def test_jvm_takes_damaged_bytes_as_python_does(jvm: JvmSlices, tmp_path: Path, seed: int) -> None:
    """Random damage to a golden segment: the same rows or error; all of it is wanted."""
    source = random.Random(seed)
    case = read(source.choice(READABLE))
    (values, *_) = tasks(case)
    folder = tmp_path / "t-0"
    shutil.copytree(Path(values["path"]).parent, folder)
    path = folder / Path(values["path"]).name
    data = damaged(path.read_bytes(), source)
    path.write_bytes(data)
    slice_ = values | {
        "root": str(tmp_path), "path": str(path), "crc32c": -1, "indexPath": "",
        "fileSizeBytes": len(data) if values["isCommitted"] else -1,
        "startPosition": 0, "endPosition": len(data), "segmentSizeBytes": len(data),
        "firstOffset": -1, "startOffset": 0, "endOffset": 1 << 40, "limitOffset": 1 << 40,
    }  # fmt: skip
    task = [slice_runner.with_identity(slice_)]
    assert jvm.run(task) == slice_runner.run_task(task)
