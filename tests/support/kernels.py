"""The modules of kernels; numba keeps their compiled code, so that few processes compile it."""

from __future__ import annotations

from klog.connector.compiled_kernels import keep_compiled_code
from klog.logformat.compiled import (
    encode_kernels,
    hash_table_kernels,
    record_kernels,
)

__all__ = ["encode_kernels", "hash_table_kernels", "record_kernels"]

keep_compiled_code(encode_kernels, hash_table_kernels, record_kernels)
