"""Python's task writer follows docs/write-plan.md: each golden plan gives its golden files."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from klog.connector.commit_log.segment_entries import JSON_NAMES, OPTIONAL_COLUMNS, SCHEMA
from klog.connector.options.storage_options import NO_STORAGE_OPTIONS
from klog.connector.sink.write_contract import (
    FORMAT,
    CommitMessageDict,
    SegmentDict,
    SettingsDict,
    StagedTopicDict,
    TopicPlanDict,
    WritePlanDict,
    message_from_dict,
    message_to_dict,
    plan_from_dict,
    plan_to_dict,
)
from klog.errors import UnsupportedFormatError
from tests.contracts.make_write_plan import FOLDER, golden_case
from tests.contracts.write_plan_cases import CASES
from tests.contracts.write_plan_runner import SIZE_FIELDS, run_case
from tests.support.project import PROJECT

PAGE = (PROJECT / "docs" / "write-plan.md").read_text()
FILES = sorted(FOLDER.glob("*.json"))


def read(path: Path) -> dict[str, Any]:
    case: dict[str, Any] = json.loads(path.read_text())
    return case


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_task_writer_makes_the_golden_files(path: Path) -> None:
    case = read(path)
    results = {name: case[name] for name in ("message", "files", "error") if name in case}
    assert run_case(case) == results


@pytest.mark.parametrize("name", CASES)
def test_golden_file_is_what_the_script_writes(name: str) -> None:
    assert read(FOLDER / f"{name}.json") == golden_case(name)


def test_each_golden_file_has_a_case() -> None:
    assert {path.stem for path in FILES} == set(CASES)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_golden_plan_and_message_are_read_and_written_unchanged(path: Path) -> None:
    case = read(path)
    assert plan_to_dict(plan_from_dict(case["plan"], NO_STORAGE_OPTIONS)) == case["plan"]
    if all(
        "crc32c" in segment
        for staged in case.get("message", {"topics": {}})["topics"].values()
        for segment in staged["segments"]
    ):
        message = case.get("message")
        assert message is None or message_to_dict(message_from_dict(message)) == message


def test_unknown_fields_are_ignored() -> None:
    case = read(FOLDER / "several_topics.json")
    plan, message = case["plan"], case["message"]
    more: Any = {"later": [1]}
    later_plan = plan | more
    later_plan["topics"] = {
        topic: planned | more | {"settings": planned["settings"] | more}
        for topic, planned in plan["topics"].items()
    }
    assert plan_from_dict(later_plan, NO_STORAGE_OPTIONS) == plan_from_dict(
        plan, NO_STORAGE_OPTIONS
    )
    later_message = message | more | {"writer": message["writer"] | more}
    later_message["topics"] = {
        topic: staged | more | {"segments": [segment | more for segment in staged["segments"]]}
        for topic, staged in message["topics"].items()
    }
    assert message_from_dict(later_message) == message_from_dict(message)


@pytest.mark.parametrize("version", [FORMAT + 1, 0, None, "1", True])
def test_other_formats_are_refused(version: Any) -> None:
    case = read(FOLDER / "plain.json")
    with pytest.raises(UnsupportedFormatError, match=r"write plan: its format is .* executors"):
        plan_from_dict(case["plan"] | {"format": version}, NO_STORAGE_OPTIONS)
    with pytest.raises(UnsupportedFormatError, match="message of a task: its format is"):
        message_from_dict(case["message"] | {"format": version})


@pytest.mark.parametrize("field", ["root", "topics", "bufferBytes"])
def test_missing_field_is_named(field: str) -> None:
    plan = read(FOLDER / "plain.json")["plan"]
    del plan[field]
    with pytest.raises(UnsupportedFormatError, match=f"it has no field '{field}'"):
        plan_from_dict(plan, NO_STORAGE_OPTIONS)


@pytest.mark.parametrize(("field", "name"), [("codec", "brotli"), ("partitioner", "sicky")])
def test_unknown_codec_or_partitioner_is_refused(field: str, name: str) -> None:
    plan = read(FOLDER / "plain.json")["plan"]
    for topic in plan["topics"].values():
        topic["settings"][field] = name
    with pytest.raises(UnsupportedFormatError, match=f"no {field} '{name}'. Use one version"):
        plan_from_dict(plan, NO_STORAGE_OPTIONS)


def test_message_with_a_file_of_another_topic_is_refused() -> None:
    message = read(FOLDER / "plain.json")["message"]
    message["topics"]["bills"] = message["topics"].pop("orders")
    with pytest.raises(UnsupportedFormatError, match="segment of bills-0"):
        message_from_dict(message)


@pytest.mark.parametrize(
    ("heading", "fields"),
    [
        ("## The plan", WritePlanDict),
        ("### The plan of a topic", TopicPlanDict),
        ("### Settings", SettingsDict),
        ("## The message", CommitMessageDict),
        ("And for each topic:", StagedTopicDict),
    ],
)
def test_page_has_each_field_in_order(heading: str, fields: type) -> None:
    section = PAGE.split(f"\n{heading}\n")[1]
    table = section.split("|---|---|---|\n")[1].split("\n\n")[0]
    assert re.findall(r"^\| `(\w+)`", table, re.M) == list(fields.__annotations__)


def test_segment_has_the_fields_of_a_commit() -> None:
    names = [JSON_NAMES[name] for name in SCHEMA.names if name not in OPTIONAL_COLUMNS]
    assert list(SegmentDict.__annotations__) == names
    for path in FILES:
        for staged in read(path).get("message", {"topics": {}})["topics"].values():
            for segment in staged["segments"]:
                assert set(segment) | set(SIZE_FIELDS) == set(names)


def test_plan_holds_no_credentials() -> None:
    assert "storage" not in read(FOLDER / "plain.json")["plan"]
