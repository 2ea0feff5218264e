"""A topic as of one version of its log, and how commits change it.

The rule: a state is what folding commits 0 to `version` in order gives, and nothing else goes into
it. Folding asserts what commits promise: numbers without gaps, times that rise, appends that begin
where the log ends, removals of what is live, and the log ends that the commit itself states. A
commit that breaks one is a `KlogError`: the log was changed by something that is not klog.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import pyarrow as pa

from klog.connector.log import entries
from klog.connector.log.commit import Actions, Commit, Progress
from klog.errors import KlogError

REMEMBERED_WRITES = 10_000
"""So many of the last commits are known by their write id: a try that takes longer is lost."""

REMOVED = pa.schema(
    [
        pa.field("file", pa.string(), nullable=False),
        pa.field("version", pa.int64(), nullable=False),
        pa.field("timestamp_ms", pa.int64(), nullable=False),
    ]
)
"""Segments that a commit took out, and which one when: readers of older versions may need them."""
_NO_SEGMENTS, _NONE_REMOVED = entries.SCHEMA.empty_table(), REMOVED.empty_table()


@dataclass(frozen=True, slots=True)
class State:
    """A topic as of `version`; -1 is before its first commit. A deleted topic has no `topic_id`.

    `log_start` and `log_end` are by partition. `segments` has `entries.SCHEMA`, `removed` has
    `REMOVED`. `writes` gives the version by write id, oldest first.
    """

    version: int = -1
    timestamp_ms: int = -1
    topic_id: str = ""
    config: Mapping[str, str] = field(default_factory=dict)
    log_start: tuple[int, ...] = ()
    log_end: tuple[int, ...] = ()
    cleaned_to: Mapping[int, int] = field(default_factory=dict)
    segments: pa.Table = field(default_factory=lambda: _NO_SEGMENTS)
    removed: pa.Table = field(default_factory=lambda: _NONE_REMOVED)
    progress: Mapping[str, Progress] = field(default_factory=dict)
    writes: Mapping[str, int] = field(default_factory=dict)
    horizon: int = 0

    @property
    def partitions(self) -> int:
        """Give the number of partitions."""
        return len(self.log_end)


def fold(state: State, commits: Iterable[Commit]) -> State:
    """Apply the commits that follow a state, in order."""
    folding = _Folding(state)
    for commit in commits:
        try:
            folding.apply(commit)
        except ValueError as exc:
            raise KlogError(
                f"commit {commit.version} ({commit.operation}, {commit.engine}) does not follow "
                f"from those before it: {exc}. Something else than klog changed this log: restore "
                "it from a copy"
            ) from exc
    return folding.state()


class _Folding:
    """A state under change: tables are made once, however many commits are folded."""

    def __init__(self, state: State) -> None:
        self._from = state
        self._version, self._timestamp_ms = state.version, state.timestamp_ms
        self._topic_id, self._config = state.topic_id, dict(state.config)
        self._log_start, self._log_end = list(state.log_start), list(state.log_end)
        self._cleaned_to, self._progress = dict(state.cleaned_to), dict(state.progress)
        self._writes, self._horizon = dict(state.writes), state.horizon
        self._added: dict[str, entries.Entry] = {}
        self._gone: list[tuple[str, int, int]] = []
        self._forgotten: set[str] = set()
        self._segments, self._removed = state.segments, state.removed
        self._live: set[str] | None = None

    def apply(self, commit: Commit) -> None:
        """Apply one commit; `ValueError` says what of it cannot be."""
        actions = commit.actions
        if commit.version != self._version + 1:
            raise ValueError(f"version {self._version} comes before it")
        if commit.timestamp_ms <= self._timestamp_ms:
            raise ValueError(f"its time {commit.timestamp_ms} is not above {self._timestamp_ms}")
        self._version, self._timestamp_ms = commit.version, commit.timestamp_ms
        self._set_topic(actions, commit.operation)
        self._set_config(actions.config)
        self._remove(actions.remove)
        for entry in actions.add:
            self._add(entry)
        self._set_offsets(actions.log_start, actions.cleaned_to)
        self._forgotten.update(actions.forget)
        if actions.horizon is not None:
            self._horizon = max(self._horizon, actions.horizon)
        if actions.progress is not None:
            self._progress[actions.progress.name] = actions.progress
        self._writes[commit.write_id] = commit.version
        if len(self._writes) > REMEMBERED_WRITES:
            del self._writes[next(iter(self._writes))]
        self._assert_ends(actions.log_end)

    def state(self) -> State:
        """Give the state as of the last commit applied."""
        self._settle()
        return State(
            version=self._version,
            timestamp_ms=self._timestamp_ms,
            topic_id=self._topic_id,
            config=MappingProxyType(self._config),
            log_start=tuple(self._log_start),
            log_end=tuple(self._log_end),
            cleaned_to=MappingProxyType(self._cleaned_to),
            segments=self._segments,
            removed=self._removed,
            progress=MappingProxyType(self._progress),
            writes=MappingProxyType(self._writes),
            horizon=self._horizon,
        )

    def _set_topic(self, actions: Actions, operation: str) -> None:
        if actions.delete_topic:
            self._empty()
        if actions.create_topic is not None:
            if self._topic_id:
                raise ValueError(f"the topic is there, with id {self._topic_id}")
            self._topic_id = actions.create_topic.topic_id
            self._grow(actions.create_topic.partitions)
        elif not (self._topic_id or actions.delete_topic or operation == "vacuum"):
            # What a deleted topic leaves behind is vacuum's all the same.
            raise ValueError("the topic is not there")
        if actions.partitions is not None:
            self._grow(actions.partitions)

    def _empty(self) -> None:
        """Take all out: a topic that is made anew begins at offset 0 with another id."""
        self._settle()
        for file in self._segments["file"].to_pylist():
            self._gone.append((file, self._version, self._timestamp_ms))
        self._segments = _NO_SEGMENTS
        self._topic_id, self._config = "", {}
        self._log_start, self._log_end = [], []
        self._cleaned_to, self._live = {}, None

    def _grow(self, partitions: int) -> None:
        more = partitions - len(self._log_end)
        if more <= 0:
            raise ValueError(f"{partitions} partitions where there are {len(self._log_end)}")
        self._log_start += [0] * more
        self._log_end += [0] * more

    def _set_config(self, config: Mapping[str, str | None]) -> None:
        for name, value in config.items():
            if value is None:
                self._config.pop(name, None)
            else:
                self._config[name] = value

    def _remove(self, files: tuple[str, ...]) -> None:
        if not files:
            return
        live = self._live_files()
        for file in files:
            if file not in live:
                raise ValueError(f"{file} is removed, but not there")
            live.discard(file)
            self._added.pop(file, None)
            self._gone.append((file, self._version, self._timestamp_ms))

    def _add(self, entry: entries.Entry) -> None:
        partition, base, behind = entry["partition"], entry["base_offset"], entry["next_offset"]
        end = self._end(partition)
        if entry["origin"] in ("append", "adopt"):
            if base < end or (base > end and entry["origin"] == "append"):
                raise ValueError(f"{entry['file']} begins at {base}, partition ends at {end}")
            self._log_end[partition] = behind
        elif behind > end:
            raise ValueError(f"{entry['file']} ends at {behind}, partition ends at {end}")
        if self._live is not None:
            self._live.add(entry["file"])
        self._added[entry["file"]] = entry

    def _set_offsets(self, log_start: Mapping[int, int], cleaned_to: Mapping[int, int]) -> None:
        for partition, start in log_start.items():
            if start > self._end(partition):
                raise ValueError(f"partition {partition} would begin at {start}, behind its end")
            self._log_start[partition] = max(self._log_start[partition], start)
        for partition, offset in cleaned_to.items():
            self._end(partition)
            self._cleaned_to[partition] = max(self._cleaned_to.get(partition, 0), offset)

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

    def _live_files(self) -> set[str]:
        if self._live is None:
            self._settle()
            self._live = set(self._segments["file"].to_pylist())
        return self._live

    def _settle(self) -> None:
        """Bring what was added and taken out into the tables."""
        if self._gone:
            gone = [file for file, _, _ in self._gone]
            self._segments, _ = entries.without(self._segments, gone)
            columns = [list(column) for column in zip(*self._gone, strict=True)]
            self._removed = pa.concat_tables([self._removed, pa.table(columns, schema=REMOVED)])
            self._gone = []
        if self._added:
            added = entries.table_of(self._added.values())
            self._segments = pa.concat_tables([self._segments, added])
            self._added = {}
        if self._forgotten:
            self._removed, _ = entries.without(self._removed, self._forgotten)
            self._forgotten = set()


def tidied(state: State) -> State:
    """Give the same state with each table in one piece: many commits leave many."""
    return replace(
        state, segments=state.segments.combine_chunks(), removed=state.removed.combine_chunks()
    )
