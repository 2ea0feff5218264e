"""The fields of klog's JSON files, each checked when it is read.

The rule: what a file says is hostile until it has the type and the range that it must have. A field
that does not is an `UnsupportedFormatError` that names it and shows the start of its value.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from klog.connector.commit_log.segment_path import parse_segment_path
from klog.errors import UnsupportedFormatError
from klog.logformat.broker_files.file_names import MAX_OFFSET, MAX_PARTITION

_MAX_TEXT_LENGTH = 1 << 16
_MAX_SHOWN_LENGTH = 100


class Fields:
    """The fields of a JSON object, each checked when it is read.

    `names` are all names of the object. Each method raises `UnsupportedFormatError` for a value
    that is not what it reads.
    """

    def __init__(self, fields: Mapping[str, Any]) -> None:
        """Take the object; nothing is checked yet."""
        self._fields = fields
        self.names = fields.keys()
        self._read_names = {"format", "since"}

    def _read(self, name: str) -> object:
        self._read_names.add(name)
        return self._fields.get(name)

    def unread(self) -> dict[str, Any]:
        """Return the fields that no method has read yet, without `format` and `since`."""
        return {name: value for name, value in self._fields.items() if name not in self._read_names}

    def number(self, name: str, max_value: int = MAX_OFFSET) -> int:
        """Read an integer from 0 to `max_value`.

        Args:
            name: The name of the field.
            max_value: The highest value.
        """
        return check_number(name, self._read(name), max_value)

    def optional_number(self, name: str, max_value: int = MAX_OFFSET) -> int | None:
        """Read an integer from 0 to `max_value`, which may be missing.

        Args:
            name: The name of the field.
            max_value: The highest value.
        """
        value = self._read(name)
        return None if value is None else check_number(name, value, max_value)

    def text(self, name: str) -> str:
        """Read a string.

        Args:
            name: The name of the field.
        """
        return check_text(name, self._read(name))

    def optional_text(self, name: str) -> str | None:
        """Read a string, which may be missing.

        Args:
            name: The name of the field.
        """
        value = self._read(name)
        return None if value is None else check_text(name, value)

    def texts(self, name: str) -> tuple[str, ...]:
        """Read a list of strings; a missing one is empty.

        Args:
            name: The name of the field.
        """
        return tuple(check_text(name, value) for value in self.values(name))

    def object(self, name: str) -> dict[str, Any] | None:
        """Read an object, which may be missing.

        Args:
            name: The name of the field.
        """
        value = self._read(name)
        return None if value is None else check_type(name, value, dict)

    def values(self, name: str) -> list[Any]:
        """Read a list; a missing one is empty.

        Args:
            name: The name of the field.
        """
        values: list[Any] = check_type(name, self._read(name) or [], list)
        return values

    def numbers(self, name: str) -> tuple[int, ...]:
        """Read a list of integers from 0, which must not be missing.

        Args:
            name: The name of the field.
        """
        values = check_type(name, self._read(name), list)
        return tuple(check_number(name, value) for value in values)

    def by_partition(self, name: str) -> dict[int, int]:
        """Read an object of integers by partition; a missing one is empty.

        Args:
            name: The name of the field.
        """
        values = check_type(name, self._read(name) or {}, dict)
        return {
            parse_partition(name, partition): check_number(name, value)
            for partition, value in values.items()
        }

    def pairs(self, name: str, max_key: int) -> dict[int, int]:
        """Read a list of pairs of integers from 0 as a mapping; a missing one is empty.

        Args:
            name: The name of the field.
            max_key: The highest first number of a pair.
        """
        pairs = [check_type(name, pair, list) for pair in self.values(name)]
        if any(len(pair) != 2 for pair in pairs):
            raise UnsupportedFormatError(f"{name} has a pair of other than two numbers")
        return {check_number(name, key, max_key): check_number(name, value) for key, value in pairs}

    def objects(self, name: str) -> list[dict[str, Any]]:
        """Read a list of objects; a missing one is empty.

        Args:
            name: The name of the field.
        """
        return [check_type(name, value, dict) for value in self.values(name)]


def check_segment_file(file: str, topic: str) -> str:
    """Return a path if it is the path of a segment of this topic.

    Args:
        file: The path, relative to the root.
        topic: The topic.

    Raises:
        UnsupportedFormatError: It is not such a path.
    """
    path = parse_segment_path(file)
    if path is None or path.topic != topic:
        raise UnsupportedFormatError(f"file {shorten(file)} is not a segment of {topic}")
    return file


def parse_partition(name: str, text: str) -> int:
    """Return the partition that a key of an object is.

    Args:
        name: The name of the object.
        text: The key.

    Raises:
        UnsupportedFormatError: The key is not a partition, or not in its only spelling: otherwise
            one commit could name a partition twice.
    """
    is_number = text.isascii() and text.isdecimal() and len(text) <= 10
    if not is_number or int(text) > MAX_PARTITION or text != str(int(text)):
        raise UnsupportedFormatError(f"{name} is of partition {shorten(text)}")
    return int(text)


def check_number(name: str, value: object, max_value: int = MAX_OFFSET) -> int:
    """Return a value if it is an integer from 0 to `max_value`.

    Args:
        name: The name of the field.
        value: The value, of any type.
        max_value: The highest value.

    Raises:
        UnsupportedFormatError: It is not.
    """
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= max_value:
        raise UnsupportedFormatError(f"{name} is {shorten(value)}")
    return value


def check_text(name: str, value: object) -> str:
    """Return a value if it is a string that `is_text` accepts.

    Args:
        name: The name of the field.
        value: The value, of any type.

    Raises:
        UnsupportedFormatError: It is not.
    """
    if not isinstance(value, str) or not is_text(value):
        raise UnsupportedFormatError(f"{name} is {shorten(value)}")
    return value


def is_text(value: str) -> bool:
    """Return whether a string has at most 64 Ki characters, and UTF-8 can encode it.

    JSON may have half of a surrogate pair, which UTF-8 cannot encode.

    Args:
        value: The string.
    """
    if len(value) > _MAX_TEXT_LENGTH:
        return False
    try:
        return value.isascii() or bool(value.encode())
    except UnicodeEncodeError:
        return False


def shorten(value: object) -> str:
    """Return the start of any value that JSON may have, in printable characters.

    Args:
        value: The value, of any type.
    """
    try:
        text = ascii(value[:_MAX_SHOWN_LENGTH] if isinstance(value, str) else value)
    except (RecursionError, ValueError):  # Nested deeply, or a number of very many digits.
        text = type(value).__name__
    return text if len(text) <= _MAX_SHOWN_LENGTH + 2 else text[:_MAX_SHOWN_LENGTH]


def check_type(name: str, value: Any, expected: type[Any]) -> Any:
    """Return a value if it has the expected type.

    Args:
        name: The name of the field.
        value: The value, of any type.
        expected: The type.

    Raises:
        UnsupportedFormatError: It has another type.
    """
    if not isinstance(value, expected):
        raise UnsupportedFormatError(f"{name} is {shorten(value)}")
    return value
