"""Parameters of tests. CI runs a part of them.

The rule: it is always the same part, and `make full` runs all. The mark is an argument, so that the
file of the test shows it (tools/marked_files.py).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def sampled(values: Iterable[Any], every: int, mark: pytest.MarkDecorator) -> list[Any]:
    """Return all values as parameters; all but the first of each `every` have the mark."""
    return [
        pytest.param(value, marks=mark if number % every else ())
        for number, value in enumerate(values)
    ]
