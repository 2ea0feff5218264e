"""Fields of JSON lines that the user has named.

The rule: a field has whole numbers, or text, which is JSON for other values; a number keeps its
text. A line without the field of the value is an error, as a null there is a tombstone. A line
without another field has a null, but if no line of a block has it, its name is wrong.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from klog.connector import arrow_compute as pc
from klog.errors import KlogError, OptionError, nearest_name
from klog.jobs.importing_files.chosen_fields import RecordFields
from klog.jobs.importing_files.line_blocks import Numbers
from klog.jobs.importing_files.line_objects import as_text, convert_lines, try_parse

_OBJECT = "a JSON object"


def read_fields(lines: pa.Array, numbers: Numbers, fields: RecordFields) -> pa.RecordBatch:
    """Return the named fields of lines.

    Args:
        lines: The lines.
        numbers: Their numbers.
        fields: What the user has named.

    Raises:
        KlogError: A line is not an object, or has no field for the value.
        OptionError: No line has the field.
    """
    columns = {name: _field(lines, numbers, name) for name in fields.names}
    for name, column in columns.items():
        if name == fields.value:
            check_values(column, lines, numbers, name)
        elif column.null_count == len(lines):
            _check_name(lines, numbers, name)
    return pa.RecordBatch.from_pydict(columns)


def check_values(column: pa.Array, lines: pa.Array, numbers: Numbers, name: str) -> None:
    """Refuse lines without a field; a null must be in the line.

    Args:
        column: The field of the lines.
        lines: The lines.
        numbers: Their numbers.
        name: The name of the field.

    Raises:
        KlogError: A line has no such field; the message has its number.
    """
    nulls = np.flatnonzero(column.is_null().to_numpy(False))
    names = convert_lines(lines.take(pa.array(nulls)), numbers[nulls], list, _OBJECT)
    for number, present in zip(numbers[nulls].tolist(), names, strict=True):
        if name not in present:
            raise KlogError(
                f"line {number} has no field {name}{_hint(name, present)}. A value that is null, "
                "which deletes its key, must be written as null. Correct the line, or name "
                "another field"
            )


def _check_name(lines: pa.Array, numbers: Numbers, name: str) -> None:
    first: list[str] = []
    for names in convert_lines(lines, numbers, list, _OBJECT):
        if name in names:
            return
        first = first or names
    raise OptionError(
        f"line {numbers[0]} and those after it have no field {name}{_hint(name, first)}. Name "
        "another field"
    )


def _hint(name: str, names: Sequence[str]) -> str:
    close = nearest_name(name, names)
    return f"; did you mean {close}?" if close else ""


def _field(lines: pa.Array, numbers: Numbers, name: str) -> pa.Array:
    for kind in (pa.string(), pa.int64()):
        table = try_parse(lines, pa.schema([(name, kind)]))
        if table is not None:
            column = table[name].combine_chunks()
            if kind == pa.int64() and _has_minus_zero(lines, column):
                break
            return column
    texts = convert_lines(lines, numbers, lambda record: as_text(record.get(name)), _OBJECT)
    return pa.array(texts, pa.string())


def _has_minus_zero(lines: pa.Array, column: pa.Array) -> bool:
    """Return whether a number of the column may be `-0`, whose text Arrow does not keep."""
    has_zero = pc.any(pc.equal(column, 0)).as_py()
    return bool(has_zero and pc.any(pc.match_substring_regex(lines, "-0[^0-9.]")).as_py())
