"""Each test's compactions are the first ones of their process."""

from __future__ import annotations

import pytest

from klog.jobs.shared.marking import compiled_kernels
from klog.jobs.shared.marking.compiled_kernels import (
    LOADING_COST_RECORDS,
    LazyKernel,
    load_cleaning_kernels,
)


@pytest.fixture(autouse=True)
def no_loops_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Begin as a process that has cleaned nothing, whatever the tests before have cleaned."""
    monkeypatch.setattr(
        compiled_kernels, "CLEANING", LazyKernel(load_cleaning_kernels, LOADING_COST_RECORDS)
    )
