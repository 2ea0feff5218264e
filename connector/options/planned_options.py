"""Options that a later version brings: they are refused by name, with what to do until then."""

from __future__ import annotations

from typing import Any

from klog.connector.options import option_values as values
from klog.connector.options.option import Option, Use

_CHECKPOINT = "A stream keeps its positions in its checkpoint: leave it out"


def _planned(name: str, help: str, next_step: str) -> Option[Any]:  # noqa: A002
    return Option(name, Use.READ, values.TEXT, help, is_supported=False, next_step=next_step)


PLANNED_OPTIONS: tuple[Option[Any], ...] = (
    _planned("groupId", "The consumer group to which a read commits its positions.", _CHECKPOINT),
    _planned("groupRoot", "The root that stores the group.", _CHECKPOINT),
)
