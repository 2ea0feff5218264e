"""Every error klog raises on purpose; a class exists only where a caller acts differently.

    KlogError
    +-- CorruptRecordError      bytes are bad: file, position and reason are in the message
    +-- UnsupportedFormatError  bytes are good, but of a kind this klog does not read
    +-- OffsetOutOfRangeError   an offset that the partition does not hold was asked for
    +-- DataLossError           records that a plan or a stream counted on are gone
    +-- OutOfOrderSequenceError a producer's batch does not follow its last: write what is missing
    +-- ProducerFencedError     a newer producer or coordinator has taken over: stop writing
    +-- LostCommitError         a commit was lost at rest: read nothing beyond it, repair the log
    |   +-- ForkedCommitError   another commit was put in its place: copy that one away first
    +-- CommitConflictError     a commit did not land and cannot: what was staged may go
    +-- CommitStateUnknownError a commit may have landed: delete nothing, look again
    +-- InvalidFileError        a file cannot be one of its kind: it was not read
    |   +-- FileTooLargeError   it is larger than any of its kind
    |   +-- NotRegularFileError a directory, a FIFO, a socket or a device has the file's name
    +-- OptionError             the user's words are wrong: option, topic, path

Each message names the file, topic-partition, offset or option, and what to do next.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

_USER_AND_PASSWORD = re.compile(r"(?<=://)[^/\s]*:[^/\s]*@")
_TOKEN_AS_USER = re.compile(r"(?<=http://)[^/\s?#]*@|(?<=https://)[^/\s?#]*@")
"""Of other schemes a user without a password is a name, such as the container of `abfs://`."""
_QUERY = re.compile(
    r"""((?<!s3)(?<!s3a)(?<!hdfs)://[^\s"<>?#]*(?=[?#])|://[^\s"<>?]*(?=\?[\w.~%-]*=))"""
    r"""[?#][^\s"<>]*?(?=[]'`)}>,;:.]*(?:[\s"<>]|$))""",
    re.MULTILINE,
)
"""From `?` or `#` to the end of a URL: a signature, such as S3's and Azure's, or a token.

On S3 and HDFS both are characters of a path, unless what follows looks like a query.
"""


def without_passwords(text: str) -> str:
    """Take what may be a secret out of every URL in a text: user, password, query and fragment."""
    if "://" not in text:
        return text
    text = _USER_AND_PASSWORD.sub("***@", text)
    return _QUERY.sub(r"\1?***", _TOKEN_AS_USER.sub("***@", text))


class KlogError(Exception):
    """Root of klog's errors; none shows the password or the query of a URL."""

    def __init__(self, *args: object) -> None:
        """Keep the message, without passwords."""
        shown = (without_passwords(one) if isinstance(one, str) else one for one in args)
        super().__init__(*shown)


def with_context(exc: Exception, text: str) -> KlogError:
    """Give a `KlogError` that says `text`, of the same class where callers act on it.

    A class that is made of more than a message is not kept: what it knew is in the text.
    """
    kinds = (
        CommitConflictError,
        CommitStateUnknownError,
        LostCommitError,
        OptionError,
        ProducerFencedError,
    )
    return type(exc)(text) if isinstance(exc, kinds) else KlogError(text)


def nearest_name(name: str, names: Iterable[str], cutoff: float = 0.6) -> str | None:
    """Return the name that the user probably meant, for the hint of an error.

    Args:
        name: The name as the user wrote it.
        names: The names that exist.
        cutoff: How similar two names must be, from 0 to 1 (`difflib`'s ratio).

    Returns:
        The most similar name, None if no name is similar enough.
    """
    nearest = difflib.get_close_matches(name, list(names), n=1, cutoff=cutoff)
    return nearest[0] if nearest else None


