"""The manifest of to-files and the ledger of import-files: golden entries, as in docs/files.md.

A later klog reads these files. If a field changes its meaning, raise the format and keep them.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pytest

import klog
from klog.connector.back_off import back_off
from klog.connector.commit_log.klog_root import KlogRoot
from klog.connector.store.local_store import LocalStore
from klog.errors import NewerFormatError
from klog.jobs import import_files, to_files
from klog.jobs.importing_files.import_ledger import ImportLedger, ImportState
from klog.jobs.importing_files.source_files import SourceFile
from klog.jobs.shared.files_manifest import FilePlan, FilesEntry, FilesManifest, parse_entry
from klog.jobs.shared.numbered_entries import NumberedEntries, encode_entry
from tests.support.project import PROJECT

FOLDER = Path(__file__).parent / "files"
PAGE = (PROJECT / "docs" / "files.md").read_text()


def golden(name: str) -> list[dict[str, Any]]:
    return [json.loads(path.read_text()) for path in sorted((FOLDER / name).glob("*.json"))]


def test_entries_of_the_manifest_are_read_and_written_as_they_are() -> None:
    plan, files = (parse_entry(fields) for fields in golden("manifest"))
    assert isinstance(plan, FilePlan)
    assert isinstance(files, FilesEntry)
    assert [part.end_offset for part in plan.ranges] == [200, 250, 40]
    assert (files.plan_number, files.plan_id) == (plan.number, plan.plan_id)
    assert files.files[1].records == 50
    for fields, entry in zip(golden("manifest"), (plan.as_json(), files.as_json()), strict=True):
        written = {"format": 1, "number": fields["number"], **entry, "engine": fields["engine"]}
        path = FOLDER / "manifest" / f"{fields['number']:020}.json"
        assert encode_entry(written) == path.read_bytes()


def test_the_entries_of_an_import_say_what_is_imported(tmp_path: Path) -> None:
    root = SimpleNamespace(path=str(tmp_path), store=LocalStore())
    ledger = ImportLedger(cast(KlogRoot, root), "oLU2KAuJTQu3f_SSptKlOA", "x", back_off)
    ledger.put([], is_previous_imported=False)
    (folder,) = (tmp_path / "_klog" / "imports").iterdir()
    for path in (FOLDER / "import").iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    imported = {"2026/11/a.json": 100, "2026/11/b.json.gz": 200}
    imported |= {"2026/11/c.json": 333, "2026/11/d.json": 400}
    assert ledger.load() == ImportState(34, (SourceFile("2026/11/e.json", 500),), imported)


def test_a_run_writes_the_fields_that_the_page_has(tmp_path: Path) -> None:
    log = klog.open(str(tmp_path / "root"))
    log.create_topic("orders", 1)
    log.append("orders", pa.table({"value": ["x"]}))
    to_files.run(None, str(tmp_path / "root"), "orders", str(tmp_path / "to"))
    import_files.run(
        None, str(tmp_path / "root"), "orders", str(tmp_path / "to" / "orders"), format="parquet"
    )
    entries = {
        "manifest": sorted((tmp_path / "to" / "orders" / "_manifest").glob("0*.json")),
        "import": sorted((tmp_path / "root" / "_klog" / "imports").rglob("0*.json")),
    }
    named = set(re.findall(r"`(\w+)`", "".join(re.findall(r"^\| (`.*?) \|", PAGE, re.MULTILINE))))
    for name, paths in entries.items():
        for path, expected in zip(paths, golden(name), strict=False):
            fields = json.loads(path.read_text())
            assert list(fields) == list(expected)
            assert set(fields) <= named


def test_a_later_format_is_refused(tmp_path: Path) -> None:
    (tmp_path / "_manifest").mkdir()
    entry = golden("manifest")[0] | {"format": 2}
    (tmp_path / "_manifest" / f"{0:020}.json").write_text(json.dumps(entry))
    with pytest.raises(NewerFormatError, match="Run the job with that klog"):
        FilesManifest(LocalStore(), str(tmp_path), back_off).newest()
    entries = NumberedEntries(LocalStore(), str(tmp_path / "_manifest"), back_off)
    assert entries.newest() == 0
