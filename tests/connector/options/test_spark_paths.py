"""The paths of `load()` and `save()`: one, a list, or several with commas."""

from __future__ import annotations

from pathlib import Path

import pytest

from klog.connector.options.spark_paths import read_paths, write_path
from klog.errors import OptionError


@pytest.mark.parametrize(
    ("options", "paths"),
    [
        ({"path": "/a"}, ["/a"]),
        ({"PATH": "/a"}, ["/a"]),
        ({"path": "/a, /b,,"}, ["/a", "/b"]),
        ({"path": "/with,comma"}, ["/with,comma"]),
        ({"paths": '["/a","/b,c"]'}, ["/a", "/b,c"]),
        ({"path": "/x", "paths": '["/a"]'}, ["/a"]),
        ({"path": "s3://bucket/root"}, ["s3://bucket/root"]),
    ],
)
def test_paths_of_a_read(options: dict[str, str], paths: list[str]) -> None:
    assert read_paths(options, lambda path: path == "/with,comma") == paths


def test_relative_path_is_made_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert read_paths({"path": "here"}, lambda path: False) == [str(tmp_path / "here")]
    assert write_path({"path": "here"}) == str(tmp_path / "here")
    assert write_path({"path": "s3://bucket/root"}) == "s3://bucket/root"
    assert write_path({"path": "a:b"}) == str(tmp_path / "a:b")  # A path may have a colon.


@pytest.mark.parametrize("options", [{}, {"path": ""}])
def test_missing_path_is_refused(options: dict[str, str]) -> None:
    with pytest.raises(OptionError, match="path: give the log directory"):
        read_paths(options, lambda path: False)
    with pytest.raises(OptionError, match="path: give the root to save"):
        write_path(options)


def test_memory_of_one_process_is_refused() -> None:
    options = {"path": "memory://x"}
    with pytest.raises(OptionError, match="memory://x lives in one process"):
        read_paths(options, lambda path: False)
    with pytest.raises(OptionError, match="memory://x lives in one process"):
        write_path(options)


@pytest.mark.parametrize("text", ["/a,/b", '{"a": 1}', "[1]", '"/a"', "[", '[""]', "[" * 100_000])
def test_a_list_of_paths_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(OptionError, match=r"^paths: must be a JSON list of paths, got "):
        read_paths({"paths": text}, lambda path: False)
