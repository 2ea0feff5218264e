"""Python's reader follows docs/slice.md: each golden task gives its golden rows."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, get_type_hints

import pytest

from klog.connector.kafka_dir.partition_directory import list_consistently
from klog.connector.source import aborted_filter
from klog.connector.source.slice_contract import (
    FIELDS,
    FORMAT,
    SliceDict,
    SliceFields,
    expand_task,
    from_dict,
    to_dict,
)
from klog.connector.source.slices import Slice
from klog.connector.store.readable_store import DirectoryEntry, ReadableStore
from klog.errors import UnsupportedFormatError
from tests.contracts.all_slice_cases import CASES
from tests.contracts.make_slices import golden_case
from tests.contracts.slice_case import FILES, Files
from tests.contracts.slice_runner import FOLDER, run_case
from tests.support.project import PROJECT

PAGE = (PROJECT / "docs" / "slice.md").read_text()
PATHS = sorted(FOLDER.glob("*.json"))


def read(path: Path) -> dict[str, Any]:
    case: dict[str, Any] = json.loads(path.read_text())
    return case


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_reader_gives_the_golden_rows(path: Path) -> None:
    case = read(path)
    assert run_case(case) == {name: case[name] for name in ("rows", "error") if name in case}


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_reader_lists_a_directory_only_in_cases_that_are_pythons(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = []

    def list_recorded(store: ReadableStore, directory: str) -> list[DirectoryEntry]:
        listed.append(directory)
        return list_consistently(store, directory)

    monkeypatch.setattr(aborted_filter, "list_consistently", list_recorded)
    case = read(path)
    run_case(case)
    assert bool(listed) == case["isPythonOnly"]


@pytest.mark.parametrize("name", CASES)
def test_golden_file_is_what_the_script_writes(name: str) -> None:
    assert read(FOLDER / f"{name}.json") == golden_case(name)


def test_each_golden_file_has_a_case() -> None:
    assert {path.stem for path in PATHS} == set(CASES)


def test_segments_of_cases_are_what_the_script_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No case writes compressed bytes, which may change with a codec's library."""
    monkeypatch.setattr("tests.contracts.slice_case.FILES", tmp_path)
    for name, make in CASES.items():
        make(Files(name, is_dry=False))
    written = {path.relative_to(tmp_path) for path in tmp_path.rglob("*.*")}
    assert written == {path.relative_to(FILES) for path in FILES.rglob("*.*")}
    for path in written:
        assert (tmp_path / path).read_bytes() == (FILES / path).read_bytes()


def test_paths_of_cases_are_relative() -> None:
    for path in PATHS:
        for values in read(path)["task"]:
            assert not values["root"].startswith("/")
            assert str(PROJECT) not in path.read_text()


def test_cases_cover_each_field() -> None:
    """Over all cases, each field except the topic's name has two values or more."""
    values: dict[str, set[str]] = {name: set() for name in FIELDS.values()}
    for path in PATHS:
        if read(path).get("error") != "format":
            for slice_ in expand_task(read(path)["task"]):
                for name, value in to_dict(slice_).items():
                    values.get(name, set()).add(repr(value))
    # The runner of a case fills in identity and stamp.
    assert {name for name, field_values in values.items() if len(field_values) < 2} == {
        "identity",
        "stamp",
    }


def test_slice_is_read_and_written_unchanged() -> None:
    (values,) = read(FOLDER / "index_named.json")["task"]
    assert to_dict(from_dict(values)) == values
    assert list(to_dict(from_dict(values))) == ["format", *FIELDS.values()]


def test_unknown_fields_are_ignored() -> None:
    (values,) = read(FOLDER / "index_named.json")["task"]
    assert from_dict(values | {"later": [1]}) == from_dict(values)


@pytest.mark.parametrize("number", [FORMAT + 1, 0, None, "1", True])
def test_other_formats_are_refused(number: Any) -> None:
    (values,) = read(FOLDER / "index_named.json")["task"]
    with pytest.raises(UnsupportedFormatError, match=r"slice: its format is .* executors"):
        from_dict(values | {"format": number})
    runs: list[Any] = [{"startOffset": [0]}, {"startOffset": []}, {}, [[1]], None]
    for each in runs:
        with pytest.raises(UnsupportedFormatError, match="slice: its format is"):
            list(expand_task([values | {"format": number, "each": each}]))


@pytest.mark.parametrize(
    "each", [{}, [[1]], None, {"startOffset": 1}, {"startOffset": [1, 2], "endOffset": [3]}]
)
def test_run_without_lists_of_one_length_gives_no_slice(each: Any) -> None:
    (values,) = read(FOLDER / "index_named.json")["task"]
    slices = expand_task([values | {"each": each}])
    with pytest.raises(UnsupportedFormatError, match="each has no lists of one length"):
        next(slices)


@pytest.mark.parametrize("field", ["path", "aborted"])
def test_missing_field_is_named(field: str) -> None:
    (values,) = read(FOLDER / "index_named.json")["task"]
    del values[field]
    with pytest.raises(UnsupportedFormatError, match=f"it has no field '{field}'"):
        from_dict(values)


def test_dict_has_each_field_with_its_type() -> None:
    types = {FIELDS[name]: kind for name, kind in get_type_hints(Slice).items()}
    assert get_type_hints(SliceFields) == types
    assert get_type_hints(SliceDict) == types | {"format": int}
    assert SliceDict.__required_keys__ == {"format"}


def test_page_has_each_field_in_order() -> None:
    section = PAGE.split("\n## Fields\n")[1].split("\n## ")[0]
    assert re.findall(r"^\| `(\w+)`", section, re.M) == ["format", *FIELDS.values()]
