"""Topics without newer features are still written so that klog 0.1 can read and append to them.

The rule: klog 0.1 is its own code, the zip that its `make pyfiles` made, in a process of its own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from threading import Timer
from typing import Any

import pytest

import klog
from tests.releases import ARCHIVES, copy, versions
from tests.releases.account import records_of, root_account
from tests.releases.command import done
from tests.releases.conftest import Archive, WrittenRoots
from tests.releases.large import write_large
from tests.releases.release_topics import LOADER, numbered, table, wait_for_checkpoint
from tests.support.waiting import TIMEOUT_SECONDS

OLD = "0.1.0"
OLD_CODE = ARCHIVES / f"klog-{OLD}-pyfiles.zip"
REPOSITORY = Path(__file__).parents[2]
NOT_READ = {"repaired", "restored"}
"""Roots of archives with features that klog 0.1 does not have."""
Request = tuple[str, ...]


class OldKlog:
    """klog 0.1 in a process that answers requests."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.releases.requests"],
            cwd=REPOSITORY,
            env={**os.environ, "PYTHONPATH": str(OLD_CODE)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, requests: Iterable[Request]) -> list[Any]:
        """Run requests in order; return the JSON of each."""
        stdin, answers = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert answers is not None
        watch = Timer(TIMEOUT_SECONDS, self._process.kill)
        watch.start()
        try:
            stdin.write(f"{json.dumps(list(requests))}\n")
            stdin.flush()
            answer = json.loads(answers.readline() or "null")
        finally:
            watch.cancel()
        assert answer, "the process ended: see its standard error"
        assert answer["version"] == OLD
        assert answer["file"].startswith(str(OLD_CODE))
        results: list[Any] = answer["results"]
        return results

    def end(self) -> None:
        """End the process."""
        self._process.communicate(timeout=TIMEOUT_SECONDS)


@pytest.fixture(scope="module")
def old() -> Iterator[OldKlog]:
    """Start klog 0.1 once."""
    klog_0_1 = OldKlog()
    yield klog_0_1
    klog_0_1.end()


def test_0_1_reads_what_the_current_code_writes(old: OldKlog, written_roots: WrittenRoots) -> None:
    roots = written_roots.readable
    accounts = [("account", str(root)) for root in roots]
    reports = [("verify", "--root", str(root), "--json") for root in roots]
    results = old.run([*accounts, *reports])
    for root, account, report in zip(roots, results, results[len(roots) :], strict=False):
        assert account == root_account(root)
        assert (report["findings"], report["topics"].keys()) == ([], account.keys())


def test_0_1_appends_to_what_the_current_code_writes(
    old: OldKlog, written_roots: WrittenRoots, tmp_path: Path
) -> None:
    root = copy(written_roots.root, tmp_path / "root")
    lines = tmp_path / "lines.txt"
    lines.write_text("k1\tby 0.1\n")
    before = {topic: records_of(root, topic) for topic in klog.open(root).topics()}
    produce = ("produce", "--root", str(root), "--file", str(lines), "--partition", "0", "--json")
    keyed = (*produce, "--reader-property", "parse.key=true", "--topic")
    writer = ("many", "--transactional-id", LOADER, "--transaction-version")
    results = old.run(
        [
            *((*keyed, topic) for topic in before),
            *((*keyed, *writer, number) for number in ("124", "125")),
        ]
    )
    assert [result["isNew"] for result in results] == [True] * len(before) + [False, True]
    for topic, result in zip(before, results, strict=False):
        added = [record for record in records_of(root, topic) if record not in before[topic]]
        assert len(added) == (2 if topic == "many" else 1)
        assert (added[0]["key"], added[0]["value"]) == ("k1", "by 0.1")
        assert result["offsets"] == {"0": [added[0]["offset"], added[0]["offset"] + 1]}
    _check_named_writer(root)
    done("verify", "--root", str(root))


def _check_named_writer(root: Path) -> None:
    """Continue with the writer whose last batch klog 0.1 has written."""
    log, count = klog.open(root), len(records_of(root, "many"))
    for version, is_new in ((125, False), (126, True)):
        rows = table(numbered(version, 1))
        result = log.append("many", rows, transactional_id=LOADER, transaction_version=version)
        assert result.is_new == is_new
    assert len(records_of(root, "many")) == count + 1


def test_0_1_runs_jobs_on_what_the_current_code_writes(
    old: OldKlog, written_roots: WrittenRoots, tmp_path: Path
) -> None:
    """Jobs of both versions in turn have the same result as jobs of one."""
    old_root, new_root = (copy(written_roots.root, tmp_path / name) for name in ("one", "other"))
    jobs = (
        ("compact", "--min-dirty-ratio", "0"),
        ("merge",),
        ("retain",),
        ("vacuum", "--execute", "--grace", "0s"),
        ("verify",),
    )
    done("merge", "--root", str(old_root))
    old.run((job, "--root", str(old_root), *options, "--json") for job, *options in jobs)
    done("merge", "--root", str(new_root))
    for job, *options in jobs:
        done(job, "--root", str(new_root), *options)
    assert root_account(old_root) == root_account(new_root)
    for job, *options in jobs:
        done(job, "--root", str(old_root), *options)
    assert root_account(old_root) == root_account(new_root)


def test_0_1_refuses_what_it_would_misread(old: OldKlog, written_roots: WrittenRoots) -> None:
    """The error of a repaired topic names the version of klog that can read it."""
    (topics,) = old.run([("topics", "describe", "--root", str(written_roots.repaired), "--json")])
    errors = {topic["topic"]: topic["error"] for topic in topics if "error" in topic}
    assert errors.keys() == {"added", "hole", "hole-in-tail", "raised"}
    assert all("install klog 0.2.0 or newer" in error for error in errors.values())


def test_0_1_refuses_a_restored_topic(old: OldKlog, written_roots: WrittenRoots) -> None:
    root = str(written_roots.restored)
    (topics,) = old.run([("topics", "describe", "--root", root, "--json")])
    errors = {topic["topic"]: topic["error"] for topic in topics if "error" in topic}
    assert errors.keys() == {"restored", "undone"}
    for error in errors.values():
        assert "it has format 4, this klog reads up to 2; install klog 0.3.0 or newer" in error


@pytest.mark.parametrize("version", sorted(set(versions()) - {OLD}))
def test_0_1_reads_the_archives_of_later_releases(
    old: OldKlog, unpacked: Callable[[str], Archive], version: str
) -> None:
    archive = unpacked(version)
    roots = sorted(archive.expected["roots"].keys() - NOT_READ)
    accounts = old.run(("account", str(archive.folder / root)) for root in roots)
    for root, account in zip(roots, accounts, strict=True):
        assert account == archive.expected["roots"][root], root


@pytest.mark.slow
def test_0_1_reads_parts_and_sidecars(old: OldKlog, tmp_path: Path) -> None:
    write_large(tmp_path, "large")
    log = klog.open(tmp_path)
    for number in range(100):
        log.append("large", table(numbered(number, 1)))
    wait_for_checkpoint(tmp_path, "large")
    describe = ("topics", "describe", "--root", str(tmp_path), "--json")
    for is_retained in (False, True):
        if is_retained:
            done("retain", "--root", str(tmp_path), "--topic", "large")
        assert old.run([describe]) == done(*describe).json_lines()
