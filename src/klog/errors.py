"""Every error that klog raises; a class exists only if callers act differently on it.

    KlogError
    +-- CorruptRecordError      bytes are corrupt: the message has the reason and the position
    |   +-- CorruptFileError    the same, and the message has the file and the topic-partition
    +-- UnsupportedFormatError  bytes are valid, but this klog cannot read their format
    |   +-- NewerFormatError    a newer klog wrote them: the message names the klog to install
    +-- OffsetOutOfRangeError   the partition does not have the requested offset
    +-- DataLossError           records that a plan or a stream needs are gone
    |   +-- ChangedDuringReadError  files were replaced or deleted meanwhile: plan the read again
    +-- OutOfOrderSequenceError no longer raised
    +-- ProducerFencedError     a newer producer or coordinator has taken over: stop writing
    +-- LostCommitError         a commit is missing: read nothing after it, repair the log
    |   +-- ForkedCommitError   another commit has its version: copy that one away first
    +-- CommitConflictError     a commit is not in the log: delete its staged files
    |   +-- AlreadyCommittedError an earlier try has committed the segments: nothing is left to do
    |   +-- RestoreRefusedError   a version cannot be restored: choose another one
    +-- CommitStateUnknownError a commit may be in the log: delete nothing, read the log again
    +-- StoreError              a store did not answer: try again later
    |   +-- StoreRefusedError     it refused: the message says what to change
    +-- InvalidFileError        a file cannot be of its kind: it was not read
    |   +-- FileTooLargeError   it is larger than any file of its kind
    |   +-- NotRegularFileError a directory, a FIFO, a socket or a device has the file's name
    +-- UndecodableError        a key or a value is not in its format: offset and reason
    +-- SchemaError             a schema of keys or values is invalid, missing or has changed
    +-- RegistryError           a schema registry did not answer: try again later
    |   +-- RegistryRefusedError  it refused, or is no registry: the message says what to change
    |   +-- SchemaNotFoundError the registry answered, and does not have the schema
    +-- OptionError             an option, a topic or a path of the user is wrong
        +-- NoSubscriptionError a read does not say which topics

Each message names the file, topic-partition, offset or option, and what to do next. Each class has
a `condition`, a stable id, and says in `is_retryable` whether a retry is worth trying.
Spark raises errors of its own, whose text has klog's: `raised_errors.py` finds the class there.
docs/errors.md says for each condition what it means and what to do.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from klog.url_secrets import without_passwords


class KlogError(Exception):
    """The base class of klog's errors.

    A message names the file, the topic-partition, the offset or the option, and says what to do
    next. It never contains the password or the query of a URL.

    Attributes:
        condition: The id of this kind of error, such as `KLOG_DATA_LOSS` (docs/errors.md). Ids do
            not change.
        is_retryable: Whether a retry is worth trying, because most errors of this condition end
            without a change by you.
    """

    condition = "KLOG_ERROR"
    is_retryable = False

    def __init__(self, *args: object) -> None:
        """Keep the message, without passwords."""
        shown = (without_passwords(arg) if isinstance(arg, str) else arg for arg in args)
        super().__init__(*shown)


def with_context(exc: Exception, text: str) -> KlogError:
    """Return an error with another message, of the same class if that has no more than a message.

    Args:
        exc: The error to translate.
        text: The new message.

    Returns:
        The error, to be raised from `exc`.
    """
    return error_of_class(type(exc), text)


def error_of_class(error_class: type[BaseException], text: str) -> KlogError:
    """Return an error of a class of klog's; a `KlogError` if that needs more than a message.

    Args:
        error_class: The class of an error.
        text: The message.
    """
    if issubclass(error_class, KlogError) and error_class.__init__ is KlogError.__init__:
        return error_class(text)
    return KlogError(text)


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
    """Bytes that do not follow Kafka's format, or do not match their checksum.

    Attributes:
        reason: What is wrong with the bytes.
        position: The position of the first damaged byte, from the start of the decoded bytes.
    """

    condition = "KLOG_CORRUPT_RECORD"

    def __init__(self, reason: str, position: int = 0) -> None:
        """Set the reason and the position, which the message combines."""
        super().__init__(f"{reason} (position {position})")
        self.reason = reason
        self.position = position

    def __reduce__(self) -> tuple[type[CorruptRecordError], tuple[str, int]]:
        """Pickle by its two arguments: Spark carries it from worker to driver."""
        return (type(self), (self.reason, self.position))

    def in_file(self, path: str, topic_partition: str) -> CorruptFileError:
        """Return this error with the file and the partition, or itself if it already has them.

        Args:
            path: The file; `position` counts from its start.
            topic_partition: The topic-partition of the file, such as `orders-0`.

        Returns:
            The error to raise.
        """
        if isinstance(self, CorruptFileError):
            return self
        return CorruptFileError(self.reason, self.position, path, topic_partition)


class CorruptFileError(CorruptRecordError):
    """Damaged bytes in a file of a topic.

    Attributes:
        reason: What is wrong with the bytes.
        position: The position of the first damaged byte in the file.
        path: The path of the file.
        topic_partition: The topic-partition of the file, such as `orders-0`.
    """

    condition = "KLOG_CORRUPT_FILE"

    def __init__(self, reason: str, position: int, path: str, topic_partition: str) -> None:
        """Set the parts and the message that a user sees."""
        KlogError.__init__(
            self,
            f"{topic_partition}: corrupt log {path} at position {position}: {reason}. "
            "Restore this segment from a replica or a backup. A read leaves it out with "
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
    """A message format or a file version that this klog does not read.

    Attributes:
        reason: What this klog does not read.
        position: The position of the bytes in the file; None if the error is not about bytes.
    """

    condition = "KLOG_UNSUPPORTED_FORMAT"

    def __init__(self, reason: str, position: int | None = None) -> None:
        """Set the reason and the position, which the message combines."""
        super().__init__(reason if position is None else f"{reason} (position {position})")
        self.reason = reason
        self.position = position

    def __reduce__(self) -> tuple[type[UnsupportedFormatError], tuple[str, int | None]]:
        """Pickle by its two arguments."""
        return (type(self), (self.reason, self.position))

    def in_file(self, path: str, topic_partition: str) -> UnsupportedFormatError:
        """Return this error with the file and the partition.

        Args:
            path: The file.
            topic_partition: The topic-partition of the file, such as `orders-0`.

        Returns:
            The error to raise.
        """
        return UnsupportedFormatError(f"{topic_partition}: {path}: {self.reason}", self.position)


class NewerFormatError(UnsupportedFormatError):
    """A file of klog that a newer klog wrote. The message names the klog version to install."""

    condition = "KLOG_NEWER_FORMAT"


class OffsetOutOfRangeError(KlogError):
    """A requested offset is before the log start or after the log end."""

    condition = "KLOG_OFFSET_OUT_OF_RANGE"


class DataLossError(KlogError):
    """Records that a read or the checkpoint of a stream needs do not exist any more."""

    condition = "KLOG_DATA_LOSS"


class ChangedDuringReadError(DataLossError):
    """Files of a read were replaced or deleted after the read was planned; a new read has others.

    A streaming query raises it only for a broker's directory, and goes on after a restart.
    """

    condition = "KLOG_CHANGED_DURING_READ"
    is_retryable = True


class OutOfOrderSequenceError(KlogError):
    """A producer's batch does not follow its last one: batches are missing or repeated.

    klog no longer raises it. The class stays because `klog.errors` keeps its names.
    """

    condition = "KLOG_OUT_OF_ORDER_SEQUENCE"


class ProducerFencedError(KlogError):
    """A newer run of this writer, or a newer producer epoch, has written: this run must stop."""

    condition = "KLOG_PRODUCER_FENCED"


class LostCommitError(KlogError):
    """A commit of a topic is missing, although a later commit exists.

    klog reads nothing after the missing commit, and commits nothing to the topic. `klog repair`
    shows how to repair the topic.
    """

    condition = "KLOG_LOST_COMMIT"


class ForkedCommitError(LostCommitError):
    """A commit was lost, and another commit, perhaps with other records, has its version."""

    condition = "KLOG_FORKED_COMMIT"


class CommitConflictError(KlogError):
    """A concurrent commit came first, and after it this commit is not valid.

    The commit is not in the log.
    """

    condition = "KLOG_COMMIT_CONFLICT"
    is_retryable = True


class AlreadyCommittedError(CommitConflictError):
    """An earlier try of this write has committed its segments; nothing was written twice."""

    condition = "KLOG_ALREADY_COMMITTED"
    is_retryable = False


class RestoreRefusedError(CommitConflictError):
    """A version of a topic cannot be restored, such as one whose files vacuum has deleted."""

    condition = "KLOG_RESTORE_REFUSED"
    is_retryable = False


class CommitStateUnknownError(KlogError):
    """The store did not confirm a commit: it may or may not be in the log.

    Do not delete its files. You can repeat a write with the same transactional id and version: klog
    then writes nothing if the first attempt succeeded.
    """

    condition = "KLOG_COMMIT_STATE_UNKNOWN"
    is_retryable = True


class StoreError(KlogError):
    """A store did not answer, or not as it should: a later call can succeed.

    klog has already repeated the request if that was safe.
    """

    condition = "KLOG_STORE"
    is_retryable = True


class StoreRefusedError(StoreError):
    """A store refused a request: access is denied, a disk is full. The message says what to do."""

    condition = "KLOG_STORE_REFUSED"
    is_retryable = False


class InvalidFileError(KlogError):
    """A file that cannot be of the kind that its name says. klog did not read it."""

    condition = "KLOG_INVALID_FILE"


class FileTooLargeError(InvalidFileError):
    """A file that is larger than any file of its kind. klog did not read it."""

    condition = "KLOG_FILE_TOO_LARGE"


class NotRegularFileError(InvalidFileError):
    """A directory, a FIFO, a socket or a device with the name of a file. klog did not read it."""

    condition = "KLOG_NOT_REGULAR_FILE"


class UndecodableError(KlogError):
    """A key or a value whose bytes are not in the format that the reader named."""

    condition = "KLOG_UNDECODABLE"


class SchemaError(KlogError):
    """A schema of keys or values that is invalid, missing or changed, or has no type in Arrow."""

    condition = "KLOG_SCHEMA"


class RegistryError(KlogError):
    """A schema registry did not answer, although klog has repeated the request."""

    condition = "KLOG_REGISTRY"
    is_retryable = True


class RegistryRefusedError(RegistryError):
    """A registry refused a request, or its answer is not that of a schema registry."""

    condition = "KLOG_REGISTRY_REFUSED"
    is_retryable = False


class SchemaNotFoundError(RegistryError):
    """A schema registry does not have a subject, a version or a schema id."""

    condition = "KLOG_SCHEMA_NOT_FOUND"
    is_retryable = False


class OptionError(KlogError):
    """An option, a path or a topic name is wrong."""

    condition = "KLOG_INVALID_OPTION"


class NoSubscriptionError(OptionError):
    """A read does not say which topics to read."""

    condition = "KLOG_NO_SUBSCRIPTION"
