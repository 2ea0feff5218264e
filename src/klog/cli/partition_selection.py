"""Which partitions a command means, in the options of kafka-get-offsets.

The rule: `--topic` is a regular expression of whole names, and several with commas between them;
`--partitions` has numbers. `--topic-partitions` has both in one: `orders`, `orders:0`, `ord.*:0-4`
(4 not included), `:3-`. Without any of them every partition is meant.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, NoReturn, TypeAlias

from klog.errors import OptionError
from klog.jobs.shared.argument_values import topic_pattern

if TYPE_CHECKING:
    from klog.connector.snapshot import Snapshot
    from klog.logformat.topic_partition import TopicPartition

Selects: TypeAlias = Callable[[str, int], bool]
"""Whether a topic's partition is meant."""

_TOPIC_PARTITIONS = re.compile(r"([^:,]*)(?::([0-9]*)(-?)([0-9]*))?")


def add_selection_options(parser: argparse.ArgumentParser) -> None:
    """Add the options to the parser of a verb."""
    parser.add_argument(
        "-t", "--topic", type=topic_pattern, metavar="REGEX",
        help="only topics whose full name matches the pattern; separate patterns with commas",
    )  # fmt: skip
    parser.add_argument(
        "--partitions", type=_numbers, metavar="P,...", help="only these partitions"
    )
    parser.add_argument(
        "--topic-partitions", type=_topic_partitions, metavar="REGEX[:P[-P]],...",
        help="only these topics and partitions; P is NUMBER, FROM-TO (without TO), FROM- or -TO",
    )  # fmt: skip
    parser.add_argument(
        "--exclude-internal-topics", action="store_true", help="leave out Kafka's internal topics"
    )


def selected_topics(args: argparse.Namespace, snapshot: Snapshot) -> Iterator[str]:
    """Yield the names that may have selected partitions; deleted topics may be among them."""
    from klog.logformat.broker_files.file_names import INTERNAL_TOPICS

    if args.topic_partitions is not None and (args.topic or args.partitions):
        raise argparse.ArgumentError(
            None, "give --topic-partitions, or --topic and --partitions: not both"
        )
    for topic in sorted(snapshot.topics):
        is_excluded = args.exclude_internal_topics and topic in INTERNAL_TOPICS
        if not is_excluded and (args.topic is None or args.topic.fullmatch(topic)):
            yield topic


def selected_partitions(
    args: argparse.Namespace, snapshot: Snapshot, topic: str
) -> list[TopicPartition]:
    """Return the selected partitions of a topic; none of a topic that does not exist."""
    from klog.logformat.topic_partition import TopicPartition

    if topic not in snapshot.topics:
        return []
    selections: Iterable[Selects] = args.topic_partitions or [lambda topic, number: True]
    return [
        TopicPartition(topic, number)
        for number in snapshot.topics[topic]
        if (args.partitions is None or number in args.partitions)
        and any(selects(topic, number) for selects in selections)
    ]


def refuse_no_partition(snapshot: Snapshot) -> NoReturn:
    """Raise `OptionError`: nothing is selected."""
    from klog.connector.source.subscription import describe_topics

    raise OptionError(
        "--topic, --partitions, --topic-partitions: no partition matches; "
        f"{describe_topics(snapshot)}"
    )


def _numbers(text: str) -> frozenset[int]:
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdecimal() for part in parts):
        raise argparse.ArgumentTypeError(f"must be numbers of partitions, got {text!r}")
    return frozenset(map(int, parts))


def _topic_partitions(text: str) -> list[Selects]:
    return [_selects(part.strip()) for part in text.split(",")]


def _selects(text: str) -> Selects:
    match = _TOPIC_PARTITIONS.fullmatch(text)
    if match is None:
        raise argparse.ArgumentTypeError(
            f"must be TOPIC, TOPIC:PARTITION or TOPIC:FROM-TO, got {text!r}"
        )
    topic, low, dash, high = match.groups(default="")
    pattern = topic_pattern(topic) if topic else re.compile(".*")
    start = int(low) if low else 0
    last = str(int(low) + 1) if low and not dash else high
    end = int(last) if last else None

    def selects(name: str, number: int) -> bool:
        is_within = number >= start and (end is None or number < end)
        return is_within and pattern.fullmatch(name) is not None

    return selects
