"""Lines of JSON as objects: by Arrow a block at once, by Python where Arrow cannot.

The rule: a line is one object in UTF-8. Arrow parses lines that begin with `{` and end with `}`
only: it crashes on a block that is `null`, and reads objects over line ends. So what Arrow returns
has a row for each line or is refused. Python's parser names the wrong line, and a number that it
returns keeps its text: `1.0`, `1e2` and 30 digits stay what they are.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, NoReturn, TypeVar

import pyarrow as pa
import pyarrow.json as pj

from klog.connector import arrow_compute as pc
from klog.errors import KlogError
from klog.jobs.importing_files.line_blocks import Numbers

Result = TypeVar("Result")
_ONE_OBJECT = r"^[ \t]*\{(?s:.*)\}[ \t]*$"


class Number(str):
    """The text of a number of JSON."""

    __slots__ = ()


def try_parse(lines: pa.Array, schema: pa.Schema) -> pa.Table | None:
    """Return fields of lines; None if a line has another type, or is not one object.

    Args:
        lines: The lines.
        schema: The fields; others are ignored.
    """
    if not pc.all(pc.match_substring_regex(lines, _ONE_OBJECT)).as_py():
        return None
    options = pj.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore")
    try:
        table = _read(lines, options)
        table.validate(full=True)  # Arrow does not ask whether text is UTF-8.
    except pa.ArrowInvalid:
        return None
    return table if len(table) == len(lines) else None


def convert_lines(
    lines: pa.Array, numbers: Numbers, convert: Callable[[dict[str, Any]], Result], kind: str
) -> Iterator[Result]:
    """Yield what objects become, parsed one by one.

    Args:
        lines: The lines.
        numbers: Their numbers.
        convert: What an object becomes; its errors are those of the line.
        kind: What a line must be, for errors.

    Raises:
        KlogError: A line is not that; the message has its number.
    """
    for line, number in zip(lines.to_pylist(), numbers.tolist(), strict=True):
        try:
            yield convert(parse_object(line))
        except RecursionError as exc:
            raise KlogError(
                f"line {number} is not {kind}: it is nested too deeply. Correct it"
            ) from exc
        except (ValueError, KeyError, TypeError, AttributeError) as exc:
            raise KlogError(f"line {number} is not {kind}: {exc}. Correct it") from exc


def parse_object(line: bytes) -> dict[str, Any]:
    """Return the object of a line, with each number as `Number`.

    Args:
        line: The line.

    Raises:
        ValueError, RecursionError: It is not one.
    """
    value = json.loads(
        line.decode(), parse_int=Number, parse_float=Number, parse_constant=_refuse_constant
    )
    if not isinstance(value, dict):
        raise ValueError("it is another value")
    return value


def as_text(value: Any) -> str | None:
    """Return a value as text: text unchanged, null as None, others as JSON.

    Args:
        value: A value of `parse_object`.

    Raises:
        ValueError: It has half of a surrogate pair, which UTF-8 does not have.
    """
    if value is None:
        return None
    text = str(value) if isinstance(value, str) else _encoded(value)
    text.encode()
    return text


def _encoded(value: Any) -> str:
    if isinstance(value, Number):
        return str(value)
    if isinstance(value, dict):
        items = (f"{_encoded(name)}:{_encoded(item)}" for name, item in value.items())
        return f"{{{','.join(items)}}}"
    if isinstance(value, list):
        return f"[{','.join(map(_encoded, value))}]"
    return json.dumps(value, ensure_ascii=False)


def _refuse_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is not a number of JSON")


def _read(lines: pa.Array, options: Any) -> pa.Table:
    joined = pc.binary_join(pa.ListArray.from_arrays(pa.array([0, len(lines)]), lines), b"\n")
    data = joined[0].as_buffer()
    read = pj.ReadOptions(use_threads=False, block_size=max(len(data) + 1, 1 << 20))
    return pj.read_json(pa.BufferReader(data), read, options)
