"""Invariants that hold at the end of a run, whatever went wrong before.

The rule: the history is the first file created for each version, expired or not. From it the checks
compute the record at every offset, and compare it with a fresh load, with what earlier readers saw,
with the writers' acknowledgements, and with the files on the store.
"""

from __future__ import annotations

from collections import Counter

from klog.connector.commit_log import (
    checkpoint_writer,
    commit_expiration,
    commit_json,
    commit_sidecar,
    topic_vacuum,
)
from klog.connector.commit_log import commit as commits
from klog.connector.commit_log.commit_log import CommitLog
from klog.connector.commit_log.commit_log_paths import parse_commit_version, parse_sidecar_name
from klog.connector.commit_log.segment_path import parse_segment_path
from klog.connector.commit_log.state_replay import replay
from klog.connector.commit_log.topic_state import TopicState
from tests.simulation.cast import ROOT, TOPIC, Cast, Record, key_of
from tests.simulation.expected_topic import ExpectedTopic, expected_topic
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


def check(cast: Cast, log: CommitLog) -> None:
    """Compare a fresh load with the history and with what actors saw."""
    state, past = log.load(), history(cast.world)
    replayed, expected = replay(TopicState(), past), expected_topic(cast, past)
    check_same(state, replayed)
    live_files, removed_files = (
        set(rows["file"].to_pylist()) for rows in (state.segments, state.removed)
    )
    if both := live_files & removed_files:
        raise ViolationError(f"live, and removed too: {sorted(both)}")
    for kept in cast.kept.values():
        check_same(log.load(kept), replayed)
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
        if state.log_start[partition] != expected.shape.starts.get(partition, 0):
            raise ViolationError(f"partition {partition} begins at {state.log_start[partition]}")
        covered = set[int]()
        for row in rows_in_order(cast, state, partition):
            if cast.world.disk.get(log.paths.data(row["file"])) is None:
                raise ViolationError(f"live file {row['file']} is gone")
            covered.update(range(row["base_offset"], row["next_offset"]))
            for offset, record in enumerate(cast.read(log, row), row["base_offset"]):
                _check_record(state, expected, partition, offset, record)
        if missing := expected.shape.alive(partition) - covered:
            raise ViolationError(f"partition {partition} has no segment of {sorted(missing)}")
    for position, record in cast.seen.items():
        if expected.records.get(position) != record:
            raise ViolationError(f"{position}: {record} was read, and never committed")


def _check_record(
    state: TopicState, expected: ExpectedTopic, partition: int, offset: int, record: Record | None
) -> None:
    position = (state.topic_id, partition, offset)
    if record is None:
        _check_compacted(state, expected, partition, offset)
    elif expected.records.get(position) != record:
        raise ViolationError(f"{position} is {record}, not {expected.records.get(position)}")
    elif offset >= state.log_start[partition] and offset not in expected.shape.alive(partition):
        raise ViolationError(f"{position} is {record}, and a restore took it back")


def _check_compacted(
    state: TopicState, expected: ExpectedTopic, partition: int, offset: int
) -> None:
    """Check that a record removed by a compaction has a later cleaned record with its key."""
    alive = expected.shape.alive(partition)
    if offset not in alive:
        return  # In a hole, which a merge may have swallowed.
    record = expected.records[state.topic_id, partition, offset]
    for later in sorted(alive):
        if offset < later < state.cleaned_to.get(partition, 0) and key_of(
            expected.records[state.topic_id, partition, later]
        ) == key_of(record):
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


def check_same(state: TopicState, replayed: TopicState) -> None:
    """Compare a state with what the history leads to."""
    for name in (
        "version",
        "topic_id",
        "log_start",
        "log_end",
        "writer_transactions",
        "vacuum_version",
        "config",
        "cleaned_to",
        "holes",
        "restores",
    ):
        if getattr(state, name) != getattr(replayed, name):
            raise ViolationError(
                f"{name} is {getattr(state, name)}, by the history {getattr(replayed, name)}"
            )
    if state.live != replayed.live:
        raise ViolationError("the live segments are not those of the history")
