"""What a compiled class has and what it links to, read from its bytes.

The rule: the constant pool names each field and method that the code uses, with the types that it
was compiled against (The Java Virtual Machine Specification, chapter 4). Nothing else of
the code is read.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import NamedTuple

_TEXT, _LONG, _DOUBLE, _FIELD, _METHOD, _INTERFACE_METHOD = 1, 5, 6, 9, 10, 11
_SIZES = {3: 4, 4: 4, 5: 8, 6: 8, 7: 2, 8: 2, 9: 4, 10: 4, 11: 4, 12: 4}
_SIZES |= {15: 3, 16: 2, 17: 4, 18: 4, 19: 2, 20: 2}
"""Bytes of a constant after its tag."""


class Link(NamedTuple):
    """A field or a method of a class, by name and types."""

    owner: str
    name: str
    types: str


@dataclass(frozen=True, slots=True)
class ClassFile:
    """A class: its parents, its own members, and the members that its code names."""

    parents: tuple[str, ...]
    members: frozenset[tuple[str, str]]
    links: frozenset[Link]

    @classmethod
    def from_bytes(cls, data: bytes) -> ClassFile:
        """Read the content of a `.class` file."""
        return _Reader(data).read()


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 8
        self._constants: dict[int, tuple[int, bytes]] = {}

    def read(self) -> ClassFile:
        self._read_constants()
        _, _, parent, count = self._numbers(4)
        interfaces = self._numbers(count)
        parents = tuple(self._class(at) for at in (parent, *interfaces) if at)
        members = frozenset([*self._members(), *self._members()])
        links = frozenset(
            self._link(content)
            for tag, content in self._constants.values()
            if tag in (_FIELD, _METHOD, _INTERFACE_METHOD)
        )
        return ClassFile(parents, members, links)

    def _numbers(self, count: int) -> tuple[int, ...]:
        """Return the next numbers of two bytes."""
        numbers = struct.unpack_from(f">{count}H", self._data, self._at)
        self._at += 2 * count
        return numbers

    def _read_constants(self) -> None:
        (count,) = self._numbers(1)
        number = 1
        while number < count:
            tag = self._data[self._at]
            self._at += 1
            size = self._numbers(1)[0] if tag == _TEXT else _SIZES[tag]
            self._constants[number] = tag, self._data[self._at : self._at + size]
            self._at += size
            number += 2 if tag in (_LONG, _DOUBLE) else 1

    def _members(self) -> list[tuple[str, str]]:
        """Return name and types of the next table: fields, then methods."""
        members = []
        for _ in range(self._numbers(1)[0]):
            _, name, types, attributes = self._numbers(4)
            members.append((self._text(name), self._text(types)))
            for _ in range(attributes):
                self._at += 6 + struct.unpack_from(">I", self._data, self._at + 2)[0]
        return members

    def _text(self, at: int) -> str:
        return self._constants[at][1].decode("utf-8", "replace")

    def _class(self, at: int) -> str:
        return self._text(struct.unpack(">H", self._constants[at][1])[0])

    def _link(self, content: bytes) -> Link:
        owner, described = struct.unpack(">HH", content)
        name, types = struct.unpack(">HH", self._constants[described][1])
        return Link(self._class(owner), self._text(name), self._text(types))
