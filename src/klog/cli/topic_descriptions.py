"""What `klog topics` shows of topics, and which topics it shows: for every kind of root."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from klog.errors import OptionError
from klog.logformat.broker_files.file_names import INTERNAL_TOPICS

Facts: TypeAlias = dict[str, int | str]
"""What `describe` prints of one partition, by the names in `--json`."""


@dataclass(frozen=True, slots=True)
class Shown:
    """What `describe` prints of a topic; only the error if it cannot be read."""

    topic_id: str | None
    partitions: list[Facts]
    config: Mapping[str, str] | None = None
    """None in a broker's log directory, which has no configs."""
    error: str | None = None


def row_of_list(topic: str, topic_id: str | None, partitions: list[int]) -> dict[str, Any]:
    """Return a topic as `list --json` prints it."""
    return {
        "topic": topic,
        "topicId": topic_id,
        "partitions": partitions,
        "internal": topic in INTERNAL_TOPICS,
    }


def is_chosen(args: argparse.Namespace, topic: str) -> bool:
    """Return whether the options select a topic."""
    if args.topic is not None and not any(regex.fullmatch(topic) for regex in args.topic):
        return False
    return not (args.exclude_internal and topic in INTERNAL_TOPICS)


def refuse_no_match(args: argparse.Namespace, topics: list[str]) -> None:
    """Raise `OptionError` if a pattern matches nothing; without a pattern, no topic is fine."""
    if args.topic is not None:
        patterns = " or ".join(regex.pattern for regex in args.topic)
        raise OptionError(
            f"--topic: no topic matches {patterns}; "
            + (
                f"the topics here are {', '.join(topics)}"
                if topics
                else "the root has no topics. Create one with `klog topics create`"
            )
        )
