"""JSON reports keep their keys, types and values: tests play the scenes of each archive again."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.releases import REPORTS, read_json
from tests.releases.conftest import Archive
from tests.releases.playing import clock_of, play
from tests.releases.reports import common, differences, step_differences

CHANGED = {
    ("0.2.0", "repairing"): re.compile(
        r"vacuum --root {here}/root( --topic again)? --grace 0s (--execute|--discard-lost) --json: "
        r"\[0\]\.topics\.again\.(files|bytes|removed)"
    )
}
"""Differences on purpose, by release and scene.

A commit now raises the vacuum version before removed segments are deleted: until then they
can be restored. While the last commits are lost there is no such commit, so the segments stay.
"""


def test_reports_are_unchanged(archive: Archive, tmp_path: Path) -> None:
    """Play the release's own scenes, which may differ from the current ones."""
    lacking: list[str] = []
    for scene in read_json(archive.folder / REPORTS):
        with clock_of(archive.folder):
            steps = play(scene, archive.folder, tmp_path / scene["scene"])
        lines = [
            difference
            for old, new in zip(scene["steps"], steps, strict=True)
            if "run" in old
            for difference in step_differences(old, new)
        ]
        if changed := CHANGED.get((archive.version, scene["scene"])):
            assert any(map(changed.match, lines)), f"no longer changed: {changed.pattern}"
            lines = [difference for difference in lines if not changed.match(difference)]
        lacking += lines
    assert not lacking, "\n".join(lacking)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({"a": 1}, {"b": 1}),
        ({"a": 1}, {"a": 2}),
        ({"a": 1}, {"a": "1"}),
        ({"a": 1}, {"a": True}),
        ({"a": [1]}, {"a": []}),
        ({"a": [1, 2]}, {"a": [2, 1]}),
        ({"a": ["x", "y"]}, {"a": ["x", "z"]}),
        ({"a": {"b": None}}, {"a": {"b": 1}}),
        ({"a": {"#varies": "str"}}, {"a": 1}),
        ({"seconds": 0.5}, {"seconds": 1}),
        ({"files": {"x.log": 1}}, {"files": {"y.log": 1}}),
    ],
)
def test_differences_are_reported(old: Any, new: Any) -> None:
    assert list(differences(old, new, "report"))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({"a": 1}, {"a": 1, "b": 2}),
        ({"a": ["x", "y"]}, {"a": ["y", "x"]}),
        ({"seconds": 0.5, "note": "x"}, {"seconds": 1.5, "note": "y"}),
        ({"a": {"#varies": "str"}}, {"a": "y"}),
        (common({"a": [1, "x"]}, {"a": [1, "y"]}), {"a": [1, "z"]}),
    ],
)
def test_allowed_differences(old: Any, new: Any) -> None:
    assert not list(differences(old, new, "report"))
