"""What must hold when all is quiet, whatever went wrong before.

The rule: the truth is the history, the first creation of each number, cleaned or not. From it each
check works out by itself what every offset holds, and compares: with what a fresh reader sees, with
what the readers of the time saw, with what writers were told, and with what lies on the store.
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
from tests.simulation.cast import ROOT, TOPIC, Batch, Cast, Place, Record, key_of
from tests.simulation.readers import tiling
from tests.simulation.scene import DAY_MS, GRACE_MS, STEP_MS
from tests.simulation.world import FoundError, World


def history(world: World) -> list[commits.Commit]:
    """Give every commit that counts: the first creation of each number, cleaned ones too."""
    first: dict[int, bytes] = {}
    for path, data in world.disk.created:
        version = parse_commit_version(path.rsplit("/", 1)[-1])
        if "/log/" in path and version is not None and version == len(first):
            first[version] = data
    return [_whole(world, commit_json.decode_commit(data, TOPIC, at)) for at, data in first.items()]


def _whole(world: World, commit: commits.Commit) -> commits.Commit:
    """Give a commit with what its sidecar said, which may have been cleaned since."""
    if commit.sidecar is None:
        return commit
    data = world.disk.sidecars[str(commit.sidecar)]
    return commit_sidecar.decode_sidecar(commit, commit.sidecar, data, TOPIC)


@dataclass
class Truth:
    """What a history says: the record at each place, and the batches in their order."""

    records: dict[Place, Record] = field(default_factory=dict)
    batches: list[tuple[str, Batch]] = field(default_factory=list)
    """With the id of the topic: one that is made anew knows no batches of the one before."""


def truth(cast: Cast, past: list[commits.Commit]) -> Truth:
    """Work out what every offset holds; klog's own folding is not asked."""
    found, topic, ends = Truth(), Topic("", 0), Counter[int]()
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
                raise FoundError(f"commit {commit.version}: a change of config was lost")
        for entry in actions.add:
            file, partition = entry["file"], entry["partition"]
            _check_added(cast, commit, file, topic, removed)
            if commit.operation == "append":
                for record in cast.records[file]:
                    assert record is not None
                    found.records[topic.topic_id, partition, ends[partition]] = record
                    ends[partition] += 1
        removed.update(actions.remove)
        if commit.operation == "append":
            found.batches += {
                (topic.topic_id, cast.batches[entry["file"]]) for entry in actions.add
            }
    return found


def _check_added(
    cast: Cast, commit: commits.Commit, file: str, topic: Topic, removed: set[str]
) -> None:
    if file in removed:
        raise FoundError(f"{file} was removed, and is back")
    topic_id, partitions = cast.written_for[file]
    if topic_id != topic.topic_id:
        raise FoundError(f"{file} was written for topic {topic_id}, and is in {topic.topic_id}")
    if commit.operation == "append" and partitions != topic.partitions:
        raise FoundError(f"{file} was written for {partitions} of {topic.partitions} partitions")


def check(cast: Cast, log: CommitLog) -> None:
    """Compare what a fresh reader sees with the history and with what everybody knows."""
    state, past = log.load(), history(cast.world)
    whole, true = replay(TopicState(), past), truth(cast, past)
    _same(state, whole)
    for kept in cast.kept.values():
        _same(log.load(kept), whole)
    _check_batches(cast, true)
    _check_runs(past)
    _check_records(cast, log, state, true)


def _check_batches(cast: Cast, true: Truth) -> None:
    written = {owner for _, owner in true.batches}
    if lost := cast.acknowledged - written:
        raise FoundError(f"acknowledged and lost: {sorted(lost)}")
    if double := [one for one, count in Counter(true.batches).items() if count > 1]:
        raise FoundError(f"written twice: {sorted(double)}")
    order: dict[tuple[str, str], int] = {}
    for topic_id, (name, query, batch) in true.batches:
        if batch <= order.get((topic_id, name), -1):
            before = order[topic_id, name]
            raise FoundError(f"batch {batch} of {name} ({query}) came behind batch {before}")
        order[topic_id, name] = batch
    if not cast.world.scene.is_disk:
        done = {(query, batch) for query, behind in cast.done.items() for batch in range(behind)}
        if missing := done - {(query, batch) for _, query, batch in written}:
            raise FoundError(f"done by the checkpoint, and never written: {sorted(missing)}")


def _check_runs(past: list[commits.Commit]) -> None:
    """A run behind which another has written writes no more."""
    runs: dict[str, list[str]] = {}
    for commit in past:
        if commit.actions.create_topic is not None:
            runs = {}
        if (progress := commit.actions.writer_transaction) is not None:
            earlier = runs.setdefault(progress.name, [""])
            if progress.run_id in earlier[:-1]:
                raise FoundError(f"run {progress.run_id} wrote behind run {earlier[-1]}")
            if progress.run_id != earlier[-1]:
                earlier.append(progress.run_id)


