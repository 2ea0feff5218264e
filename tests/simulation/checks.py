"""Invariants that hold at the end of a run, whatever went wrong before.

The rule: the history is the first file created for each version, expired or not. From it the checks
compute the record at every offset, and compare it with a fresh load, with what earlier readers saw,
with the writers' acknowledgements, and with the files on the store.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from klog.connector.commit_log import (
    checkpoint_writer,
    commit_expiration,
    commit_json,
    commit_sidecar,
    topic_vacuum,
)
from klog.connector.commit_log import commit as commits
from klog.connector.commit_log.commit import Topic
from klog.connector.commit_log.commit_log import CommitLog
from klog.connector.commit_log.commit_log_paths import parse_commit_version, parse_sidecar_name
from klog.connector.commit_log.segment_path import parse_segment_path
from klog.connector.commit_log.state_replay import replay
from klog.connector.commit_log.topic_state import TopicState
from tests.simulation.admins import COUNTER
from tests.simulation.cast import ROOT, TOPIC, Batch, Cast, Position, Record, key_of
from tests.simulation.readers import rows_in_order
from tests.simulation.scene import DAY_MS, GRACE_MS, STEP_MS
from tests.simulation.world import ViolationError, World


def history(world: World) -> list[commits.Commit]:
    """Return all commits: the first file created for each version, expired ones too."""
    first: dict[int, bytes] = {}
    for path, data in world.disk.created:
        version = parse_commit_version(path.rsplit("/", 1)[-1])
        if "/log/" in path and version is not None and version == len(first):
            first[version] = data
    return [
        _with_sidecar(world, commit_json.decode_commit(data, TOPIC, at))
        for at, data in first.items()
    ]


def _with_sidecar(world: World, commit: commits.Commit) -> commits.Commit:
    """Return a commit with the actions of its sidecar, which may have expired since."""
    if commit.sidecar is None:
        return commit
    data = world.disk.sidecars[str(commit.sidecar)]
    return commit_sidecar.decode_sidecar(commit, commit.sidecar, data, TOPIC)


@dataclass
class ExpectedTopic:
    """A topic by its history: the record at each position, and the batches in order."""

    records: dict[Position, Record] = field(default_factory=dict)
    batches: list[tuple[str, Batch]] = field(default_factory=list)
    """With the id of the topic: a re-created topic does not know its predecessor's batches."""


def expected_topic(cast: Cast, past: list[commits.Commit]) -> ExpectedTopic:
    """Compute the record at every offset, without klog's own replay."""
    expected, topic, ends = ExpectedTopic(), Topic("", 0), Counter[int]()
    config, removed = 0, set[str]()
    for commit in past:
        actions = commit.actions
        if actions.create_topic is not None:
            topic, ends, config = actions.create_topic, Counter(), 0
        if actions.partitions is not None:
            topic = Topic(topic.topic_id, actions.partitions)
        if COUNTER in actions.config:
            config += 1
            if actions.config[COUNTER] != str(config):
                raise ViolationError(f"commit {commit.version}: a change of config was lost")
        for entry in actions.add:
            file, partition = entry["file"], entry["partition"]
            _check_added(cast, commit, file, topic, removed)
            if commit.operation == "append":
                for record in cast.records[file]:
                    assert record is not None
                    expected.records[topic.topic_id, partition, ends[partition]] = record
                    ends[partition] += 1
        removed.update(actions.remove)
        if commit.operation == "append":
            expected.batches += {
                (topic.topic_id, cast.batches[entry["file"]]) for entry in actions.add
            }
    return expected


def _check_added(
    cast: Cast, commit: commits.Commit, file: str, topic: Topic, removed: set[str]
) -> None:
    if file in removed:
        raise ViolationError(f"{file} was removed and added again")
    topic_id, partitions = cast.written_for[file]
    if topic_id != topic.topic_id:
        raise ViolationError(f"{file} was written for topic {topic_id}, and is in {topic.topic_id}")
    if commit.operation == "append" and partitions != topic.partitions:
        raise ViolationError(
            f"{file} was written for {partitions} of {topic.partitions} partitions"
        )


def check(cast: Cast, log: CommitLog) -> None:
    """Compare a fresh load with the history and with what actors saw."""
    state, past = log.load(), history(cast.world)
    replayed, expected = replay(TopicState(), past), expected_topic(cast, past)
    _same(state, replayed)
    for kept in cast.kept.values():
        _same(log.load(kept), replayed)
    _check_batches(cast, expected)
    _check_runs(past)
    _check_records(cast, log, state, expected)


def _check_batches(cast: Cast, expected: ExpectedTopic) -> None:
    written = {owner for _, owner in expected.batches}
    if lost := cast.acknowledged - written:
        raise ViolationError(f"acknowledged and lost: {sorted(lost)}")
    if double := [batch for batch, count in Counter(expected.batches).items() if count > 1]:
        raise ViolationError(f"written twice: {sorted(double)}")
    order: dict[tuple[str, str], int] = {}
    for topic_id, (name, query, batch) in expected.batches:
        if batch <= order.get((topic_id, name), -1):
            before = order[topic_id, name]
            raise ViolationError(f"batch {batch} of {name} ({query}) came after batch {before}")
        order[topic_id, name] = batch
    if not cast.world.scene.is_disk:
        done = {
            (query, batch) for query, next_batch in cast.done.items() for batch in range(next_batch)
        }
        if missing := done - {(query, batch) for _, query, batch in written}:
            raise ViolationError(f"done by the checkpoint, and never written: {sorted(missing)}")


