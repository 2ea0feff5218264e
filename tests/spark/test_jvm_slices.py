"""The JVM engine follows docs/slice.md: golden tasks, and damaged bytes as Python takes them."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tests.contracts import slice_runner
from tests.spark.golden_slices import GOLDEN, READABLE, copied, damaged, read, tasks, whole_slice
from tests.spark.jvm_slices import JvmSlices

pytestmark = pytest.mark.spark

SEEDS = range(int(os.environ.get("KLOG_SLICE_SEEDS", "60")))


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
    path = copied(values, tmp_path)
    task = [slice_runner.with_identity(values | {"root": str(tmp_path), "path": str(path)})]
    change(path)
    expected = {"rows": case["rows"]} if answer == "rows" else {"error": answer}
    assert jvm.run(task) == slice_runner.run_task(task) == expected


@pytest.mark.parametrize("seed", SEEDS)
def test_jvm_takes_damaged_bytes_as_python_does(jvm: JvmSlices, tmp_path: Path, seed: int) -> None:
    """Random damage to a golden segment: the same rows or error; all of it is wanted."""
    source = random.Random(seed)
    case = read(source.choice(READABLE))
    (values, *_) = tasks(case)
    path = copied(values, tmp_path)
    path.write_bytes(damaged(path.read_bytes(), source))
    task = [slice_runner.with_identity(whole_slice(values, path))]
    assert jvm.run(task) == slice_runner.run_task(task)
