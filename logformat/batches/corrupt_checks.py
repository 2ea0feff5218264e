"""Errors for the first of many rows that are damaged."""

from __future__ import annotations

import numpy as np

from klog.errors import CorruptRecordError
from klog.logformat.array_types import Longs, Mask


def raise_if_corrupt(is_wrong: Mask, positions: Longs, reason: str) -> None:
    """Raise an error for the first wrong row, if there is one.

    Args:
        is_wrong: Which rows are damaged.
        positions: The position of each row, for the error.
        reason: What is wrong with the row.

    Raises:
        CorruptRecordError: A row is wrong.
    """
    if np.count_nonzero(is_wrong):
        raise CorruptRecordError(reason, int(positions[int(np.argmax(is_wrong))]))
