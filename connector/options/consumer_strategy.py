"""Which partitions a read subscribes to: a closed choice, as Spark's `ConsumerStrategy` is."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TypeAlias

from klog.logformat.topic_partition import TopicPartition


@dataclass(frozen=True, slots=True)
class Subscribe:
    """All partitions of named topics."""

    topics: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SubscribePattern:
    """All partitions of the topics in whose names the pattern is found."""

    pattern: re.Pattern[str]


@dataclass(frozen=True, slots=True)
class Assign:
    """Named partitions.

    Attributes:
        partitions: The partitions.
        must_exist: Whether one that does not exist is an error; Spark's connector leaves it out.
    """

    partitions: tuple[TopicPartition, ...]
    must_exist: bool = False


ConsumerStrategy: TypeAlias = Subscribe | SubscribePattern | Assign
