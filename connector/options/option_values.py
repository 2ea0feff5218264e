"""The kinds of values that options have: how each is written, and what an error says it must be."""

from __future__ import annotations

import json
import re
from typing import Any

from klog.connector.options.consumer_strategy import Assign, Subscribe, SubscribePattern
from klog.connector.options.option import ValueParser
from klog.connector.options.read_columns import COLUMNS, known_columns
from klog.logformat.broker_files.file_names import is_topic
from klog.logformat.topic_config import parse_topic_config
from klog.logformat.topic_partition import TopicPartition

MAX_ID_BYTES = (1 << 15) - 1
"""Of a transactional id in UTF-8: Kafka's protocol has 15 bits for its length."""

MAX_INT = (1 << 31) - 1
MAX_LONG = (1 << 63) - 1

_WHOLE = re.compile(r"[+-]?[0-9]{1,40}")

_BYTES = re.compile(r"[0-9]{1,18}")
_SIZE = re.compile(r"([0-9]{1,18})(b|k|kb|m|mb|g|gb|t|tb|p|pb)?")
_SIZE_SHIFTS = {"": 0, "b": 0, "k": 10, "m": 20, "g": 30, "t": 40, "p": 50}
_DURATION = re.compile(r"(-?[0-9]{1,18})(us|ms|s|m|min|h|d)?")
_DURATION_MS = {"ms": 1, "s": 1000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}


_BIT_BOUNDS: dict[int | None, str] = {MAX_INT: " of 32 bits", MAX_LONG: " of 64 bits"}


def choice(*choices: str, any_case: bool = False) -> ValueParser[str]:
    """Return a parser of one of a few words.

    Args:
        choices: The words.
        any_case: Whether capitals do not matter; the value is in lower case then.
    """

    def parse(text: str) -> str:
        word = text.lower() if any_case else text
        if word not in choices:
            raise ValueError
        return word

    return ValueParser(parse, f"one of {', '.join(choices)}")


def parse_whole(text: str) -> int:
    """Return the number that a text is, as Java's `Long.parseLong` takes it: a sign and digits.

    Args:
        text: The text.

    Raises:
        ValueError: It is none: it has spaces, `_`, or a fraction.
    """
    if not _WHOLE.fullmatch(text):
        raise ValueError
    return int(text)


def whole_number(min_value: int | None = None, max_value: int | None = None) -> ValueParser[int]:
    """Return a parser of a whole number.

    Args:
        min_value: The smallest number; None for no bound.
        max_value: The largest number; None for no bound.
    """

    def parse(text: str) -> int:
        number = parse_whole(text)
        if (min_value is not None and number < min_value) or (
            max_value is not None and number > max_value
        ):
            raise ValueError
        return number

    bounds = _BIT_BOUNDS.get(max_value, "")
    bounds += "" if min_value in (None, -MAX_LONG - 1) else f" from {min_value}"
    bounds += "" if max_value is None or max_value in _BIT_BOUNDS else f" to {max_value}"
    return ValueParser(parse, f"a whole number{bounds}")


def byte_count(max_bytes: int) -> ValueParser[int]:
    """Return a parser of a number of bytes, written in digits.

    Args:
        max_bytes: The largest number.
    """

    def parse(text: str) -> int:
        digits = text.strip()
        if not _BYTES.fullmatch(digits) or int(digits) > max_bytes:
            raise ValueError
        return int(digits)

    return ValueParser(parse, f"a number of bytes, at most {max_bytes}")


def _size_bytes(text: str) -> int:
    match = _SIZE.fullmatch(text.strip().lower())
    if match is None:
        raise ValueError
    number, unit = match.groups()
    size_bytes = int(number) << _SIZE_SHIFTS[(unit or "")[:1]]
    if not 1 <= size_bytes <= MAX_LONG:
        raise ValueError
    return size_bytes


def _duration_ms(text: str) -> int:
    match = _DURATION.fullmatch(text.strip().lower())
    if match is None:
        raise ValueError
    number, unit = match.groups()
    duration = int(number)
    if unit == "us":
        whole_ms = abs(duration) // 1000  # Java rounds towards 0.
        return whole_ms if duration > 0 else -whole_ms
    duration_ms = duration * _DURATION_MS[unit or "ms"]
    if abs(duration_ms) > MAX_LONG:
        raise ValueError
    return duration_ms


def topic_config(name: str) -> ValueParser[object]:
    """Return a parser of a value of a topic config, whose error names the config too.

    Args:
        name: The name of the topic config.
    """

    def parse(text: str) -> object:
        return parse_topic_config({name: text}).values[name]

    return ValueParser(parse, f"a value of the topic config {name}")


