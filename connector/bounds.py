"""Where a scan starts and ends: what a caller of `klog.open` gives, as offsets of partitions.

The rule: what was given is checked here against the log as of the same look, and is refused by the
names that it was given under. What is found is a plan's `starting` and `ending`, in which nothing
can be wrong any more. A time is the first offset of at least that time, or the end if none has it.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from typing import TypeAlias

from klog.connector.log.partition import Look, PartitionLog, TopicPartition
from klog.connector.options import EARLIEST, LATEST, Offsets
from klog.errors import OffsetOutOfRangeError, OptionError

Bound: TypeAlias = int | Mapping[int, int] | datetime | None
"""Where a scan starts or ends, its end exclusive: an offset for every partition, one for each, a
time, or None for all there is."""
_MILLISECOND = timedelta(milliseconds=1)


def bounded(look: Look, topic: str, start: Bound, end: Bound) -> tuple[Offsets, Offsets]:
    """Resolve a scan's bounds to offsets of each partition of a topic that is there.

    Partitions are opened only where a bound was given. Raises `OptionError` for what is no bound
    and for a partition that is not there, `OffsetOutOfRangeError` for an offset that is not.
    """
    names = [TopicPartition(topic, number) for number in look.topics[topic]]
    starts = _checked("start", start, names)
    ends = _checked("end", end, names)
    starting: Offsets = {(name.topic, name.partition): EARLIEST for name in names}
    ending: Offsets = {(name.topic, name.partition): LATEST for name in names}
    asked = [name for name in names if name.partition in starts or name.partition in ends]
    for name, log in look.open(asked).items():
        stable, key = log.last_stable_offset(), (name.topic, name.partition)
        if name.partition in starts:
            starting[key] = _offset("start", starts[name.partition], log, stable)
        if name.partition in ends:
            ending[key] = _offset("end", ends[name.partition], log, stable)
        if starting[key] >= 0 and 0 <= ending[key] < starting[key]:
            raise OffsetOutOfRangeError(
                f"{name}: start is offset {starting[key]}, behind end, which is {ending[key]}; "
                "give an end that is not before the start"
            )
    return starting, ending


def _checked(name: str, bound: Bound, names: list[TopicPartition]) -> dict[int, int | datetime]:
    """Give the offset or time of each partition that has one."""
    if bound is None:
        return {}
    if isinstance(bound, Mapping):
        strange = [
            number for number in bound if TopicPartition(names[0].topic, number) not in names
        ]
        if strange:
            raise OptionError(
                f"{name}: {names[0].topic} has no partition {strange[0]!r}, only "
                f"{names[0].partition} to {names[-1].partition}"
            )
        found: dict[int, int | datetime] = dict(bound)
    else:
        found = {one.partition: bound for one in names}
    for value in found.values():
        if isinstance(value, datetime) and value.tzinfo is None:
            raise OptionError(
                f"{name}: {value} has no time zone; give it one, such as timezone.utc"
            )
        if not isinstance(value, int | datetime) or isinstance(value, bool):
            raise OptionError(
                f"{name}: {value!r} is neither an offset nor a time; give an int, a dict of "
                "ints by partition, or a datetime"
            )
    return found


def _offset(name: str, bound: int | datetime, log: PartitionLog, stable: int) -> int:
    if isinstance(bound, datetime):
        since = bound - datetime(1970, 1, 1, tzinfo=timezone.utc)
        found = log.offset_for_time(-(-since // _MILLISECOND), stable)
        return stable if found is None else found
    if log.log_start <= bound <= stable:
        return bound
    held = "" if stable == log.log_end else " (an open transaction holds back the rest)"
    raise OffsetOutOfRangeError(
        f"{log.name}: {name} is offset {bound}, but there {name} can be from {log.log_start} to "
        f"{stable}{held}. Give one of those, a dict of offsets by partition, or leave {name} out"
    )
