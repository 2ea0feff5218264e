"""The files of an earlier version of a topic: vacuum may have deleted some of them.

The rule (docs/commit-protocol.md, The past): the files of live segments are there. Those of other
segments stay until vacuum deletes them, so the store is asked for them, for each at most once.
Nothing keeps a file that is there: a reader that does not find it later gets the same error.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from klog.connector import arrow_compute as pc
from klog.connector.commit_log.commit_log import CommitLog
from klog.connector.commit_log.past_versions import load_version, oldest_version
from klog.connector.commit_log.segment_file_sizes import SegmentFileSizes
from klog.connector.commit_log.topic_state import TopicState
from klog.errors import OptionError
from klog.logformat.topic_config_defaults import REMOVED_FILE_RETENTION_MS


@dataclass(frozen=True, slots=True)
class PastFiles:
    """Looks whether files of earlier versions are there.

    Attributes:
        log: The log of the topic.
        current: The state of the topic that was just loaded.
        option: The option that says which version is read, for errors.
    """

    log: CommitLog
    current: TopicState
    option: str = "version"
    _sizes: SegmentFileSizes = field(default_factory=SegmentFileSizes)

    def missing(self, segments: pa.Table) -> list[str]:
        """Return the files of segments that vacuum has deleted.

        Args:
            segments: Segments of a version, with `segment_entries.SCHEMA`.

        Returns:
            The paths of the files, relative to the root, in the order of the segments.
        """
        if not segments.num_rows:
            return []
        live = self.current.segments["file"].combine_chunks()
        is_live = pc.is_in(segments["file"], value_set=live)
        not_live: Sequence[str] = segments["file"].filter(pc.invert(is_live)).to_pylist()
        existing = self._sizes.sizes(self.log, not_live)
        return [file for file in not_live if file not in existing]

    def check(self, version: int, segments: pa.Table) -> None:
        """Refuse to read segments of a version if a file of theirs is gone.

        Args:
            version: The version.
            segments: The segments that are read.

        Raises:
            OptionError: A file is gone. The error names it, and a later version that can be read.
        """
        missing = self.missing(segments)
        if missing:
            raise self.missing_file_error(version, missing[0])

    def check_again(self, version: int, file: str) -> None:
        """Look for a file of a version that a read did not find, whatever was listed before.

        Args:
            version: The version.
            file: The path of the file, relative to the root.

        Raises:
            OptionError: As `check`.
        """
        self._sizes.forget()
        self.check(version, pa.table({"file": [file]}))

    def missing_file_error(self, version: int, file: str) -> OptionError:
        """Return the error for a file that is gone.

        Args:
            version: The version that it is of.
            file: The path of the file, relative to the root.
        """
        readable = self.readable_version_after(version)
        return OptionError(
            f"{self.option}: version {version} of topic {self.log.paths.topic} needs {file}, which "
            f"a later commit removed and vacuum has deleted. Version {readable} can be read: give "
            "that one, or another one whose files are there. "
            f"{REMOVED_FILE_RETENTION_MS} of the topic says how long vacuum keeps such files"
        )

    def readable_version_after(self, version: int) -> int:
        """Return a version above one that has all commits and files, found by bisection.

        It is the oldest one unless a restore made older segments live again in between: then an
        older version may have all files, and one after it may not.

        Args:
            version: A version that lacks a file.
        """
        low, high = max(version, oldest_version(self.log, self.current) - 1), self.current.version
        while low < high - 1:
            middle = (low + high) // 2
            if self._has_all(middle):
                high = middle
            else:
                low = middle
        return high

    def _has_all(self, version: int) -> bool:
        try:
            state = load_version(self.log, version, self.current)
        except OptionError:  # It expired meanwhile, or is of an earlier topic of the name.
            return False
        return not self.missing(state.segments)


@dataclass(frozen=True, slots=True)
class VersionFiles:
    """The files of one version: `SegmentFiles` of a read of the past."""

    past_files: PastFiles
    version: int

    def check(self, segments: pa.Table) -> None:
        """See `SegmentFiles.check`."""
        self.past_files.check(self.version, segments)

    def check_again(self, file: str) -> None:
        """See `SegmentFiles.check_again`."""
        self.past_files.check_again(self.version, file)
