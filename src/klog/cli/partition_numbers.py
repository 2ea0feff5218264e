"""Print one number of each selected partition: `topic:partition:number`, as kafka-get-offsets does.

The rule: a topic or partition that cannot be read is a warning, the others are printed, and the
exit code is 1.
"""

from __future__ import annotations

import argparse
import logging
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import chain, count
from typing import BinaryIO, TypeAlias

from klog.cli.partition_selection import (
    refuse_no_partition,
    selected_partitions,
    selected_topics,
)
from klog.connector.kafka_dir.stale_listings import retry_stale_listing
from klog.connector.open_root import open_root
from klog.connector.snapshot import Snapshot
from klog.errors import KlogError
from klog.logformat.topic_partition import TopicPartition
from klog.text_output import write_json, write_lines
from klog.tools.root_arguments import directories
from klog.url_secrets import without_passwords

Numbers: TypeAlias = Mapping[TopicPartition, int | None]
FindNumbers: TypeAlias = Callable[[Snapshot, Sequence[TopicPartition]], Numbers]
"""Returns the number of each partition; None if there is none."""
Check: TypeAlias = Callable[[Sequence[TopicPartition], Collection[str]], None]
"""Raises `OptionError` if an option does not fit the partitions that are selected.

It gets these partitions and the topics that are selected and cannot be read.
"""

_log = logging.getLogger(__name__)


def print_numbers(
    args: argparse.Namespace,
    out: BinaryIO,
    field: str,
    find: FindNumbers,
    check: Check = lambda names, unreadable: None,
) -> int:
    """Print a number of each selected partition; in JSON its name is `field`."""
    root = open_root(directories(args.root))
    snapshot = root.snapshot()
    code = 0
    rows: list[dict[str, object]] = []
    selection = _select(args, snapshot)

    def numbers_of(names: Sequence[TopicPartition]) -> Numbers:
        snapshots = chain([snapshot], (root.snapshot() for _ in count()))
        return retry_stale_listing(lambda: find(next(snapshots), names))

    readable = [names for names in selection.values() if not isinstance(names, KlogError)]
    unreadable = {topic for topic, names in selection.items() if isinstance(names, KlogError)}
    check(list(chain.from_iterable(readable)), unreadable)
    for topic, names in selection.items():
        if isinstance(names, KlogError):
            _warn(topic, names)
            code = 1
            continue
        for name, number in _each(names, numbers_of):
            if isinstance(number, KlogError):
                _warn(str(name), number)
                code = 1
            elif args.json:
                rows.append({"topic": topic, "partition": name.partition, field: number})
            elif number is not None:
                write_lines(out, [f"{topic}:{name.partition}:{number}"])
    if args.json:
        write_json(out, rows)
    return code


def _select(
    args: argparse.Namespace, snapshot: Snapshot
) -> Mapping[str, Sequence[TopicPartition] | KlogError]:
    """Return the selected partitions by topic, or why a topic cannot be read.

    Raises:
        OptionError: Nothing is selected.
    """
    selection: dict[str, Sequence[TopicPartition] | KlogError] = {}
    for topic in selected_topics(args, snapshot):
        try:
            names = selected_partitions(args, snapshot, topic)
        except KlogError as exc:
            selection[topic] = exc
        else:
            if names:
                selection[topic] = names
    if not selection:
        refuse_no_partition(snapshot)
    return selection


def _each(
    names: Sequence[TopicPartition], numbers_of: Callable[[Sequence[TopicPartition]], Numbers]
) -> Iterator[tuple[TopicPartition, int | KlogError | None]]:
    """Yield the numbers of partitions, looked up together, or one by one if one has an error."""
    if not names:
        return
    try:
        numbers = numbers_of(names)
    except KlogError as exc:
        if len(names) == 1:
            yield names[0], exc
            return
        for name in names:
            yield from _each([name], numbers_of)
    else:
        for name in names:
            yield name, numbers[name]


def _warn(name: str, exc: KlogError) -> None:
    _log.warning("%s: left out: %s", name, without_passwords(str(exc)))
