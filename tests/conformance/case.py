"""A row of a table: a case with its input and answer, or the reason why klog has none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Refused:
    """The answer of a case that Kafka refuses: klog's error, and a part of its message."""

    error: type[Exception]
    words: str = ""


@dataclass(frozen=True, slots=True)
class Case:
    """`run(*args)` equals `expect`, or raises the error of a `Refused`.

    `id` is a line of `ids.txt`; several rows may share one, then `label` tells them apart.
    """

    id: str
    run: Callable[..., Any]
    args: tuple[Any, ...]
    expect: Any
    label: str = ""


@dataclass(frozen=True, slots=True)
class NotApplicable:
    """A case that klog has no counterpart of, and why."""

    id: str
    why: str
