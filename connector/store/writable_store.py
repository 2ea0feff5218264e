"""What a commit log needs of a store beyond reading: put if absent, put, delete.

The rule: of all calls of `put_if_absent` for one path, over all processes and machines and until
somebody deletes the path, exactly one creates it. A reader of the path sees all bytes or no file. A
read or a listing that begins after a put was acknowledged sees the file. Each store's docstring
says why that holds there. A store that cannot tell whether its call created the file answers
`UNKNOWN`, and the caller reads the path back.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import Protocol

from klog.connector.store.readable_store import ReadableStore


class PutResult(Enum):
    """The result of a put-if-absent."""

    CREATED = "created"
    EXISTS = "exists"
    """The path existed before, maybe by an earlier try of this very call. It is durable."""
    UNKNOWN = "unknown"
    """The answer was lost: the path may have been created, and may still be."""


class WritableStore(ReadableStore, Protocol):
    """A store that can have a commit log.

    Paths are spelled as `store_for` returns them. Names have no colon, which HDFS refuses, and no
    control character, which S3's client refuses. Missing directories are made. A `KlogError` says
    what is wrong and what to do, and shows no secret.
    """

    def put_if_absent(self, path: str, data: bytes) -> PutResult:
        """Create a file, complete and durable, unless its path exists.

        Args:
            path: The path of the file.
            data: The bytes.

        Raises:
            KlogError: The call had no effect.
        """

    def put(self, path: str, chunks: Iterable[bytes]) -> None:
        """Write a file, complete and durable, over one that may exist.

        Args:
            path: The path of the file.
            chunks: The bytes, in order.

        Raises:
            KlogError: The file may have been written all the same.
        """

    def delete(self, path: str) -> None:
        """Remove a file, if it exists.

        After a loss of power the file may be there again.

        Args:
            path: The path of the file.

        Raises:
            KlogError: The file stays, such as one whose `DirectoryEntry` has a `link`.
        """