def _boolean(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError
    return text.lower() == "true"


def _topic(text: str) -> str:
    if not is_topic(text):
        raise ValueError
    return text


def _transactional_id(text: str) -> str:
    if not isinstance(text, str):  # From a caller of `klog.open(...).append`.
        raise ValueError("not a text")
    try:
        size_bytes = len(text.encode())
    except UnicodeEncodeError:
        raise ValueError("it has half of a surrogate pair") from None
    if not 1 <= size_bytes <= MAX_ID_BYTES:
        raise ValueError(f"it has {size_bytes} bytes")
    return text


def _paths(text: str) -> list[str]:
    paths = _json(text)
    if not isinstance(paths, list) or not all(path and isinstance(path, str) for path in paths):
        raise ValueError
    return paths


def _topics(text: str) -> Subscribe:
    topics = tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    if not topics:
        raise ValueError
    return Subscribe(topics)


def _pattern(text: str) -> SubscribePattern:
    try:
        pattern = re.compile(text.strip())
    except re.error as exc:
        raise ValueError(str(exc)) from None
    if not pattern.pattern:
        raise ValueError("it is empty; .* finds every topic")
    return SubscribePattern(pattern)


def _partitions(text: str) -> Assign:
    partitions: dict[TopicPartition, None] = {}
    for topic, numbers in json_object(text).items():
        if not isinstance(numbers, list) or not all(map(is_whole, numbers)):
            raise ValueError(f"{topic} has no list of partitions")
        if any(abs(number) > MAX_INT for number in numbers):
            raise ValueError(f"{topic} has a partition of more than 32 bits")
        partitions.update({TopicPartition(topic, int(number)): None for number in numbers})
    return Assign(tuple(partitions))


def _columns(text: str) -> tuple[str, ...]:
    names = known_columns(name.strip() for name in text.split(","))
    return tuple(column for column in COLUMNS if column in names)


def json_object(text: str) -> dict[str, Any]:
    """Return the object that a text is as JSON.

    Args:
        text: The text.

    Raises:
        ValueError: It is not a JSON object, or an object in it has a name twice.
    """
    value = _json(text)
    if not isinstance(value, dict):
        raise ValueError("not a JSON object")
    return value


def _json(text: str) -> Any:
    try:
        return json.loads(text, object_pairs_hook=_object)
    except (json.JSONDecodeError, RecursionError) as exc:
        raise ValueError(f"not JSON: {exc}") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of JSON; of a name that is there twice, one value would have no effect."""
    values: dict[str, Any] = {}
    for name, value in pairs:
        if name in values:
            raise ValueError(f"{name} is there twice")
        values[name] = value
    return values


def is_whole(value: Any) -> bool:
    """Return whether a value of JSON is a whole number; `3.0` is one, as for Spark.

    Args:
        value: The value.
    """
    if isinstance(value, bool):
        return False
    return isinstance(value, int) or (isinstance(value, float) and value.is_integer())


LONG = whole_number(-MAX_LONG - 1, MAX_LONG)
TEXT = ValueParser(str, "a text")
PATH_LIST = ValueParser(_paths, "a JSON list of paths", '["/data/kafka1", "/data/kafka2"]')
BOOLEAN = ValueParser(_boolean, "true or false")
TOPIC_NAME = ValueParser(
    _topic, "a topic name: 1 to 249 letters, digits, '.', '_' and '-', and neither '.' nor '..'"
)
TRANSACTIONAL_ID_TEXT = ValueParser(
    _transactional_id, f"a text of 1 to {MAX_ID_BYTES} bytes of UTF-8"
)
TOPIC_LIST = ValueParser(_topics, "one or more topics with commas between them", "orders,payments")
REGULAR_EXPRESSION = ValueParser(_pattern, "a regular expression of Python", "orders-.*")
PARTITION_LISTS = ValueParser(
    _partitions, "JSON that lists partitions by topic", '{"orders": [0, 1]}'
)
COLUMN_LIST = ValueParser(
    _columns, f"one or more of {', '.join(COLUMNS)} with commas between them", "key,value"
)
SIZE = ValueParser(_size_bytes, "a size from 1 byte, such as 67108864, 64m or 1g")
"""Bytes, with the units of Spark's `JavaUtils.byteStringAs`: 1024 to the next."""
DURATION = ValueParser(_duration_ms, "a duration such as 500ms, 30s, 15m, 1h or 1d")
"""Milliseconds, with the units of Spark's `JavaUtils.timeStringAs`."""
