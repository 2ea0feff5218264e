"""Whether the files of segments are there: a question only of a read of the past.

The rule: the files of live segments are taken to be there, as only vacuum deletes files. Those of
an earlier version are looked for before a segment is read, and again if one is not found then.
"""

from __future__ import annotations

from typing import Protocol

import pyarrow as pa


class SegmentFiles(Protocol):
    """Refuses to read segments with a file that is gone."""

    def check(self, segments: pa.Table) -> None:
        """Look for the files of segments before any of them is read.

        Args:
            segments: The segments, with the column `file`.

        Raises:
            OptionError: A file is gone.
        """

    def check_again(self, file: str) -> None:
        """Look for a file that a read did not find, whatever was seen before.

        Args:
            file: The path of the file, relative to the root.

        Raises:
            OptionError: The file is gone.
        """


class LiveFiles:
    """The files of live segments."""

    def check(self, segments: pa.Table) -> None:
        """Do nothing.

        Args:
            segments: Not used.
        """

    def check_again(self, file: str) -> None:
        """Do nothing: a live segment that is missing is damage.

        Args:
            file: Not used.
        """


LIVE_FILES = LiveFiles()
