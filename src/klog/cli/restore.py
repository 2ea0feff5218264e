"""`klog restore`: set a topic back to an earlier version, in one commit.

The rule is that of docs/restore.md. A dry run prints the same and writes nothing.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any, BinaryIO

from klog.connector.commit_log.commit import Amount
from klog.connector.commit_log.topic_restore import (
    RestoredPartition,
    RestoreReport,
    restore_topic,
)
from klog.text_output import labelled, write_json, write_lines
from klog.tools.root_arguments import root_with_log


def restore(args: argparse.Namespace, out: BinaryIO) -> int:
    """Restore the topic, and print what changed."""
    root = root_with_log(args.root)
    report = restore_topic(root, args.topic, args.version, dry_run=args.dry_run)
    if args.json:
        write_json(out, _object(report))
    else:
        write_lines(out, _lines(report))
    return 0


def _lines(report: RestoreReport) -> Iterator[str]:
    """Yield what changes in all, then by partition."""
    topic = {"Topic": report.topic, "Version": report.version, "Commit": report.commit_version}
    if not report.has_changes:
        yield f"{labelled(topic)}\tThe topic is as of this version: there is nothing to do."
        return
    amounts = {"Restored": _amount_text(report.restored), "Removed": _amount_text(report.removed)}
    yield labelled({**topic, **amounts})
    for partition in report.partitions:
        yield "\t" + labelled(
            {
                "Partition": partition.partition,
                "LogStart": partition.log_start,
                "Hole": _hole_text(partition),
                "LogEnd": partition.log_end,
            }
        )
    if report.dry_run:
        yield "This was a dry run: leave out --dry-run to restore."


def _hole_text(partition: RestoredPartition) -> str | None:
    if partition.restored_end == partition.log_end:
        return None
    return f"{partition.restored_end} to {partition.log_end - 1}"


def _amount_text(amount: tuple[int, Amount]) -> str:
    count, total = amount
    return f"{count:,} segments, {total.records:,} records, {total.size_bytes:,} bytes"


def _object(report: RestoreReport) -> dict[str, Any]:
    """Return the report as a JSON object."""
    return {
        "topic": report.topic,
        "version": report.version,
        "commitVersion": report.commit_version,
        "dryRun": report.dry_run,
        "restored": _amount_object(report.restored),
        "removed": _amount_object(report.removed),
        "partitions": [
            {
                "partition": partition.partition,
                "logStart": partition.log_start,
                "restoredEnd": partition.restored_end,
                "logEnd": partition.log_end,
            }
            for partition in report.partitions
        ],
    }


def _amount_object(amount: tuple[int, Amount]) -> dict[str, int]:
    count, total = amount
    return {"segments": count, "records": total.records, "bytes": total.size_bytes}
