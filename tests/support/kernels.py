"""The modules of kernels; numba keeps their compiled code, so that few processes compile it."""

from __future__ import annotations

from klog.jobs.shared.marking.compiled_kernels import keep_compiled_code
from klog.logformat.compiled import hash_table_kernels, record_kernels

__all__ = ["hash_table_kernels", "record_kernels"]

keep_compiled_code(hash_table_kernels, record_kernels)
