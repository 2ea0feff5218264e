"""What needs a klog root says whether a path is missing, a file, or another directory."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import klog
from klog.connector.open_root import open_klog_root
from klog.errors import OptionError
from klog.jobs import compact, export_log, merge, repair, retain, vacuum, verify

NEEDS_A_ROOT: dict[str, Callable[[str], object]] = {
    "open_klog_root": open_klog_root,
    "append": lambda path: klog.open(path).append("t", []),
    "compact": lambda path: compact.run(None, path),
    "export-log": lambda path: export_log.run(None, path, [], f"{path}-to"),
    "merge": lambda path: merge.run(None, path),
    "repair": lambda path: repair.run(None, path),
    "retain": lambda path: retain.run(None, path),
    "vacuum": lambda path: vacuum.run(None, path),
    "verify": lambda path: verify.run(None, path),
}


@pytest.mark.parametrize("need", NEEDS_A_ROOT.values(), ids=NEEDS_A_ROOT)
def test_a_path_that_is_not_a_klog_root(need: Callable[[str], object], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "folder").mkdir()
    for name, reason in {
        "missing": "there is no directory {}. Give one that exists",
        "file": "{} is a file",
        "folder": "{} is not a klog root: ",
    }.items():
        path = str(tmp_path / name)
        with pytest.raises(OptionError) as raised:
            need(path)
        assert str(raised.value).startswith(reason.format(path))
    assert {path.name for path in tmp_path.iterdir()} == {"file", "folder"}
