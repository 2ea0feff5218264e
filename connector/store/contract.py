"""What a topic's commit log asks of a store beyond reading: put if absent, put, delete.

The rule: of all calls of `put_if_absent` for one path, over all processes and machines and for as
long as nobody deletes the path, exactly one creates it; who reads the path sees all of those bytes
or no file. A read or a listing that begins after a put has answered sees the file. Each strategy
says in its docstring why that holds. A strategy that cannot tell whether its call was the one says
so with `UNKNOWN`, and the caller reads the path back.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import Protocol

from klog.connector.store.files import Store


class Put(Enum):
    """What became of a put-if-absent."""

    CREATED = "created"
    EXISTS = "exists"
    """The path was there before, maybe by an earlier try of this very call; it is durable."""
    UNKNOWN = "unknown"
    """It may have been created, and may be still: the answer was lost."""


class WritableStore(Store, Protocol):
    """A store that a topic's log can be kept in; paths are as `store_for` gives them.

    Names have no colon, which HDFS refuses, and no control character, which S3's client does.
    Directories need not be made first. A `KlogError` says what is wrong and what to do (no
    permission, no space, no such bucket), in words for the user and without a secret.
    """

    def put_if_absent(self, path: str, data: bytes) -> Put:
        """Create `path` with `data`, whole and durable, unless it is there.

        An error means that the call certainly had no effect.
        """

    def put(self, path: str, pieces: Iterable[bytes]) -> None:
        """Write `path` whole and durable, in place of what may be there.

        An error may mean that it was written all the same.
        """

    def delete(self, path: str) -> None:
        """Remove `path`; that it is not there is fine.

        Not durable at once: after a loss of power the path may be there again. A path whose
        `Entry` has a `link` is a `KlogError`, and stays.
        """
