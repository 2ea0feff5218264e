"""JSON texts, types, and what they are: one table for the decoder without Spark and for Spark's."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa

UTC = datetime.timezone.utc
BAD = "a reason"
NEW_YEAR = datetime.datetime(2026, 1, 1, tzinfo=UTC)
TYPES: dict[str, pa.DataType] = {
    "bigint": pa.int64(),
    "tinyint": pa.int8(),
    "double": pa.float64(),
    "float": pa.float32(),
    "boolean": pa.bool_(),
    "string": pa.string(),
    "decimal(9,2)": pa.decimal128(9, 2),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
    "date": pa.date32(),
    "array<bigint>": pa.list_(pa.int64()),
    "array<string>": pa.list_(pa.string()),
    "map<string,bigint>": pa.map_(pa.string(), pa.int64()),
    "struct<a:bigint>": pa.struct([("a", pa.int64())]),
    "array<struct<a:double>>": pa.list_(pa.struct([("a", pa.float64())])),
}


@dataclass(frozen=True, slots=True)
class JsonCase:
    """A text and a type; `value` without Spark, `in_spark` there, where that differs."""

    text: str
    type_name: str
    value: Any
    in_spark: Any = None

    @property
    def spark_value(self) -> Any:
        return self.value if self.in_spark is None else self.in_spark


def _cases(type_name: str, *rows: tuple[Any, ...]) -> list[JsonCase]:
    return [JsonCase(row[0], type_name, *row[1:]) for row in rows]


JSON_CASES = [
    *(JsonCase("null", name, None) for name in TYPES),
    *_cases(
        "bigint", ("1", 1), ("-9223372036854775808", -(2**63)), ("9223372036854775808", BAD),
        ('"1"', BAD), ("true", BAD), ("1.0", BAD), ("1.5", BAD), ("1e2", BAD), ("[1]", BAD),
        ("{}", BAD), ('""', BAD),
    ),
    *_cases("tinyint", ("127", 127), ("256", BAD), ("128", BAD, -128)),
    *_cases(
        "double", ("1", 1.0), ("1.5", 1.5), ("9223372036854775808", 2.0**63), ('"1"', BAD),
        ("true", BAD), ("false", BAD), ('"NaN"', BAD), ("NaN", BAD),
        ("1152921504606846977", 2.0**60),
        ("1e400", float("inf")),
    ),
    *_cases("float", ("0.5", 0.5), ("1e300", float("inf")), ("true", BAD), ('"x"', BAD)),
    *_cases(
        "boolean", ("true", True), ("1", BAD), ("0", BAD), ("1.0", BAD), ('"true"', BAD),
        ("[]", BAD),
    ),
    *_cases(
        "string", ('"x"', "x"), ("1", "1"), ("1.5", "1.5"), ("0.10", "0.1"),
        ("true", "true"), ("[]", "[]"),
        ('{"a": 1}', '{"a":1}'), ('["x"]', '["x"]'),
    ),
    *_cases(
        "decimal(9,2)", ("1", Decimal("1.00")), ("1.25", Decimal("1.25")), ("true", BAD),
        ("12345678", BAD), ('"x"', BAD),
        ('"1.25"', BAD, Decimal("1.25")), ("1.255", BAD, Decimal("1.26")),
    ),
    *_cases(
        "timestamp", ('"2026-01-01T00:00:00Z"', NEW_YEAR),
        ('"2026-01-01T01:00:00+01:00"', NEW_YEAR),
        ('"yesterday"', BAD), ("true", BAD), ("1.5", BAD), ('""', BAD),
        ("1767225600", BAD, NEW_YEAR), ('"2026"', BAD, NEW_YEAR),
    ),
    *_cases(
        "timestamp_ntz", ('"2026-01-01 00:00:00"', NEW_YEAR.replace(tzinfo=None)), ("5", BAD),
        ('"x"', BAD),
    ),
    *_cases(
        "date", ('"2026-01-01"', NEW_YEAR.date()), ("5", BAD), ("true", BAD), ('"x"', BAD),
        ('"2026"', BAD, NEW_YEAR.date()),
    ),
    *_cases(
        "array<bigint>", ("[]", []), ("[1, null]", [1, None]), ('[1, "x"]', BAD), ("[true]", BAD),
        ("1", BAD), ("{}", BAD), ('"12"', BAD), ("[1.5]", BAD),
    ),
    *_cases("array<string>", ('["a", 1]', ["a", "1"]), ('"ab"', BAD), ('{"a": 1}', BAD)),
    *_cases(
        "map<string,bigint>", ("{}", []), ('{"a": 1}', [("a", 1)]), ('{"a": 1, "b": "x"}', BAD),
        ("[]", BAD), ('[["a", 1]]', BAD), ('"a"', BAD),
    ),
    *_cases(
        "struct<a:bigint>", ('{"a": 1, "b": 2}', {"a": 1}), ("{}", {"a": None}),
        ('{"a": "1"}', BAD),
        ("[]", BAD), ("[1]", BAD), ('""', BAD), ("5", BAD),
    ),
    *_cases(
        "array<struct<a:double>>", ('[{"a": 1}, null]', [{"a": 1.0}, None]), ('[{"a": true}]', BAD),
        ('[{"a": 1}, {"a": "x"}]', BAD), ('{"a": 1}', BAD), ("[[]]", BAD),
    ),
]  # fmt: skip
ROOT_TYPES = [name for name in TYPES if "<" in name]
"""Types that a whole value may have in Spark."""
