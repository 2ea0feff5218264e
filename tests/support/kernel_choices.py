"""Functions that run with and without kernels, and kernels that load before the first record."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import pytest

from klog.connector.compiled_kernels import LazyKernel, load_cleaning_kernels
from klog.errors import CorruptRecordError
from klog.logformat.compiled.kernel_types import LegacyKernels
from tests.support.kernels import legacy_kernels

T = TypeVar("T")

NEVER_KERNELS = LazyKernel[Any](lambda: None, -1)
CLEANING_FROM_THE_START = LazyKernel(load_cleaning_kernels, -1)


def with_legacy_kernels_too(read: Callable[[LegacyKernels | None], T]) -> T:
    """Return or raise the result without kernels, and assert the same result with them."""
    try:
        expected = read(None)
    except CorruptRecordError as exc:
        with pytest.raises(CorruptRecordError) as caught:
            read(legacy_kernels)
        errors = [(error.reason, error.position) for error in (exc, caught.value)]
        assert errors[0] == errors[1]
        raise
    assert read(legacy_kernels) == expected
    return expected
