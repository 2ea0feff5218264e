"""Put a commit at its number, and find out whether it landed when the store's answer is unknown.

The rule (docs/commit-protocol.md, Commit): the commit that creates a number is the one that counts.
When the answer is lost, or says that the file exists, the number is read back: the write id says
whose commit has it. If the number is free, the same bytes are put at the same number again. The
last expired version is read after each put: a number at or below it may have been another's commit
before, so only the state can tell. If the store answers none of `MAX_PUTS` puts, or a read fails
after a put, the outcome is unknown: `CommitStateUnknownError`, and no file of the commit is
deleted.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

from klog.connector.commit_log.commit import Commit
from klog.connector.commit_log.commit_json import decode_commit, encode_commit
from klog.connector.commit_log.commit_log_files import CommitLogFiles
from klog.connector.store.writable_store import PutResult
from klog.errors import CommitStateUnknownError, KlogError, UnsupportedFormatError

MAX_PUTS = 10
"""Puts of the same bytes at the same number while the store does not answer."""


class PutOutcome(Enum):
    """What became of a commit that was put at its number."""

    LANDED = "landed"
    TAKEN = "taken"
    """The number has another commit, so this one is not in the log."""
    INDETERMINATE = "indeterminate"
    """The commit of this number has expired, or may have expired between two puts: only the state
    can tell whose it was."""


def put_commit(log: CommitLogFiles, commit: Commit, wait: Callable[[int], None]) -> PutOutcome:
    """Put a commit at its number until it is known who has the number.

    Args:
        log: The log of the topic.
        commit: The commit, whose sidecar is on the store.
        wait: Called with the number of tries before each further one.

    Returns:
        The outcome. `INDETERMINATE` means that the caller has to look for the write id in the
        state.

    Raises:
        CommitStateUnknownError: The commit may have landed, and the store does not say so.
        UnsupportedFormatError: The number has a file that this klog cannot read.
    """
    path, data = log.paths.commit(commit.version), encode_commit(commit)
    # A commit that no reader would take ends the topic for everybody once it is there.
    decode_commit(data, log.paths.topic, commit.version)
    may_have_landed = False
    for tries in range(MAX_PUTS):
        try:
            put = log.store.put_if_absent(path, data)
            # A file that exists may be this commit too: some clients send a request twice.
            may_have_landed = True
            if put is not PutResult.CREATED:
                existing = log.read_without_sidecar(commit.version)
                if existing is None:
                    # At or below the last expired version it may have been anybody's commit.
                    if log.last_expired_version() >= commit.version:
                        return PutOutcome.INDETERMINATE
                    wait(tries + 1)
                    continue
                if existing.write_id != commit.write_id:
                    # After a lost answer this commit may have had the number before it expired.
                    is_first_answer = put is PutResult.EXISTS and tries == 0
                    return PutOutcome.TAKEN if is_first_answer else PutOutcome.INDETERMINATE
                if put is PutResult.UNKNOWN:
                    # The file is there, but a loss of power may undo it. Only the store's own
                    # answer that it exists says that it is durable.
                    wait(tries + 1)
                    continue
            # A number at or below the last expired version was another's before it was free.
            has_expired = log.last_expired_version() >= commit.version
            return PutOutcome.INDETERMINATE if has_expired else PutOutcome.LANDED
        except UnsupportedFormatError:
            # This commit can be read, so the file is another's: of a newer klog, or damaged.
            raise
        except (KlogError, OSError) as exc:
            if may_have_landed:
                raise commit_state_unknown_error(log, commit, str(exc)) from exc
            raise
    raise commit_state_unknown_error(log, commit, f"there were {MAX_PUTS} tries")


def commit_state_unknown_error(
    log: CommitLogFiles, commit: Commit, reason: str
) -> CommitStateUnknownError:
    """Return the error of a commit that may have landed.

    Args:
        log: The log of the topic.
        commit: The commit.
        reason: Why the outcome is unknown.
    """
    return CommitStateUnknownError(
        f"{log.paths.commit(commit.version)}: the store did not say whether this "
        f"{commit.operation} (write id {commit.write_id}) was committed: {reason}. Look for it "
        "with `klog history` before you try it again; delete nothing"
    )
