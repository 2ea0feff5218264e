"""When a process loads kernels, and that it does all of its work without them too."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from klog.jobs.shared.marking import compiled_kernels
from klog.jobs.shared.marking.compiled_kernels import LazyKernel, load_cleaning_kernels
from klog.logformat.compiled.kernel_types import CleaningKernels
from tests.support.kernels import hash_table_kernels, record_kernels
from tests.support.project import PROJECT
from tests.support.waiting import TIMEOUT_SECONDS

KERNELS = CleaningKernels(record_kernels, hash_table_kernels)
LOAD_IN_A_PROCESS = """
import sys, warnings
sys.path.insert(0, sys.argv[1])
from klog.jobs.shared.marking import compiled_kernels
with warnings.catch_warnings(record=True) as caught:
    kernels = compiled_kernels.load_cleaning_kernels()
print(kernels is not None, len(caught), *(warning.message for warning in caught))
"""


def counted(cost_records: int) -> tuple[LazyKernel, list[int]]:
    """Return kernels, and a list that gets an element each time that they are loaded."""
    loads: list[int] = []

    def load() -> CleaningKernels:
        loads.append(1)
        return KERNELS

    return LazyKernel(load, cost_records), loads


def test_kernels_are_loaded_once_they_are_worth_it() -> None:
    lazy, loads = counted(100)
    assert [lazy.get(40, 40) for _ in range(4)] == [None, None, KERNELS, KERNELS]
    assert len(loads) == 2


@pytest.mark.parametrize(
    ("calls", "expected"),
    [
        ([(40, 100), (40, 60)], [False, False]),
        ([(40, 101), (1, 1)], [True, True]),
        ([(40, 0), (20, 61), (1, 1)], [False, True, True]),
    ],
)
def test_remaining_records_count_too(calls: list[tuple[int, int]], expected: list[bool]) -> None:
    """With those done without kernels; and once kernels are loaded they are always used."""
    lazy, _ = counted(100)
    assert [lazy.get(*call) is not None for call in calls] == expected


def test_kernels_in_a_zip_are_worth_it_later(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each process compiles them."""
    monkeypatch.setattr(compiled_kernels, "is_in_zip", lambda: True)
    lazy, loads = counted(100)
    assert [lazy.get(100, 100) is None for _ in range(5)] == [True] * 4 + [False]
    assert len(loads) == 1


def test_no_record_loads_nothing_and_counts_nothing() -> None:
    lazy, loads = counted(0)
    calls = [lazy.get(records, records) for records in (0, 0, 1, 0)]
    assert calls == [None, None, KERNELS, KERNELS]
    assert len(loads) == 2


def load_in_a_process(path: Path, **environment: str) -> str:
    """Load kernels in a process that imports from a folder or a zip first."""
    done = subprocess.run(
        [sys.executable, "-c", LOAD_IN_A_PROCESS, str(path)],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
        check=True,
    )
    return done.stdout.strip()


def test_a_zip_needs_no_place_for_compiled_code(tmp_path: Path) -> None:
    archive = tmp_path / "klog.zip"
    subprocess.run([sys.executable, PROJECT / "tools" / "pyfiles.py", archive], check=True)
    nowhere = {"HOME": "/proc/nowhere", "XDG_CACHE_HOME": "/proc/nowhere"}
    assert load_in_a_process(archive, **nowhere) == "True 0"


def test_numba_that_cannot_be_used_is_a_warning(tmp_path: Path) -> None:
    (tmp_path / "numba.py").write_text("raise ImportError('Numba needs another NumPy')")
    assert load_in_a_process(tmp_path) == (
        "False 1 numba is installed but cannot be used, so klog is slower: ImportError: Numba "
        "needs another NumPy. Repair numba, or uninstall it"
    )


def test_without_numba_there_are_no_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled_kernels, "find_spec", lambda name: None)
    assert load_cleaning_kernels.__wrapped__() is None
