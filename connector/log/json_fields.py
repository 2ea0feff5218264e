"""The fields of klog's JSON files, each checked as it is taken.

The rule: what a file says is hostile until it has the type and the range that it must have. What
has not is an `UnsupportedFormatError` that names the field and shows a short piece of its value.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from klog.connector.log.paths import segment_path
from klog.errors import UnsupportedFormatError
from klog.logformat.names import MAX_OFFSET, MAX_PARTITION

_MAX_TEXT = 1 << 16
_MAX_SHOWN = 100


class Fields:
    """The fields of a JSON object, each checked as it is taken."""

    def __init__(self, said: Mapping[str, Any]) -> None:
        """Take the object; `known` gathers the names that were asked for."""
        self._said = said
        self.given = said.keys()
        self.known = {"format", "since"}

    def _take(self, name: str) -> object:
        self.known.add(name)
        return self._said.get(name)

    def number(self, name: str, most: int = MAX_OFFSET) -> int:
        """Take a whole number from 0 to `most`."""
        return number_of(name, self._take(name), most)

    def optional_number(self, name: str, most: int = MAX_OFFSET) -> int | None:
        """Take a number that may be left out."""
        value = self._take(name)
        return None if value is None else number_of(name, value, most)

    def text(self, name: str) -> str:
        """Take a text."""
        return text_of(name, self._take(name))

    def optional_text(self, name: str) -> str | None:
        """Take a text that may be left out."""
        value = self._take(name)
        return None if value is None else text_of(name, value)

    def texts(self, name: str) -> tuple[str, ...]:
        """Take a list of texts; left out, it is empty."""
        return tuple(text_of(name, one) for one in as_kind(name, self._take(name) or [], list))

    def object(self, name: str) -> dict[str, Any] | None:
        """Take an object that may be left out."""
        value = self._take(name)
        return None if value is None else as_kind(name, value, dict)

    def values(self, name: str) -> list[Any]:
        """Take a list; left out, it is empty."""
        found: list[Any] = as_kind(name, self._take(name) or [], list)
        return found

    def numbers(self, name: str) -> tuple[int, ...]:
        """Take a list of whole numbers from 0."""
        return tuple(number_of(name, one) for one in as_kind(name, self._take(name), list))

    def by_partition(self, name: str) -> dict[int, int]:
        """Take numbers by partition; left out, there are none."""
        found = as_kind(name, self._take(name) or {}, dict)
        return {partition_number(name, key): number_of(name, value) for key, value in found.items()}

    def objects(self, name: str) -> list[dict[str, Any]]:
        """Take a list of objects; left out, it is empty."""
        return [as_kind(name, one, dict) for one in as_kind(name, self._take(name) or [], list)]


def segment_file_of(name: str, topic: str) -> str:
    """Give a path back that is one of a segment of this topic."""
    path = segment_path(name)
    if path is None or path.topic != topic:
        raise UnsupportedFormatError(f"file {shortly(name)} is no segment of {topic}")
    return name


def partition_number(name: str, key: str) -> int:
    """Read a partition that stands as a key in field `name`."""
    is_number = key.isascii() and key.isdecimal() and len(key) <= 10
    # Spelled in one way only: else one commit could speak twice of a partition.
    if not is_number or int(key) > MAX_PARTITION or key != str(int(key)):
        raise UnsupportedFormatError(f"{name} is of partition {shortly(key)}")
    return int(key)


def number_of(name: str, value: object, most: int = MAX_OFFSET) -> int:
    """Give the value of field `name` back if it is a whole number from 0 to `most`."""
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= most:
        raise UnsupportedFormatError(f"{name} is {shortly(value)}")
    return value


def text_of(name: str, value: object) -> str:
    """Give the value of field `name` back if it is a text, not too long, that UTF-8 can hold."""
    if not isinstance(value, str) or not is_text(value):
        raise UnsupportedFormatError(f"{name} is {shortly(value)}")
    return value


def is_text(value: str) -> bool:
    """Tell whether a text is short enough and has no half of a surrogate pair, as JSON may."""
    if len(value) > _MAX_TEXT:
        return False
    try:
        return value.isascii() or bool(value.encode())
    except UnicodeEncodeError:
        return False


def shortly(value: object) -> str:
    """Show the beginning of any value that JSON may have, in characters that can be printed."""
    try:
        shown = ascii(value[:_MAX_SHOWN] if isinstance(value, str) else value)
    except (RecursionError, ValueError):  # Very deep, or a number of very many digits.
        shown = type(value).__name__
    return shown if len(shown) <= _MAX_SHOWN + 2 else shown[:_MAX_SHOWN]


def as_kind(name: str, value: Any, kind: type[Any]) -> Any:
    """Give the value of field `name` back if it is of this kind."""
    if not isinstance(value, kind):
        raise UnsupportedFormatError(f"{name} is {shortly(value)}")
    return value
