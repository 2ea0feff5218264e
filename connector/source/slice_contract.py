"""Slices as they travel from the planner to tasks, maybe to another engine (docs/slice.md).

The rule: a slice crosses processes and languages as a plain dict of strings, numbers, truth values
and lists, with the number of its format. Fields that a reader does not know are ignored; another
format is refused. Many slices that differ in few fields travel as one run: the fields they share,
and under `each` a list for each other field. So a plan of a million segments makes a few lists.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any, TypeAlias, TypedDict, cast

from klog.connector.contract_format import check_contract_format
from klog.connector.source.slices import Slice
from klog.errors import UnsupportedFormatError

FORMAT = 1
EACH = "each"


class SliceFields(TypedDict, total=False):
    """The fields of a slice; a run has those that its slices share."""

    topic: str
    partition: int
    topicId: str
    root: str
    path: str
    isCommitted: bool
    identity: str
    stamp: str
    fileSizeBytes: int
    segmentSizeBytes: int
    baseOffset: int
    offsetShift: int
    startPosition: int
    endPosition: int
    firstOffset: int
    limitOffset: int
    startOffset: int
    endOffset: int
    indexPath: str
    indexSizeBytes: int
    crc32c: int
    committedOnly: bool
    aborted: list[list[int]]
    markersEndOffset: int
    areMarkersInFile: bool


class SliceDict(SliceFields):
    """A slice: all fields."""

    format: int


class SliceRunDict(SliceFields):
    """Many slices: the fields that they share, and by name a list of each other field."""

    format: int
    each: dict[str, list[Any]]


TaskDict: TypeAlias = list[SliceDict | SliceRunDict]
"""What a task reads, as it travels: slices and runs, in order."""


def _wire_name(name: str) -> str:
    first, *parts = name.split("_")
    return first + "".join(part.capitalize() for part in parts)


FIELDS: dict[str, str] = {field.name: _wire_name(field.name) for field in fields(Slice)}
"""By attribute of `Slice` the name of its field on the way, in order."""


def to_dict(slice_: Slice) -> SliceDict:
    """Return a slice as it travels.

    Args:
        slice_: The slice.
    """
    values = {name: getattr(slice_, attr) for attr, name in FIELDS.items()}
    return cast("SliceDict", {"format": FORMAT, **values})


def from_dict(values: Mapping[str, Any]) -> Slice:
    """Return the slice of a dict.

    Args:
        values: A `SliceDict`, maybe of another version of klog.

    Raises:
        UnsupportedFormatError: If its format is not one that this klog reads, or a field is
            missing.
    """
    check_contract_format("slice", values.get("format"), FORMAT)
    try:
        return Slice(*[values[name] for name in FIELDS.values()])
    except KeyError as exc:
        raise UnsupportedFormatError(
            f"slice of format {FORMAT}: it has no field {exc}. Use one version of klog on the "
            "driver and on all executors"
        ) from exc


def run_to_dict(shared: Mapping[str, Any], varying: Mapping[str, Sequence[Any]]) -> SliceRunDict:
    """Return many slices as they travel.

    Args:
        shared: The values that all of them have, by attribute of `Slice`.
        varying: For each other attribute a list with a value for each slice.
    """
    values = {FIELDS[attr]: value for attr, value in shared.items()}
    each = {FIELDS[attr]: list(column) for attr, column in varying.items()}
    return cast("SliceRunDict", {"format": FORMAT, **values, EACH: each})


def slice_count(task: Iterable[Mapping[str, Any]]) -> int:
    """Return how many slices a task of this klog has.

    Args:
        task: The task.
    """
    columns = (next(iter(values.get(EACH, {"": [None]}).values())) for values in task)
    return sum(map(len, columns))


def expand_task(task: Iterable[Mapping[str, Any]]) -> Iterator[Slice]:
    """Return the slices of a task in order, those of its runs one by one.

    Args:
        task: A `TaskDict`, maybe of another version of klog.

    Raises:
        UnsupportedFormatError: As `from_dict` does, or a run has no lists of one length.
    """
    for values in task:
        if EACH not in values:
            yield from_dict(values)
            continue
        check_contract_format("slice", values.get("format"), FORMAT)
        varying = _checked_lists(values[EACH])
        shared = {name: value for name, value in values.items() if name != EACH}
        for row in zip(*varying.values(), strict=True):
            yield from_dict({**shared, **dict(zip(varying, row, strict=True))})


def _checked_lists(varying: object) -> dict[str, list[Any]]:
    """Return the lists of a run, which have a value for each of its slices."""
    if isinstance(varying, dict) and all(isinstance(column, list) for column in varying.values()):
        lengths = {len(column) for column in varying.values()}
        if len(lengths) == 1:
            return varying
    raise UnsupportedFormatError(
        f"slice of format {FORMAT}: its field {EACH} has no lists of one length. Use one "
        "version of klog on the driver and on all executors"
    )
