"""What a row of a table is: a case with its input and answer, or the reason why there is none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Refused:
    """The answer of a case that Kafka refuses: klog's error, and words that its message holds."""

    error: type[Exception]
    words: str = ""


@dataclass(frozen=True, slots=True)
class Case:
    """`run(*given)` equals `expect`, or raises what a `Refused` says.

    `id` is a line of `ids.txt`; several rows may share one, then `label` tells them apart.
    """

    id: str
    run: Callable[..., Any]
    given: tuple[Any, ...]
    expect: Any
    label: str = ""


@dataclass(frozen=True, slots=True)
class NotApplicable:
    """A case that klog has no counterpart of, and why."""

    id: str
    why: str
