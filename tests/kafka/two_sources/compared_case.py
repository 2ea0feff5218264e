"""One row of the tables: options that both sources get, read as a batch or as a stream."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from tests.corpus.clients import EPOCH_2024

BATCH, AVAILABLE_NOW, ONCE = "batch", "availableNow", "once"


@dataclass(frozen=True, slots=True)
class Case:
    """Options and how they are read.

    Attributes:
        name: What the case is about; unique among all tables.
        options: The options that both sources get.
        trigger: `batch`, or the trigger of a stream that ends.
        compares_tasks: Whether the number of offsets of each Spark partition is compared too.
    """

    name: str
    options: Mapping[str, str]
    trigger: str = BATCH
    compares_tasks: bool = False


def batch(name: str, topic: str | None = None, /, **options: str) -> Case:
    """Return a case of a batch; `topic` is what it subscribes to."""
    return Case(name, _with_topic(topic, options))


def tasks(name: str, topic: str, /, **options: str) -> Case:
    """Return a case of a batch that compares how the read is parted into tasks."""
    return Case(name, _with_topic(topic, options), compares_tasks=True)


def stream(
    name: str, topic: str | None = None, /, trigger: str = AVAILABLE_NOW, **options: str
) -> Case:
    """Return a case of a stream from the earliest offset, if the options do not say another."""
    return Case(name, {"startingOffsets": "earliest", **_with_topic(topic, options)}, trigger)


def offsets(topic: str, *by_partition: object) -> str:
    """Return JSON that gives partitions 0, 1, ... of a topic these offsets or times."""
    return json.dumps({topic: {str(n): value for n, value in enumerate(by_partition)}})


def at(seconds: float) -> int:
    """Return the time of a record so many seconds after the first one, in ms."""
    return EPOCH_2024 + int(seconds * 1000)


def _with_topic(topic: str | None, options: Mapping[str, str]) -> dict[str, str]:
    dotted = {name.replace("__", "."): value for name, value in options.items()}
    return dotted if topic is None else {"subscribe": topic, **dotted}
