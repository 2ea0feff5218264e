"""Replay commits on top of a state."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import TypeVar

import pyarrow as pa

from klog.connector.commit_log import segment_entries, topic_state
from klog.connector.commit_log.commit import Actions, Commit, Hole
from klog.connector.commit_log.live_segments import ROW_SCHEMA, VERSION_COLUMN, LiveSegments
from klog.connector.commit_log.segment_path import parse_segment_path
from klog.connector.commit_log.topic_state import REMOVED_SCHEMA, TopicState, last_write_id
from klog.connector.topic_partition import MAX_PARTITIONS
from klog.errors import KlogError

_MAX_CHUNKS = 64


def replay(state: TopicState, commits: Iterable[Commit]) -> TopicState:
    """Apply the commits that follow a state, in order."""
    commits = list(commits)
    folding = StateReplayer(state, commits)
    for commit in commits:
        try:
            folding.apply(commit)
        except ValueError as exc:
            raise KlogError(
                f"commit {commit.version} ({commit.operation}, {commit.engine}) does not follow "
                f"from those before it: {exc}"
            ) from exc
    return folding.state()


class StateReplayer:
    """A state under change: tables are made once, however many commits are folded.

    Of the live files only those are known by name that a commit takes out or adds.
    """

    def __init__(self, state: TopicState, commits: Sequence[Commit]) -> None:
        self._checkpoint, self._tail_bytes = state.checkpoint, state.tail_bytes
        self._listed_ms, self._loaded_ms = state.listed_ms, state.loaded_ms
        self._own_commits = state.own_commits
        self._version, self._timestamp_ms = state.version, state.timestamp_ms
        self._topic_id, self._config = state.topic_id, _copied(state.config)
        self._log_start, self._log_end = list(state.log_start), list(state.log_end)
        self._cleaned_to, self._progress = (
            _copied(state.cleaned_to),
            _copied(state.writer_transactions),
        )
        self._writes, self._horizon = _copied(state.writes), state.vacuum_version
        self._added: dict[str, segment_entries.SegmentEntry] = {}
        self._added_by: dict[str, int] = {}
        self._gone: list[tuple[str, int, int]] = []
        self._forgotten: set[str] = set()
        self._segments, self._removed = state.live, state.removed
        self._holes = list(state.holes)
        self._live = _named(state.live, commits)

    def apply(self, commit: Commit) -> None:
        """Apply one commit; `ValueError` says what of it cannot be."""
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
        holes = sorted(actions.holes, reverse=True)
        for entry in actions.add:
            place = (entry["partition"], entry["base_offset"])
            while holes and (holes[-1].partition, holes[-1].base_offset) < place:
                self._add_hole(holes.pop())
            self._add(entry)
            self._added_by[entry["file"]] = commit.version
        for hole in reversed(holes):
            self._add_hole(hole)
        for partition, end in actions.explicit_log_end.items():
            self._log_end[partition] = max(self._end(partition), end)
        self._set_offsets(actions.log_start, actions.cleaned_to)
        self._forgotten.update(actions.purge)
        if actions.vacuum_version is not None:
            self._horizon = max(self._horizon, actions.vacuum_version)
        if actions.writer_transaction is not None:
            self._progress[actions.writer_transaction.name] = actions.writer_transaction
        self._writes[commit.write_id] = commit.version
        if len(self._writes) > topic_state.MAX_REMEMBERED_WRITES:
            del self._writes[next(iter(self._writes))]
        self._tail_bytes += commit.size_bytes
        self._assert_ends(actions.asserted_log_end)

    def state(self) -> TopicState:
        """Give the state as of the last commit applied."""
        self._settle()
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
            writer_transactions=MappingProxyType(self._progress),
            writes=MappingProxyType(self._writes),
            vacuum_version=self._horizon,
            holes=tuple(self._holes),
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
        elif not self._topic_id and not (actions.delete_topic or self._tidies(actions)):
            raise ValueError("the topic is not there")
        if actions.partitions is not None:
            self._grow(actions.partitions)

    def _tidies(self, actions: Actions) -> bool:
        """Tell a commit that is about files only: vacuum goes on when the topic was deleted."""
        files_only = Actions(vacuum_version=actions.vacuum_version, purge=actions.purge)
        return self._version > 0 and actions == files_only

    def _empty(self) -> None:
        """Take all out: a topic that is made anew begins at offset 0 with another id.

        Of writers it knows nothing: what they wrote is not in it, whatever their last batch was.
        """
        self._settle()
        gone = self._segments.rows().select(["file"])
        for name, value in (("version", self._version), ("timestamp_ms", self._timestamp_ms)):
            gone = gone.append_column(name, pa.repeat(pa.scalar(value, pa.int64()), len(gone)))
        self._removed = pa.concat_tables([self._removed, gone.cast(REMOVED_SCHEMA)])
        self._segments, self._live = LiveSegments(), set()
        self._topic_id, self._config = "", {}
        self._log_start, self._log_end = [], []
        self._cleaned_to, self._progress, self._holes = {}, {}, []

    def _grow(self, partitions: int) -> None:
        more = partitions - len(self._log_end)
        if more <= 0:
            raise ValueError(f"{partitions} partitions where there are {len(self._log_end)}")
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
                raise ValueError(f"{file} is removed, but not there")
            self._live.discard(file)
            self._added.pop(file, None)
            self._gone.append((file, self._version, self._timestamp_ms))

    def _add(self, entry: segment_entries.SegmentEntry) -> None:
        partition, base, behind = entry["partition"], entry["base_offset"], entry["next_offset"]
        if entry["file"] in self._live:
            raise ValueError(f"{entry['file']} is added twice")
        if _birth(entry["file"]) >= self._version:
            raise ValueError(f"{entry['file']} is younger than the commit that adds it")
        end = self._end(partition)
        if entry["origin"] in ("append", "adopt"):
            if base < end or (base > end and entry["origin"] == "append"):
                raise ValueError(f"{entry['file']} begins at {base}, partition ends at {end}")
            self._log_end[partition] = behind
        elif behind > end:
            raise ValueError(f"{entry['file']} ends at {behind}, partition ends at {end}")
        self._live.add(entry["file"])
        self._added[entry["file"]] = entry

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
                raise ValueError(f"partition {partition} would begin at {start}, behind its end")
            self._log_start[partition] = max(self._log_start[partition], start)
        if log_start:
            starts = self._log_start
            self._holes = [one for one in self._holes if one.next_offset > starts[one.partition]]
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

    def _settle(self) -> None:
        """Bring what was added and taken out into the tables."""
        if self._gone:
            self._segments = self._segments.without([file for file, _, _ in self._gone])
            columns = [list(column) for column in zip(*self._gone, strict=True)]
            self._removed = pa.concat_tables(
                [self._removed, pa.table(columns, schema=REMOVED_SCHEMA)]
            )
            if self._removed["file"].num_chunks > _MAX_CHUNKS:
                self._removed = self._removed.combine_chunks()
            self._gone = []
        if self._added:
            versions = [self._added_by[file] for file in self._added]
            added = segment_entries.to_table(self._added.values())
            column = pa.array(versions, pa.int64())
            self._segments = self._segments.plus(
                added.append_column(ROW_SCHEMA.field(VERSION_COLUMN), column)
            )
            self._added, self._added_by = {}, {}
        if self._forgotten:
            self._removed, _ = segment_entries.split_by_files(self._removed, self._forgotten)
            self._forgotten = set()


def _named(live: LiveSegments, commits: Iterable[Commit]) -> set[str]:
    """Give the live files that commits take out or add: what is live cannot be added again."""
    taken_out = {file for commit in commits for file in commit.actions.remove}
    added = {entry["file"] for commit in commits for entry in commit.actions.add}
    found = live.live_files_among(taken_out) if taken_out else set()
    if added and len(live):
        found |= live.live_files_among(added, min(map(_birth, added)))
    return found


def _birth(file: str) -> int:
    """Give the version before which no commit can have added a file; -1 for one of a broker's."""
    path = parse_segment_path(file)
    return -1 if path is None or not path.base_version else path.base_version


K = TypeVar("K")
V = TypeVar("V")


def _copied(given: Mapping[K, V]) -> dict[K, V]:
    """Copy a mapping; one of a state is copied as a whole, where `dict` would look each key up."""
    return given.copy() if isinstance(given, (dict, MappingProxyType)) else dict(given)


def compacted(state: TopicState) -> TopicState:
    """Give the same state with what was removed in one piece: many commits leave many."""
    return replace(state, removed=state.removed.combine_chunks())
