"""Kernels that never load, and kernels that load before the first record."""

from __future__ import annotations

from klog.jobs.shared.marking.compiled_kernels import LazyKernel, load_cleaning_kernels

NEVER_KERNELS = LazyKernel(lambda: None, -1)
CLEANING_FROM_THE_START = LazyKernel(load_cleaning_kernels, -1)
