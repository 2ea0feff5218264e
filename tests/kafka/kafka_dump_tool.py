"""Kafka's dump tool over files: what it says of each, and what it complains of at last."""

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
    """Run the dump tool over files; give what it said of each, and what it complains of at last.

    It names mismatches only on standard error, and ends with success all the same.
    """
    given = ",".join(map(str, paths))
    said, told = kafka_tool_output("kafka.tools.DumpLogSegments", *options, "--files", given)
    _, *parts = DUMPED.split(said)
    complaints = [line for line in told.splitlines() if not line.startswith(("SLF4J", "WARNING"))]
    found = {Path(parts[i]): parts[i + 1] for i in range(0, len(parts), 2)}
    return found, "\n".join([*complaints, *FAULTS.findall(said)])


def checked(paths: list[Path], *options: str) -> dict[Path, str]:
    """Run it and see that it came to the end of the list and found nothing."""
    found, complaints = dumped(paths, *options)
    assert complaints == ""
    assert sorted(found) == sorted(paths), "the tool stops at the first file it cannot read"
    return found


def as_dumped(one: Record) -> tuple[str, ...]:
    """Give what `RECORD` finds of a record."""

    def size(content: Any) -> str:
        return "-1" if content is None else str(len(content))

    kind = ("CreateTime", "LogAppendTime")[one.timestamp_type]
    return (str(one.offset), kind, str(one.timestamp), size(one.key), size(one.value))
