"""`klog checkpoint copy`: the checkpoint of a query of Spark's Kafka source, for klog.

The rule is that of docs/checkpoints.md. A dry run prints the same and writes nothing.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from typing import Any, BinaryIO

from klog.connector.source.stream_offsets import offsets_to_json
from klog.connector.spark_checkpoint.checkpoint_copy import CopyReport, copy_checkpoint
from klog.text_output import labelled, write_json, write_lines


def copy(args: argparse.Namespace, out: BinaryIO) -> int:
    """Copy the checkpoint, and print where the query goes on."""
    report = copy_checkpoint(
        args.source, args.target, watch_seconds=args.watch, sleep=time.sleep, dry_run=args.dry_run
    )
    if args.json:
        write_json(out, _object(report))
    else:
        write_lines(out, _lines(report))
    return 0


def _lines(report: CopyReport) -> Iterator[str]:
    """Yield what the copy has in all, then where each partition goes on."""
    yield labelled(
        {
            "Checkpoint": report.target,
            "Query": report.query_id,
            "LastCommittedBatch": report.last_committed,
            "RunsAgain": report.unfinished,
            "Files": f"{report.files:,}",
            "Bytes": f"{report.size_bytes:,}",
        }
    )
    for source, offsets in report.next_offsets.items():
        for name, offset in sorted(offsets.next_offsets.items()):
            yield "\t" + labelled(
                {"Source": source, "Topic": name.topic, "Partition": name.partition, "Next": offset}
            )
    if report.dry_run:
        yield "This was a dry run: leave out --dry-run to copy."
    else:
        yield 'Start the query with format("klog") and this checkpoint, and not the old one again.'


def _object(report: CopyReport) -> dict[str, Any]:
    """Return the report as a JSON object."""
    return {
        "source": report.source,
        "target": report.target,
        "queryId": report.query_id,
        "lastCommittedBatch": report.last_committed,
        "unfinishedBatch": report.unfinished,
        "dryRun": report.dry_run,
        "files": report.files,
        "bytes": report.size_bytes,
        "nextOffsets": {
            source: offsets_to_json(offsets.next_offsets)
            for source, offsets in report.next_offsets.items()
        },
    }
