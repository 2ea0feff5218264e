"""Files of JSON lines: a line is a value, or a record as `klog consume --json` prints it.

The rule: without named fields a line is not parsed; its bytes are the value. An empty line is no
record.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from klog.errors import KlogError
from klog.jobs.importing_files.chosen_fields import RecordFields, with_named_fields
from klog.jobs.importing_files.field_times import WrongRowError
from klog.jobs.importing_files.json_records import read_records
from klog.jobs.importing_files.json_text import texts
from klog.jobs.importing_files.line_blocks import Numbers, line_blocks, split_lines
from klog.jobs.importing_files.named_fields import read_fields


def read_json_lines(stream: Any, fields: RecordFields) -> Iterator[pa.RecordBatch]:
    """Yield the records of a file as columns of a write.

    Args:
        stream: The file, decompressed.
        fields: What becomes what of a record.

    Raises:
        KlogError: A line is not what it must be; the message has its number in the file.
    """
    first_line = 1
    for block in line_blocks(stream):
        lines, numbers = split_lines(block, first_line)
        if len(lines):
            try:
                yield _rows(lines, numbers, fields)
            except WrongRowError as exc:
                raise KlogError(f"line {numbers[exc.row]}: {exc}") from exc
        first_line += block.count(b"\n")


def _rows(lines: pa.Array, numbers: Numbers, fields: RecordFields) -> pa.RecordBatch:
    if fields.is_records:
        return read_records(lines, numbers)
    if not fields.names:
        return pa.RecordBatch.from_pydict({"value": lines})
    batch = read_fields(lines, numbers, fields)
    value = lines if fields.value is None else texts(batch.column(fields.value), fields.value)
    return with_named_fields(batch, value, fields)