def _check_records(cast: Cast, log: CommitLog, state: TopicState, true: Truth) -> None:
    for partition in range(state.partitions):
        for row in tiling(cast, state, partition):
            if cast.world.disk.get(log.paths.data(row["file"])) is None:
                raise FoundError(f"live file {row['file']} is gone")
            for offset, record in enumerate(cast.read(log, row), row["base_offset"]):
                place = (state.topic_id, partition, offset)
                if record is None:
                    _check_compacted(state, true, partition, offset)
                    continue
                if true.records.get(place) != record:
                    raise FoundError(f"{place} is {record}, not {true.records.get(place)}")
    for place, record in cast.seen.items():
        if true.records.get(place) != record:
            raise FoundError(f"{place}: {record} was read, and never committed")


def _check_compacted(state: TopicState, true: Truth, partition: int, offset: int) -> None:
    """A record that a compaction took out has one of its key behind it, which was clean then."""
    record = true.records[state.topic_id, partition, offset]
    for later in range(offset + 1, state.cleaned_to.get(partition, 0)):
        if key_of(true.records[state.topic_id, partition, later]) == key_of(record):
            return
    raise FoundError(f"{record} at {offset} of partition {partition} was the last of its key")


def check_cleaned(cast: Cast, log: CommitLog) -> None:
    """Let every grace end, then clean: nothing may be left but what the topic needs."""
    cast.world.now += (2 * DAY_MS + 3 * GRACE_MS) // STEP_MS
    quiet = log.load().version
    _vacuum(cast, log, 2)
    _vacuum(cast, log, _latest_lost(cast, log, quiet) - quiet)
    checkpoint_writer.write_checkpoint(log, log.load())
    boundary = commit_expiration.expire_log(log, 0)
    state = log.load()
    live = set(state.segments["file"].to_pylist())
    files = {path.removeprefix(f"{ROOT}/") for path in cast.world.disk.paths()}
    data = _data(cast)
    if data != live:
        raise FoundError(f"orphans {sorted(data - live)}, missing {sorted(live - data)}")
    kept = {path for path in files if "/log/" in path or "/pins/" in path}
    need = {
        f"{log.paths.commit(version)}"[len(ROOT) + 1 :]
        for version in range(boundary + 1, state.version + 1)
    }
    kept |= {
        path
        for path in files
        if (beside := parse_sidecar_name(path.rpartition("/")[2])) and beside.version <= boundary
    }
    if kept != need:
        raise FoundError(f"never cleaned: {sorted(kept - need)}, missing {sorted(need - kept)}")


def _vacuum(cast: Cast, log: CommitLog, times: int) -> None:
    for _ in range(times):
        # What a loss of power undid may look like lost commits, and stays until it is told.
        topic_vacuum.vacuum(log, cast.attempt("vacuum"), GRACE_MS, discard_lost=True)
        cast.world.now += 2 * GRACE_MS // STEP_MS


def _latest_lost(cast: Cast, log: CommitLog, quiet: int) -> int:
    """Give the latest birth of files that two vacuums leave, `quiet` where they leave none.

    What began at a commit that a loss of power undid may be born above the version at which all
    became quiet: then only vacuums' own commits bring the log past that number, one each.
    """
    undone = {
        parse_commit_version(path.rpartition("/")[2])
        for path in cast.world.disk.undone
        if "/log/" in path
    }
    latest = quiet
    for file in sorted(_data(cast) - set(log.load().segments["file"].to_pylist())):
        path = parse_segment_path(file)
        assert path is not None
        assert path.base_version is not None
        if path.base_version <= quiet or path.base_version not in undone:
            raise FoundError(f"two vacuums leave {file}")
        latest = max(latest, path.base_version)
    return latest


def _data(cast: Cast) -> set[str]:
    files = (path.removeprefix(f"{ROOT}/") for path in cast.world.disk.paths())
    return {path for path in files if parse_segment_path(path) is not None}


def _same(state: TopicState, whole: TopicState) -> None:
    for name in (
        "version",
        "topic_id",
        "log_start",
        "log_end",
        "writer_transactions",
        "vacuum_version",
        "config",
    ):
        if getattr(state, name) != getattr(whole, name):
            raise FoundError(
                f"{name} is {getattr(state, name)}, by the history {getattr(whole, name)}"
            )
    if state.live != whole.live:
        raise FoundError("the live segments are not those of the history")
