"""Replay commits on top of a state.

The rule: replay asserts what commits promise: numbers without gaps, times that rise, appends that
begin at the log end, removals of live segments, and the log ends that the commit itself says. A
commit that breaks one is a `KlogError`: a program other than klog changed the log.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import TypeVar

import pyarrow as pa

from klog.connector.commit_log import segment_entries, topic_state
from klog.connector.commit_log.commit import Actions, Commit, Hole, Restore, UndeletedTopic
from klog.connector.commit_log.live_segments import ROW_SCHEMA, VERSION_COLUMN, LiveSegments
from klog.connector.commit_log.past_restores import PastRestore, with_restore
from klog.connector.commit_log.segment_path import parse_segment_path
from klog.connector.commit_log.topic_state import REMOVED_SCHEMA, TopicState, last_write_id
from klog.errors import KlogError
from klog.logformat.arrow_values import numbers, texts
from klog.logformat.topic_partition import MAX_PARTITIONS

_MAX_CHUNKS = 64


def replay(state: TopicState, commits: Iterable[Commit]) -> TopicState:
    """Return the state after the commits that follow another one.

    Args:
        state: The state to start at.
        commits: The commits, in order.

    Raises:
        KlogError: A commit does not follow from those before it.
    """
    commits = list(commits)
    replayer = StateReplayer(state, commits)
    for commit in commits:
        try:
            replayer.apply(commit)
        except ValueError as exc:
            raise KlogError(
                f"commit {commit.version} ({commit.operation}, {commit.engine}) does not follow "
                f"from those before it: {exc}"
            ) from exc
    return replayer.state()


class StateReplayer:
    """A state under change: tables are built once, however many commits are replayed.

    Of the live files, only those that a commit removes or adds are known by name.
    """

    def __init__(self, state: TopicState, commits: Sequence[Commit]) -> None:
        """Start at a state.

        Args:
            state: The state before the first commit.
            commits: All commits that `apply` will get.
        """
        self._checkpoint, self._tail_bytes = state.checkpoint, state.tail_bytes
        self._listed_ms, self._loaded_ms = state.listed_ms, state.loaded_ms
        self._own_commits = state.own_commits
        self._version, self._timestamp_ms = state.version, state.timestamp_ms
        self._topic_id, self._config = state.topic_id, _copy(state.config)
        self._log_start, self._log_end = list(state.log_start), list(state.log_end)
        self._cleaned_to, self._transactions = (
            _copy(state.cleaned_to),
            _copy(state.writer_transactions),
        )
        self._writes, self._vacuum_version = _copy(state.writes), state.vacuum_version
        self._additions: dict[str, segment_entries.SegmentEntry] = {}
        self._adding_versions: dict[str, int] = {}
        self._removals: list[tuple[str, int, int]] = []
        self._purges: set[str] = set()
        self._segments, self._removed = state.live, state.removed
        self._holes, self._restores = list(state.holes), state.restores
        self._live = _files_in_commits(state.live, commits)

    def apply(self, commit: Commit) -> None:
        """Apply one commit.

        Args:
            commit: The commit.

        Raises:
            ValueError: An action of the commit does not fit the state.
        """
        actions = commit.actions
        if commit.version != self._version + 1:
            raise ValueError(f"version {self._version} comes before it")
        self._assert_previous(commit)
        if commit.timestamp_ms <= self._timestamp_ms:
            raise ValueError(f"its time {commit.timestamp_ms} is not above {self._timestamp_ms}")
        self._version, self._timestamp_ms = commit.version, commit.timestamp_ms
        self._set_topic(actions)
        self._set_config(actions.config)
        self._remove(actions.remove)
        if actions.restore is not None:
            self._restore(actions, actions.restore)
        elif actions.undelete is not None:
            self._undelete(actions, actions.undelete)
        else:
            self._add_all(actions)
        self._adding_versions.update((entry["file"], commit.version) for entry in actions.add)
        for partition, end in actions.explicit_log_end.items():
            self._log_end[partition] = max(self._end(partition), end)
        self._set_offsets(actions.log_start, actions.cleaned_to)
        self._purges.update(actions.purge)
        if actions.vacuum_version is not None:
            self._vacuum_version = max(self._vacuum_version, actions.vacuum_version)
        if actions.writer_transaction is not None:
            self._transactions[actions.writer_transaction.name] = actions.writer_transaction
        self._writes[commit.write_id] = commit.version
        if len(self._writes) > topic_state.MAX_REMEMBERED_WRITES:
            del self._writes[next(iter(self._writes))]
        self._tail_bytes += commit.size_bytes
        self._assert_ends(actions.asserted_log_end)

    def state(self) -> TopicState:
        """Return the state as of the last commit that was applied."""
        self._update_tables()
        return TopicState(
            version=self._version,
            timestamp_ms=self._timestamp_ms,
            topic_id=self._topic_id,
            config=MappingProxyType(self._config),
            log_start=tuple(self._log_start),
            log_end=tuple(self._log_end),
            cleaned_to=MappingProxyType(self._cleaned_to),
            live=self._segments,
            removed=self._removed,
            writer_transactions=MappingProxyType(self._transactions),
            writes=MappingProxyType(self._writes),
            vacuum_version=self._vacuum_version,
            holes=tuple(self._holes),
            restores=self._restores,
            checkpoint=self._checkpoint,
            tail_bytes=self._tail_bytes,
            listed_ms=self._listed_ms,
            loaded_ms=self._loaded_ms,
            own_commits=self._own_commits,
        )

    def _set_topic(self, actions: Actions) -> None:
        if actions.delete_topic:
            self._empty()
        if actions.create_topic is not None:
            if self._topic_id:
                raise ValueError(f"the topic is there, with id {self._topic_id}")
            self._topic_id = actions.create_topic.topic_id
            self._grow(actions.create_topic.partitions)
        elif not self._topic_id and not (
            actions.delete_topic or actions.undelete or self._is_vacuum(actions)
        ):
            raise ValueError("the topic is not there")
        if actions.partitions is not None:
            self._grow(actions.partitions)

    def _is_vacuum(self, actions: Actions) -> bool:
        """Return whether the actions are about files only: vacuum also runs on a deleted topic."""
        files_only = Actions(vacuum_version=actions.vacuum_version, purge=actions.purge)
        return self._version > 0 and actions == files_only

    def _empty(self) -> None:
        """Remove everything: a topic that is created again begins at offset 0 with another id.

        It remembers no writers: their batches are not in it, whatever their last batch was.
        """
        self._update_tables()
        rows = self._segments.rows().select(["file"])
        for name, value in (("version", self._version), ("timestamp_ms", self._timestamp_ms)):
            rows = rows.append_column(name, pa.repeat(pa.scalar(value, pa.int64()), len(rows)))
        self._removed = pa.concat_tables([self._removed, rows.cast(REMOVED_SCHEMA)])
        self._segments, self._live = LiveSegments(), set()
        self._topic_id, self._config = "", {}
        self._log_start, self._log_end = [], []
        self._cleaned_to, self._transactions, self._holes = {}, {}, []
        self._restores = ()

    def _grow(self, partitions: int) -> None:
        more = partitions - len(self._log_end)
        if more <= 0:
            raise ValueError(f"it sets {partitions} partitions, and there are {len(self._log_end)}")
        if partitions > MAX_PARTITIONS:
            raise ValueError(f"{partitions} partitions are more than {MAX_PARTITIONS}")
        self._log_start += [0] * more
        self._log_end += [0] * more

    def _set_config(self, config: Mapping[str, str | None]) -> None:
        for name, value in config.items():
            if value is None:
                self._config.pop(name, None)
            else:
                self._config[name] = value

    def _remove(self, files: tuple[str, ...]) -> None:
        for file in files:
            if file not in self._live:
                raise ValueError(f"{file} is removed, but is not live")
            self._live.discard(file)
            self._additions.pop(file, None)
            self._removals.append((file, self._version, self._timestamp_ms))

    def _add_all(self, actions: Actions) -> None:
        """Add segments and holes, in order of partition and offset."""
        holes = sorted(actions.holes, reverse=True)
        for entry in actions.add:
            start = (entry["partition"], entry["base_offset"])
            while holes and (holes[-1].partition, holes[-1].base_offset) < start:
                self._add_hole(holes.pop())
            self._add(entry)
        for hole in reversed(holes):
            self._add_hole(hole)

    def _add(self, entry: segment_entries.SegmentEntry) -> None:
        partition, base_offset = entry["partition"], entry["base_offset"]
        end = self._end(partition)
        if entry["origin"] in ("append", "adopt"):
            if base_offset < end or (base_offset > end and entry["origin"] == "append"):
                raise ValueError(
                    f"{entry['file']} begins at {base_offset}, partition ends at {end}"
                )
            self._log_end[partition] = entry["next_offset"]
        self._make_live(entry)

    def _make_live(self, entry: segment_entries.SegmentEntry) -> None:
        file, next_offset = entry["file"], entry["next_offset"]
        if file in self._live:
            raise ValueError(f"{file} is added twice")
        if _base_version(file) >= self._version:
            raise ValueError(f"{file} is younger than the commit that adds it")
        if next_offset > (end := self._end(entry["partition"])):
            raise ValueError(f"{file} ends at {next_offset}, partition ends at {end}")
        self._live.add(file)
        self._additions[file] = entry

    def _restore(self, actions: Actions, restore: Restore) -> None:
        """Make removed segments live again, and set bounds and holes back."""
        self._add_removed(actions)
        ends = [*restore.log_end.items(), *restore.log_start.items(), *restore.cleaned_to.items()]
        ends += [(hole.partition, hole.next_offset) for hole in restore.holes]
        for partition, offset in ends:
            if offset > self._end(partition):
                raise ValueError(
                    f"offset {offset} of partition {partition}, which ends at "
                    f"{self._end(partition)}, is restored"
                )
        if restore.version >= self._version:
            raise ValueError(f"it restores version {restore.version}")
        for partition, offset in restore.log_start.items():
            self._log_start[partition] = offset
        self._cleaned_to.update(restore.cleaned_to)
        self._holes = list(restore.holes)
        past = PastRestore(self._version, restore.version, restore.log_end)
        self._restores = with_restore(self._restores, past)

    def _undelete(self, actions: Actions, topic: UndeletedTopic) -> None:
        """Set a deleted topic back to its last version."""
        if self._topic_id:
            raise ValueError(f"the topic is there, with id {self._topic_id}")
        if topic.version >= self._version:
            raise ValueError(f"it restores version {topic.version}")
        self._topic_id, self._config = topic.topic.topic_id, dict(topic.config)
        self._grow(topic.topic.partitions)
        for partition, end in topic.log_end.items():
            self._end(partition)
            self._log_end[partition] = end
        self._add_removed(actions)
        self._set_offsets(topic.log_start, topic.cleaned_to)
        for hole in topic.holes:
            if hole.next_offset > self._end(hole.partition):
                raise ValueError(f"partition {hole.partition} has a hole after its end")
        self._holes, self._restores = list(topic.holes), topic.restores
        self._transactions = {writer.name: writer for writer in topic.writer_transactions}

    def _add_removed(self, actions: Actions) -> None:
        """Make removed segments live again."""
        self._update_tables()
        files = {entry["file"] for entry in actions.add}
        self._removed, restored = segment_entries.split_by_files(self._removed, files)
        if missing := files - set(restored["file"].to_pylist()):
            raise ValueError(f"{min(missing)} is restored, and no removed segment")
        for entry in actions.add:
            self._make_live(entry)

    def _add_hole(self, hole: Hole) -> None:
        end = self._end(hole.partition)
        if hole.base_offset != end:
            raise ValueError(
                f"a hole of partition {hole.partition} begins at {hole.base_offset}, the partition "
                f"ends at {end}"
            )
        self._log_end[hole.partition] = hole.next_offset
        self._holes.append(hole)

    def _set_offsets(self, log_start: Mapping[int, int], cleaned_to: Mapping[int, int]) -> None:
        for partition, start in log_start.items():
            if start > self._end(partition):
                raise ValueError(f"partition {partition} would begin at {start}, after its end")
            self._log_start[partition] = max(self._log_start[partition], start)
        if log_start:
            starts = self._log_start
            self._holes = [
                hole for hole in self._holes if hole.next_offset > starts[hole.partition]
            ]
        for partition, offset in cleaned_to.items():
            self._end(partition)
            self._cleaned_to[partition] = max(self._cleaned_to.get(partition, 0), offset)

    def _assert_previous(self, commit: Commit) -> None:
        last = last_write_id(self._writes)
        if not commit.is_on_top_of(last):
            raise ValueError(
                f"it was put on top of write {commit.previous_write_id or 'none'}, and commit "
                f"{self._version} is write {last or 'none'}"
            )

    def _assert_ends(self, log_end: Mapping[int, int]) -> None:
        for partition, end in log_end.items():
            if self._end(partition) != end:
                raise ValueError(
                    f"partition {partition} ends at {self._end(partition)}, it says {end}"
                )

    def _end(self, partition: int) -> int:
        if partition >= len(self._log_end):
            raise ValueError(f"there is no partition {partition}")
        return self._log_end[partition]

    def _update_tables(self) -> None:
        """Apply the added and removed segments to the tables."""
        if self._removals:
            self._segments = self._segments.without([file for file, _, _ in self._removals])
            files, versions, times = zip(*self._removals, strict=True)
            columns = [texts(files), numbers(versions, pa.int64()), numbers(times, pa.int64())]
            self._removed = pa.concat_tables(
                [self._removed, pa.table(columns, schema=REMOVED_SCHEMA)]
            )
            if self._removed["file"].num_chunks > _MAX_CHUNKS:
                self._removed = self._removed.combine_chunks()
            self._removals = []
        if self._additions:
            adding_versions = [self._adding_versions[file] for file in self._additions]
            added = segment_entries.to_table(self._additions.values())
            self._segments = self._segments.plus(
                added.append_column(
                    ROW_SCHEMA.field(VERSION_COLUMN), numbers(adding_versions, pa.int64())
                )
            )
            self._additions, self._adding_versions = {}, {}
        if self._purges:
            self._removed, _ = segment_entries.split_by_files(self._removed, self._purges)
            self._purges = set()


def _files_in_commits(live: LiveSegments, commits: Iterable[Commit]) -> set[str]:
    """Return the live files that commits remove or add: a live file cannot be added again."""
    removed = {file for commit in commits for file in commit.actions.remove}
    added = {entry["file"] for commit in commits for entry in commit.actions.add}
    live_files = live.live_files_among(removed) if removed else set()
    if added and len(live):
        live_files |= live.live_files_among(added, min(map(_base_version, added)))
    return live_files


def _base_version(file: str) -> int:
    """Return the version before which no commit can have added a file; -1 for a broker's file."""
    path = parse_segment_path(file)
    return -1 if path is None or not path.base_version else path.base_version


K = TypeVar("K")
V = TypeVar("V")


def _copy(mapping: Mapping[K, V]) -> dict[K, V]:
    """Copy a mapping; a state's own is copied in one call, where `dict` looks each key up."""
    return mapping.copy() if isinstance(mapping, (dict, MappingProxyType)) else dict(mapping)


def compacted(state: TopicState) -> TopicState:
    """Return the same state with the table of removed segments in one chunk: each commit adds one.

    Args:
        state: The state.
    """
    return replace(state, removed=state.removed.combine_chunks())
