"""Append rows to a topic without Spark: one task, one commit.

The rule: exactly once for a writer that names itself. Its batch is looked for in the state before
anything is staged, and again in every state that the commit is tried on. A commit that lost its
number is put on top of the winner's by `TopicLog.commit`; nothing else is tried again here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from klog.connector.log import operations
from klog.connector.log.commit import Actions
from klog.connector.log.operations import Writer
from klog.connector.log.state import State
from klog.connector.log.topic_log import Attempt, TopicLog
from klog.connector.sink.identity import attempt_id
from klog.connector.sink.plan import plan_write
from klog.connector.sink.segments import Task
from klog.connector.sink.stage import Given, stage
from klog.errors import OptionError
from klog.logformat.names import MAX_OFFSET

OPERATION = "append"
MAX_ID_BYTES = (1 << 15) - 1
"""Of a transactional id, as UTF-8: what Kafka's protocol can say."""
_NO_QUERY = ""
"""The query of batch writes: they have none, and none of a stream's is theirs."""


@dataclass(frozen=True, slots=True)
class Appended:
    """What became of an append.

    `version` is that of its commit; where nothing was committed, as the batch was there already or
    there were no rows, that of the state that says so. `offsets` are (first, next) by partition.
    """

    state: State
    version: int
    offsets: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    is_new: bool = True


def append(
    log: TopicLog,
    state: State,
    rows: Given,
    attempt: Attempt,
    options: Mapping[str, str] | None = None,
    transactional_id: str | None = None,
    transaction_version: int | None = None,
) -> Appended:
    """Write rows to the topic whose log this is, and commit them; a column `topic` is ignored.

    `attempt` names this write, by an id that no other has. With a transactional id a version at or
    below the last one committed writes nothing. Raises `OptionError` for options and columns, and
    before anything is staged for an id of more than `MAX_ID_BYTES` or no version that counts;
    `KlogError` that names the row for one that cannot be written, and what `TopicLog.commit` does.
    """
    writer = _writer(attempt.write_id, transactional_id, transaction_version)
    name, number = (attempt.write_id, 0) if writer is None else (writer.name, writer.batch_id)
    plan = plan_write(log.paths.topic, log.paths.root, state, options or {}, name, number)
    if writer is not None and operations.is_done(state, writer):
        return Appended(state, state.version, is_new=False)
    task = Task(0, attempt_id(attempt.write_id, 0), log.clock())
    staged = stage(plan, task, rows, log.store)
    if not staged.segments and writer is None:
        return Appended(state, state.version, is_new=False)
    build = operations.append(staged, writer)
    made: list[Actions | None] = []

    def last_made(on_top_of: State) -> Actions | None:
        made.append(build(on_top_of))
        return made[-1]

    after = log.commit(state, last_made, attempt)
    if made[-1] is None:
        return Appended(after, after.version, is_new=False)
    offsets: dict[int, tuple[int, int]] = {}
    for entry in made[-1].add:
        first, _ = offsets.get(entry["partition"], (entry["base_offset"], 0))
        offsets[entry["partition"]] = first, entry["next_offset"]
    return Appended(after, after.writes[attempt.write_id], offsets)


def _writer(write_id: str, name: str | None, version: int | None) -> Writer | None:
    if name is None and version is None:
        return None
    if name is None or version is None:
        raise OptionError(
            "transactional id and transaction version: give both, or neither: the version is by "
            "what a write that is tried again is known"
        )
    check_id(name)
    if not isinstance(version, int) or isinstance(version, bool):
        raise OptionError(f"transaction version is {version!r}; give a whole number")
    if not 0 <= version <= MAX_OFFSET:
        raise OptionError(f"transaction version is {version}; it counts from 0 to {MAX_OFFSET}")
    return Writer(name, version, _NO_QUERY, write_id)


def check_id(name: str) -> None:
    """Raise `OptionError` for a transactional id that no commit could say."""
    if not isinstance(name, str):
        raise OptionError(f"transactional id is {name!r}; give a text")
    if not name:
        raise OptionError("transactional id is empty; give the writer a name that it keeps")
    try:
        size_bytes = len(name.encode())
    except UnicodeEncodeError as exc:
        raise OptionError(
            f"transactional id is {name[:100]!r}, which has half of a surrogate pair and is no "
            "valid UTF-8; give another"
        ) from exc
    if size_bytes > MAX_ID_BYTES:
        raise OptionError(
            f"transactional id has {size_bytes} bytes of UTF-8, at most {MAX_ID_BYTES} are taken; "
            "give a shorter one"
        )
