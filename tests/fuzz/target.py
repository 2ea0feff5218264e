"""What a target of the fuzzer is: a function over bytes, and what it may refuse.

The rule: any bytes decode, or are refused by one of the errors that the target names; every other
exception is a defect. A target is a function that raises nothing else. Where a checksum would stop
an input, the function puts the right one in, as else nothing after it would be reached; and where
two independent readers exist, what both accept must say the same.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from klog.errors import CorruptRecordError


@dataclass(frozen=True, slots=True)
class Target:
    """One thing to fuzz: `share` is its part of the time, `refuses` what it may raise."""

    run: Callable[[bytes], object]
    max_bytes: int
    share: int = 1
    refuses: tuple[type[Exception], ...] = (CorruptRecordError,)
