"""What the tasks of one write staged, committed: each topic in one commit.

The rule: a commit makes all that the tasks staged for a topic visible in one step, in the order of
partition, task and roll. It is exactly once for a writer with a name: what is in the log already is
found there, by its name and number, and not written again. Of several topics each commits on its
own, in the order of their names, so a crash may leave some done; the same write again completes the
others. Dead letters come first: where the topic is done, so are they.

Nothing is ever taken back: a commit whose answer was lost may have landed, and what it names must
stay. What no commit names is garbage, which vacuum removes.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Mapping, Sequence

from klog.connector.log import operations
from klog.connector.log.author import random_uuid, this_engine
from klog.connector.log.backwards import read_backwards
from klog.connector.log.checkpointing import CHECKPOINTER
from klog.connector.log.commit import Progress, Topic
from klog.connector.log.operations import Staged, Writer
from klog.connector.log.topic_log import Attempt
from klog.connector.log.topics import refuse_collision
from klog.connector.sink.known import KNOWN, KnownTopic
from klog.connector.sink.write_options import WriteOptions
from klog.connector.sink.writing import TaskWork
from klog.errors import CommitConflictError, KlogError, OptionError, restated

MOST_FILES = 4
"""A write that leaves more files in a partition is told how to leave fewer."""
CHECKPOINT_SECONDS = 5.0
"""A commit waits so long for a checkpoint that it is due: its process may end when it returns."""


def commit(options: WriteOptions, work: Sequence[TaskWork]) -> None:
    """Commit what the tasks of one write staged.

    Raises `CommitConflictError`, `ProducerFencedError` and `CommitStateUnknownError`, as
    `TopicLog.commit` does, for the first topic that did not land; the message names those that did.
    """
    if not work:
        return
    writer, write_id = work[0].writer, work[0].write_id
    by_topic = _by_topic(options, work)
    _refuse_collisions(by_topic)
    landed: list[str] = []
    for topic in sorted(by_topic, key=lambda topic: (topic != options.dead_letter_topic, topic)):
        try:
            if options.topic == topic and any(one.is_done for one in work):
                assert writer is not None
                _check_done(options, topic, writer)
            elif writer is not None or any(part.segments for part in by_topic[topic]):
                _commit_topic(options, topic, by_topic[topic], writer, write_id)
        except (KlogError, OSError) as exc:
            text = f"topic {topic} of {options.path}: {exc}{_rest(landed, writer)}"
            raise restated(exc, text) from exc
        landed.append(topic)
    # Behind all commits: where warnings are errors, what has landed has landed.
    for topic, parts in by_topic.items():
        _warn_of_files(topic, parts)


def _by_topic(options: WriteOptions, work: Sequence[TaskWork]) -> dict[str, list[Staged]]:
    """Give what was staged for each topic, in the order of tasks."""
    whose = (work[0].writer, work[0].write_id)
    if any((one.writer, one.write_id) != whose for one in work):
        writes = ", ".join(sorted({one.write_id for one in work}))
        raise KlogError(
            f"tasks of several writes were to be committed as one: {writes}. Write it again"
        )
    found: dict[str, list[Staged]] = {}
    if options.topic is not None:
        found[options.topic] = []  # It gets the writer's number, be there rows or not.
    for one in sorted(work, key=lambda one: one.task):
        for topic, staged in one.staged.items():
            found.setdefault(topic, []).append(staged)
    return found


def _refuse_collisions(by_topic: Mapping[str, Sequence[Staged]]) -> None:
    """Refuse new topics of one write that only '.' and '_' tell apart, before the first is made."""
    new = sorted(
        topic for topic, parts in by_topic.items() if any(not part.topic_id for part in parts)
    )
    seen: dict[str, str] = {}
    for topic in new:
        other = seen.setdefault(topic.replace(".", "_"), topic)
        if other != topic:
            raise OptionError(
                f"topics {other} and {topic} collide: a broker takes '.' and '_' for the same in "
                "its metrics, and could not have both. Give one of them another name"
            )


def _commit_topic(
    options: WriteOptions,
    topic: str,
    parts: Sequence[Staged],
    writer: Writer | None,
    write_id: str,
) -> None:
    if parts:
        staged = _joined(parts)
        seen = (staged.topic_id, max(part.birth for part in parts))
        known = KNOWN.last(options, topic, seen)
    else:
        known = KNOWN.load(options, topic)
        staged = Staged(known.state.topic_id, max(known.state.version, 0), [])
    if topic == options.dead_letter_topic and writer is not None:
        _check_dead_letters(known, staged, writer)
    create, log = None, known.log
    if not staged.topic_id:
        if not options.create_topic:
            raise OptionError("there is no such topic, and createTopic=false")
        partitions = staged.partitions or options.num_partitions or known.root.num_partitions
        create = Topic(random_uuid(), partitions)
        refuse_collision(known.root, topic)
        log = known.root.new_log(topic)
    if writer is not None and topic == options.topic and options.version is None:
        _warn_of_missing_batches(topic, known.state.progress.get(writer.name), writer)
    build = operations.append(staged, writer, create)
    attempt = Attempt(write_id, "append", this_engine("Spark"))
    landed = log.commit(known.state, build, attempt)
    after = CHECKPOINTER.offer(log, landed)
    if after.checkpoint != landed.checkpoint:
        CHECKPOINTER.join(CHECKPOINT_SECONDS)
    KNOWN.keep(options, KnownTopic(known.root, log, after))


def _check_done(options: WriteOptions, topic: str, writer: Writer) -> None:
    """Make sure that what tasks found to be there already is: nothing was staged."""
    known = KNOWN.load(options, topic)
    if not operations.is_done(known.state, writer):
        raise CommitConflictError("the topic was made anew meanwhile; write it again")


def _check_dead_letters(known: KnownTopic, staged: Staged, writer: Writer) -> None:
    """Refuse a batch that comes again with other dead letters than are there already.

    Rows are judged by clocks and configs, so a replay may judge one otherwise: it would be in both
    topics, or in none. Raises `LostCommitError` where a commit that says so is lost.
    """
    found = known.state.progress.get(writer.name)
    if found is None or found.batch_id != writer.batch_id or found.query_id != writer.query_id:
        return
    # Where it was cleaned, it was so long ago that its other topics are there too.
    for commit in read_backwards(known.log, known.state):
        if _is_of(commit.actions.progress, writer):
            before = sum(entry["record_count"] for entry in commit.actions.add)
            now = sum(segment["record_count"] for segment in staged.segments)
            if before != now:
                raise CommitConflictError(
                    f"batch {writer.batch_id} of {writer.name!r} has {before} dead letters there "
                    f"already, and {now} now: times or configs made the difference. Set the "
                    "configs so that its rows are judged as before, then write it again"
                )
            return


def _is_of(progress: Progress | None, writer: Writer) -> bool:
    return progress is not None and (progress.name, progress.batch_id) == (
        writer.name,
        writer.batch_id,
    )


def _warn_of_missing_batches(topic: str, last: Progress | None, writer: Writer) -> None:
    """Warn where a stream's batches between the last one in the topic and this one are missing.

    Each micro-batch that has a task commits its number, so the commits of these may be lost. Spark
    may also have run one without a task, or they were written elsewhere.
    """
    if last is None or last.query_id != writer.query_id or writer.batch_id <= last.batch_id + 1:
        return
    warnings.warn(
        f"{topic}: query {writer.query_id} comes with batch {writer.batch_id}, and its last batch "
        f"there is {last.batch_id}. If those between had rows, the topic's last commits are lost: "
        f"look with `klog verify --topic {topic}`, and restore them from a copy",
        stacklevel=2,
    )


def _joined(parts: Sequence[Staged]) -> Staged:
    """Put what tasks staged together, by partition and within one by task."""
    first = parts[0]
    if any((p.topic_id, p.partitions) != (first.topic_id, first.partitions) for p in parts):
        raise CommitConflictError(
            "the topic was made, altered or deleted while this write ran, so that its tasks wrote "
            "for different ones; write it again"
        )
    segments = [segment for part in parts for segment in part.segments]
    segments.sort(key=lambda segment: int(segment["partition"]))
    birth = min(part.birth for part in parts)
    return Staged(first.topic_id, birth, segments, first.partitions)


def _warn_of_files(topic: str, parts: Sequence[Staged]) -> None:
    files = Counter(segment["partition"] for part in parts for segment in part.segments)
    most = max(files.values(), default=0)
    if most > MOST_FILES:
        warnings.warn(
            f"{topic}: this write left {most} files in one partition, as so many tasks had rows "
            "for it, or its segments are small. klog.repartition(df, root, topic) before the write "
            "leaves one a partition",
            stacklevel=2,
        )


def _rest(landed: Sequence[str], writer: Writer | None) -> str:
    """Say which other topics were written before one failed."""
    if not landed:
        return ""
    again = (
        "the same write again completes it"
        if writer is not None
        else "give a write to several topics a transactionalId, so that it can be completed"
    )
    return f". Written before: {', '.join(landed)}; {again}"
