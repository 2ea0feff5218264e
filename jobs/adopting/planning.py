"""What is done of a broker's topics at a time, with what configs; the options of who does it."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence

from klog.connector.log.adoption import BrokersPartition
from klog.connector.log.partition import RawPartition
from klog.connector.log.txnindexes import aborted_by_indexes
from klog.connector.store.storage import Storage
from klog.errors import OptionError
from klog.jobs.adopting.broker import OPEN_TRANSACTIONS, BrokerTopic, counted_segments
from klog.jobs.adopting.deciding import Placed, entries_of
from klog.jobs.adopting.reading import ScanTask
from klog.jobs.adopting.scanning import Scanned

WAVE_BYTES = 64 << 30
"""About so much is read before topics get their commits: what a kill costs at most."""


def scan_tasks(log: RawPartition, storage: Storage) -> list[ScanTask]:
    """Give what is to be read of a partition, a task a segment."""
    indexed = aborted_by_indexes(log, log.log_start, log.log_end)
    return [
        ScanTask(
            log.root,
            storage,
            log.name.topic,
            log.name.partition,
            one,
            tuple(
                (producer, first, last)
                for producer, first, last in indexed
                if last >= one.segment.base_offset and first < one.limit
            ),
        )
        for one in counted_segments(log)
    ]


def taken_of(
    topic: BrokerTopic,
    log: RawPartition,
    read: Iterator[tuple[Placed, Scanned]],
    open_transactions: str | None,
) -> BrokersPartition:
    """Give what is committed of a partition, whose segments come next of those `read`.

    Raises `KlogError` for an open transaction, if it is not said what became of it.
    """
    segments = [next(read) for _ in counted_segments(log)]
    found = entries_of(log.name, segments, log.log_end, open_transactions)
    number = log.name.partition
    cleaned_to = topic.cleaned_to.get(number, 0)
    return BrokersPartition(number, log.log_start, log.log_end, cleaned_to, found)


def config_of(topic: BrokerTopic, given: Mapping[str, str]) -> dict[str, str]:
    """Give a topic's configs: one that the log cleaner has been at is compacted.

    Else a retention by the default policy would take what the broker kept.
    """
    known = {"cleanup.policy": "compact"} if topic.is_cleaned else {}
    return {**known, **given}


def waves(
    topics: Sequence[BrokerTopic], most_bytes: int = WAVE_BYTES
) -> Iterator[list[BrokerTopic]]:
    """Cut topics into runs of about so many bytes, one topic at least."""
    some: list[BrokerTopic] = []
    size_bytes = 0
    for one in topics:
        if some and size_bytes + one.size_bytes > most_bytes:
            yield some
            some, size_bytes = [], 0
        some.append(one)
        size_bytes += one.size_bytes
    if some:
        yield some


def add_common_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of who takes a broker's directory."""
    parser.add_argument(
        "--config",
        action="append",
        metavar="K=V",
        help="a config that each topic gets, repeatable: the directory does not say theirs",
    )
    parser.add_argument(
        "--open-transactions",
        choices=OPEN_TRANSACTIONS,
        help="what became of transactions that no marker ends; else a log that has one is refused",
    )


def configs_of(given: Sequence[str] | None) -> dict[str, str]:
    """Read `name=value` texts. Raises `OptionError` for one that is none."""
    found = {}
    for text in given or ():
        name, equals, value = text.partition("=")
        if not equals:
            raise OptionError(f"--config {text}: write it as name=value")
        found[name.strip()] = value.strip()
    return found