class CorruptRecordError(KlogError):
    """Bytes that do not follow Kafka's format, or fail their checksum.

    `position` is the byte at which the damage was found, counted from the start of what was
    decoded; a caller that knows the file restates it with `in_file`.
    """

    def __init__(self, reason: str, position: int = 0) -> None:
        """Keep the reason and the position; the message is made of both."""
        super().__init__(f"{reason} (position {position})")
        self.reason = reason
        self.position = position

    def __reduce__(self) -> tuple[type[CorruptRecordError], tuple[str, int]]:
        """Pickle by its two arguments: Spark carries it from worker to driver."""
        return (type(self), (self.reason, self.position))

    def in_file(self, path: str, topic_partition: str) -> CorruptFileError:
        """Name the file, whose position this is; an error that names one stays as it is."""
        if isinstance(self, CorruptFileError):
            return self
        return CorruptFileError(self.reason, self.position, path, topic_partition)


class CorruptFileError(CorruptRecordError):
    """A `CorruptRecordError` whose file and topic-partition are known."""

    def __init__(self, reason: str, position: int, path: str, topic_partition: str) -> None:
        """Make the message that a user sees."""
        KlogError.__init__(
            self,
            f"{topic_partition}: corrupt log {path} at position {position}: {reason}. "
            "Restore this segment from a replica or a backup, or read around it with "
            "startingOffsets and endingOffsets (`assign` reads the other partitions)",
        )
        self.reason = reason
        self.position = position
        self.path = path
        self.topic_partition = topic_partition

    def __reduce__(self) -> tuple[type[CorruptFileError], tuple[str, int, str, str]]:  # type: ignore[override]
        """Pickle by its four arguments."""
        return (type(self), (self.reason, self.position, self.path, self.topic_partition))


class UnsupportedFormatError(KlogError):
    """A message format or file version that this klog does not read.

    `position` is that of the bytes in what was decoded, where they lie in a file.
    """

    def __init__(self, reason: str, position: int | None = None) -> None:
        """Keep the reason and the position; the message is made of both."""
        super().__init__(reason if position is None else f"{reason} (position {position})")
        self.reason = reason
        self.position = position

    def __reduce__(self) -> tuple[type[UnsupportedFormatError], tuple[str, int | None]]:
        """Pickle by its two arguments."""
        return (type(self), (self.reason, self.position))

    def in_file(self, path: str, topic_partition: str) -> UnsupportedFormatError:
        """Name the file and the partition."""
        return UnsupportedFormatError(f"{topic_partition}: {path}: {self.reason}", self.position)


class OffsetOutOfRangeError(KlogError):
    """An offset below the log start or above the log end was asked for."""


class DataLossError(KlogError):
    """Records that a plan or a checkpoint counted on are no longer there."""


class OutOfOrderSequenceError(KlogError):
    """A producer's batch does not follow its last one: batches are missing or repeated.

    klog no longer raises it. The class stays because `klog.errors` keeps its names.
    """


class ProducerFencedError(KlogError):
    """A newer epoch of this producer, or of its coordinator, has written: this one must stop."""


class LostCommitError(KlogError):
    """A commit is not there, though something shows that a later one was made.

    What lies beyond it cannot be read, and nothing may be put on top: `klog repair` says what can
    be done.
    """


class ForkedCommitError(LostCommitError):
    """A commit was lost, and another one was put in its place, maybe with records of its own."""


class CommitConflictError(KlogError):
    """A commit did not land, and would not be right on top of what others committed."""


class CommitStateUnknownError(KlogError):
    """The store did not say whether a commit landed; it may have, so nothing of it may be deleted.

    Trying again under the same transactional id and version is safe.
    """


class InvalidFileError(KlogError):
    """What has a file's name cannot be a file of that kind; it was not read.

    Whoever can do without the file takes it for missing.
    """


class FileTooLargeError(InvalidFileError):
    """A file that is read whole is larger than one of its kind can be; it was not read."""


class NotRegularFileError(InvalidFileError):
    """A directory, a FIFO, a socket or a device has the name of a file; it was not read."""


class OptionError(KlogError):
    """An option, a path or a topic name that cannot mean anything here."""
