"""Kafka's dump tool over files: its text for each, and its complaints at the end."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from tests.corpus import Record
from tests.support.kafka_broker import kafka_tool_output

DUMPED = re.compile(r"^Dumping (\S+)$", re.MULTILINE)
RECORD = re.compile(
    r"^\| offset: (\d+) (CreateTime|LogAppendTime): (-?\d+) keySize: (-?\d+) valueSize: (-?\d+)"
    r".*?(?: endTxnMarker: (\w+) coordinatorEpoch: (\d+))?$",
    re.MULTILINE,
)
FAULTS = re.compile("isvalid: false|Found|[Ii]nvalid|not found|out of order")


def dumped(paths: list[Path], *options: str) -> tuple[dict[Path, str], str]:
    """Run the dump tool over files; return its text for each, and its complaints.

    It reports mismatches only on standard error, and still exits with 0.
    """
    names = ",".join(map(str, paths))
    output, errors = kafka_tool_output("kafka.tools.DumpLogSegments", *options, "--files", names)
    _, *parts = DUMPED.split(output)
    complaints = [line for line in errors.splitlines() if not line.startswith(("SLF4J", "WARNING"))]
    texts = {Path(parts[i]): parts[i + 1] for i in range(0, len(parts), 2)}
    return texts, "\n".join([*complaints, *FAULTS.findall(output)])


def checked(paths: list[Path], *options: str) -> dict[Path, str]:
    """Run the tool; check that it reads all files and finds no fault."""
    texts, complaints = dumped(paths, *options)
    assert complaints == ""
    assert sorted(texts) == sorted(paths), "the tool stops at the first file it cannot read"
    return texts


def as_dumped(record: Record) -> tuple[str, ...]:
    """Return the groups that `RECORD` matches for a record."""

    def size(content: Any) -> str:
        return "-1" if content is None else str(len(content))

    kind = ("CreateTime", "LogAppendTime")[record.timestamp_type]
    return (str(record.offset), kind, str(record.timestamp), size(record.key), size(record.value))
