"""The JVM engine takes damaged and hostile logs as Python does: the same rows, or the same error.

The tests of Python alone say which answer is right.
"""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from klog.connector.kafka_dir.raw_root import RawRoot
from klog.connector.options.read_options import parse_read_options
from klog.connector.source import scan_planner
from klog.connector.source.slice_contract import expand_task
from klog.errors import CorruptFileError
from tests.contracts import slice_runner
from tests.damage.damage_cases import LEVELS, Case
from tests.damage.damage_tables import ANSWERED, REFUSED
from tests.fuzz.__main__ import CORPUS
from tests.fuzz.seal import sealed_log
from tests.spark.golden_slices import READABLE, copied, damaged, read, tasks, whole_slice
from tests.spark.jvm_slices import JvmSlices

pytestmark = pytest.mark.spark

CASES = REFUSED + ANSWERED
SEEDS = range(60)
LOGS = ("control", "producers", "record", "recovered", "segment", "tail", "wrapper")


def whole_log(path: Path) -> dict[str, Any]:
    """Return a slice that wants all records of a file, as if a commit named it."""
    (values, *_) = tasks(read(slice_runner.FOLDER / "whole_segment.json"))
    return whole_slice(values | {"isCommitted": True, "baseOffset": 0, "offsetShift": 0}, path)


@pytest.mark.parametrize("step", [8, pytest.param(1, marks=pytest.mark.full)])
@pytest.mark.parametrize("kind", LOGS)
def test_the_corpus_of_the_fuzzer(jvm: JvmSlices, tmp_path: Path, kind: str, step: int) -> None:
    path = tmp_path / "t-0" / "0.log"
    path.parent.mkdir()
    answers: set[str] = set()
    for seed in sampled_inputs(kind, step):
        for data in {seed.read_bytes(), sealed_log(seed.read_bytes())} - {b""}:
            path.write_bytes(data)
            task = [whole_log(path)]
            answer = jvm.run(task)
            assert answer == slice_runner.run_task(task), seed.name
            answers.add(*answer)
    assert "error" in answers


def sampled_inputs(kind: str, step: int) -> list[Path]:
    """Return each `step`-th input, and those that found a fault."""
    inputs = sorted((CORPUS / kind).iterdir())
    return [
        path
        for number, path in enumerate(inputs)
        if number % step == 0 or path.name.startswith("found-")
    ]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name.replace(" ", "-"))
def test_damaged_directories_of_brokers(jvm: JvmSlices, tmp_path: Path, case: Case) -> None:
    directory, _ = case.damaged(tmp_path)
    topic, _, number = directory.name.rpartition("-")
    for level in LEVELS:
        options = parse_read_options(
            {"assign": json.dumps({topic: [int(number)]}), "isolationLevel": level}
        )
        try:
            planned = scan_planner.plan_snapshot(
                RawRoot([str(directory.parent)]).snapshot(), options
            )
        except CorruptFileError:
            continue  # The planner is Python's.
        for task in planned:
            if all(slice_.are_markers_in_file for slice_ in expand_task(task)):
                assert jvm.run(task) == slice_runner.run_task(task)


@pytest.mark.parametrize("seed", SEEDS)
def test_segments_that_an_index_cuts(jvm: JvmSlices, tmp_path: Path, seed: int) -> None:
    """Anywhere, around what is wanted or not.

    Of a damaged one all offsets from the first are wanted: after the last one Python finds damage
    in the bytes that it reads together.
    """
    source = random.Random(seed)
    (values, *_) = tasks(read(source.choice(READABLE)))
    path = copied(values, tmp_path)
    data = path.read_bytes()
    is_damaged = seed % 8 < 4
    if is_damaged:
        data = damaged(data, source)
        path.write_bytes(data)
    start, end = sorted(source.choice((0, source.randrange(len(data)), len(data))) for _ in "ab")
    first, after = sorted(source.randrange(values["limitOffset"] + 1) for _ in "ab")
    names = ("committedOnly", "aborted", "baseOffset", "limitOffset")
    cut = {"startPosition": start, "endPosition": max(end, start + 1)}
    task = [
        whole_log(path)
        | {name: values[name] for name in names}
        | cut
        | {"startOffset": first, "endOffset": 1 << 40 if is_damaged else after + 1}
    ]
    assert jvm.run(task) == slice_runner.run_task(task)
