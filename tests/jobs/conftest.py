"""Each test's compactions are the first ones of their process."""

from __future__ import annotations

import pytest

from klog.jobs.compacting import workload
from klog.logformat.compiled.compiling import WORTH_RECORDS, Rented, loops


@pytest.fixture(autouse=True)
def no_loops_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Begin as a process that has cleaned nothing, whatever the tests before have cleaned."""
    monkeypatch.setattr(workload, "CLEANING", Rented(loops, WORTH_RECORDS))