def _check_runs(past: list[commits.Commit]) -> None:
    """Check that a run writes no more after a later run has written."""
    runs: dict[str, list[str]] = {}
    for commit in past:
        if commit.actions.create_topic is not None:
            runs = {}
        if (writer_transaction := commit.actions.writer_transaction) is not None:
            earlier = runs.setdefault(writer_transaction.name, [""])
            if writer_transaction.run_id in earlier[:-1]:
                raise ViolationError(
                    f"run {writer_transaction.run_id} wrote after run {earlier[-1]}"
                )
            if writer_transaction.run_id != earlier[-1]:
                earlier.append(writer_transaction.run_id)


def _check_records(cast: Cast, log: CommitLog, state: TopicState, expected: ExpectedTopic) -> None:
    for partition in range(state.partitions):
        for row in rows_in_order(cast, state, partition):
            if cast.world.disk.get(log.paths.data(row["file"])) is None:
                raise ViolationError(f"live file {row['file']} is gone")
            for offset, record in enumerate(cast.read(log, row), row["base_offset"]):
                position = (state.topic_id, partition, offset)
                if record is None:
                    _check_compacted(state, expected, partition, offset)
                    continue
                if expected.records.get(position) != record:
                    raise ViolationError(
                        f"{position} is {record}, not {expected.records.get(position)}"
                    )
    for position, record in cast.seen.items():
        if expected.records.get(position) != record:
            raise ViolationError(f"{position}: {record} was read, and never committed")


def _check_compacted(
    state: TopicState, expected: ExpectedTopic, partition: int, offset: int
) -> None:
    """Check that a record removed by a compaction has a later cleaned record with its key."""
    record = expected.records[state.topic_id, partition, offset]
    for later in range(offset + 1, state.cleaned_to.get(partition, 0)):
        if key_of(expected.records[state.topic_id, partition, later]) == key_of(record):
            return
    raise ViolationError(f"{record} at {offset} of partition {partition} was the last of its key")


def check_deletions(cast: Cast, log: CommitLog) -> None:
    """Let every grace end, then vacuum and expire: only files that the topic needs remain."""
    cast.world.now += (2 * DAY_MS + 3 * GRACE_MS) // STEP_MS
    quiet_version = log.load().version
    _vacuum(cast, log, 2)
    _vacuum(cast, log, _latest_base_version(cast, log, quiet_version) - quiet_version)
    checkpoint_writer.write_checkpoint(log, log.load())
    last_expired = commit_expiration.expire_log(log, 0)
    state = log.load()
    live = set(state.segments["file"].to_pylist())
    files = {path.removeprefix(f"{ROOT}/") for path in cast.world.disk.paths()}
    data = _data(cast)
    if data != live:
        raise ViolationError(f"orphans {sorted(data - live)}, missing {sorted(live - data)}")
    kept = {path for path in files if "/log/" in path or "/pins/" in path}
    needed = {
        f"{log.paths.commit(version)}"[len(ROOT) + 1 :]
        for version in range(last_expired + 1, state.version + 1)
    }
    kept |= {
        path
        for path in files
        if (sidecar := parse_sidecar_name(path.rpartition("/")[2]))
        and sidecar.version <= last_expired
    }
    if kept != needed:
        raise ViolationError(
            f"never deleted: {sorted(kept - needed)}, missing {sorted(needed - kept)}"
        )


def _vacuum(cast: Cast, log: CommitLog, times: int) -> None:
    for _ in range(times):
        # Commits that a power loss undid look like lost commits, and stay until they are discarded.
        topic_vacuum.vacuum(log, cast.attempt("vacuum"), GRACE_MS, discard_lost=True)
        cast.world.now += 2 * GRACE_MS // STEP_MS


def _latest_base_version(cast: Cast, log: CommitLog, quiet_version: int) -> int:
    """Return the highest base version of files that two vacuums leave, else `quiet_version`.

    A write that was planned on a commit undone by a power loss can have a base version after the
    final version of the run. Then only the vacuums' own commits, one each, take the log past it.
    """
    undone = {
        parse_commit_version(path.rpartition("/")[2])
        for path in cast.world.disk.undone
        if "/log/" in path
    }
    latest = quiet_version
    for file in sorted(_data(cast) - set(log.load().segments["file"].to_pylist())):
        path = parse_segment_path(file)
        assert path is not None
        assert path.base_version is not None
        if path.base_version <= quiet_version or path.base_version not in undone:
            raise ViolationError(f"two vacuums leave {file}")
        latest = max(latest, path.base_version)
    return latest


def _data(cast: Cast) -> set[str]:
    files = (path.removeprefix(f"{ROOT}/") for path in cast.world.disk.paths())
    return {path for path in files if parse_segment_path(path) is not None}


def _same(state: TopicState, replayed: TopicState) -> None:
    for name in (
        "version",
        "topic_id",
        "log_start",
        "log_end",
        "writer_transactions",
        "vacuum_version",
        "config",
    ):
        if getattr(state, name) != getattr(replayed, name):
            raise ViolationError(
                f"{name} is {getattr(state, name)}, by the history {getattr(replayed, name)}"
            )
    if state.live != replayed.live:
        raise ViolationError("the live segments are not those of the history")
