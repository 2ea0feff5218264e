"""Parameters of tests that are too slow for CI.

The rule: CI always runs the same part, and `make full` all. The mark is an argument, so that the
file of the test shows it (tools/marked_files.py). Of tests with servers or Spark, the plugin
`tools/sampled_parameters.py` takes a part.
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
