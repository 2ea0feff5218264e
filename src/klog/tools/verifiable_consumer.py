"""`klog verifiable-consumer`: follow a topic and print what is read, as Kafka's tool does.

The rule: an event is printed after its records were read, in the order of offsets in each
partition, each offset once a run. klog stores no positions: a consumer starts at the offsets of its
command line, and its events show how far it came.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import BinaryIO

import pyarrow as pa

from klog.connector import system_clock
from klog.connector.embedded import Log, open_log
from klog.tools.json_events import Events
from klog.tools.root_arguments import single_directory
from klog.tools.stdin_reader import Ending

COLUMNS = ("key", "value", "partition", "offset")
_POLL_SECONDS = 0.1


def verifiable_consumer(args: argparse.Namespace, out: BinaryIO) -> int:
    """Read until `--max-messages` were read, or a signal comes."""
    log = open_log(single_directory(args.root), {})
    events = Events(out, system_clock.now_ms)
    positions: dict[int, int] = dict(args.start or {})
    remaining = args.max_messages if args.max_messages >= 0 else None
    with Ending() as ending:
        if args.reset_policy == "latest":
            partitions = log.describe(args.topic).partitions
            positions = {partition.partition: partition.log_end for partition in partitions}
        events.emit("startup_complete")
        while not ending.signal and remaining != 0:
            count = 0
            for batch in _poll(log, args.topic, positions):
                records = batch if remaining is None else batch.slice(0, remaining - count)
                count += _emit(events, args.topic, records, args.verbose, positions)
                if ending.signal or count == remaining:
                    break
            if remaining is not None:
                remaining -= count
            if not count:
                ending.sleep(_POLL_SECONDS)
        events.emit("shutdown_complete")
    return 0


def _poll(log: Log, topic: str, positions: dict[int, int]) -> Iterator[pa.RecordBatch]:
    """Yield the batches after the positions; later changes of the positions have no effect."""
    for batch in log.scan(topic, start=dict(positions) or None, columns=list(COLUMNS)):
        if len(batch):
            yield batch


def _emit(
    events: Events, topic: str, batch: pa.RecordBatch, verbose: bool, positions: dict[int, int]
) -> int:
    """Print the events of a batch, all of one partition, and move the position after it."""
    partition, count = batch.column("partition")[0].as_py(), len(batch)
    offsets = batch.column("offset")
    first, last = offsets[0].as_py(), offsets[-1].as_py()
    if verbose:
        keys, values = (_texts(batch.column(name)) for name in ("key", "value"))
        events.emit_all(
            "record_data",
            (
                {"key": key, "value": value, "topic": topic, "partition": partition, "offset": at}
                for key, value, at in zip(keys, values, offsets.to_pylist(), strict=True)
            ),
        )
    span = {"count": count, "minOffset": first, "maxOffset": last}
    events.emit(
        "records_consumed",
        count=count,
        partitions=[{"topic": topic, "partition": partition, **span}],
    )
    positions[partition] = last + 1
    return count


def _texts(column: pa.Array) -> list[str | None]:
    """Return keys or values as text; invalid UTF-8 becomes U+FFFD, as in Kafka's tool."""
    return [
        None if data is None else data.decode("utf-8", "replace") for data in column.to_pylist()
    ]
