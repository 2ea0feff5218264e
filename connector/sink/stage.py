"""One task's part of a write: rows in, segments of their topics on the store and entries out.

The rule: rows go to the topic that the write names, or else to the one that their column `topic`
names, and wait within `buffer.memory`, all topics of the task together. A row without a topic, or
of one that cannot be written to, is one that cannot be written: it fails the write, or goes to the
topic for dead letters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from tempfile import TemporaryFile
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from klog.connector.log.operations import Staged
from klog.connector.sink.columns import check_columns, plain
from klog.connector.sink.dead_letters import DeadLetters
from klog.connector.sink.plan import WritePlan
from klog.connector.sink.rows import RefusedError
from klog.connector.sink.segments import Task
from klog.connector.sink.settings import BUFFER_BYTES
from klog.connector.sink.spool import OpenFile, Spool
from klog.connector.sink.topic_stage import TopicStage
from klog.connector.store.contract import WritableStore
from klog.errors import KlogError, OptionError
from klog.logformat.index import Longs

Given: TypeAlias = pa.Table | pa.RecordBatch | Iterable[pa.RecordBatch]
PlanOf: TypeAlias = Callable[[str], WritePlan]
"""Plans the write to a topic. Raises `OptionError` for one that cannot be written to."""

_TAKEN = "give a pyarrow Table, a RecordBatch, or RecordBatches one after another"


def stage(
    plan: WritePlan,
    task: Task,
    given: Given,
    store: WritableStore,
    open_file: OpenFile = TemporaryFile,
) -> Staged:
    """Write the rows given to segments of one topic, in their order; a column `topic` is ignored.

    Raises `OptionError` for columns, `KlogError` that names the row for one that cannot be written;
    files that were put by then are garbage, as those of any attempt that no commit names.
    """
    staged = stage_topics(
        lambda topic: plan,
        task,
        given,
        store,
        topic=plan.topic,
        buffer_bytes=plan.settings.buffer_bytes,
        open_file=open_file,
    )
    return staged.get(plan.topic) or Staged(plan.topic_id, plan.birth, [], plan.partitions)


def stage_topics(
    plan_of: PlanOf,
    task: Task,
    given: Given,
    store: WritableStore,
    *,
    topic: str | None = None,
    dead_letters: DeadLetters | None = None,
    buffer_bytes: int = BUFFER_BYTES,
    open_file: OpenFile = TemporaryFile,
) -> dict[str, Staged]:
    """Write the rows given to segments of their topics: those that got rows.

    All rows go to `topic`, or to those that the column says. Raises as `stage`; with dead letters
    only for columns, and for a row that their topic cannot take either.
    """
    staging = _Stage(plan_of, task, store, Spool(open_file), topic, dead_letters, buffer_bytes)
    try:
        row = 0
        for batch in _batches(given):
            staging.add(batch, np.arange(row, row + len(batch)))
            row += len(batch)
        return staging.finish()
    finally:
        staging.spool.close()


def _batches(given: Given) -> Iterable[pa.RecordBatch]:
    if isinstance(given, pa.RecordBatch):
        return [given]
    # A table or a reader without rows has no batch that would be checked.
    schema = getattr(given, "schema", None)
    if isinstance(schema, pa.Schema):
        check_columns(schema)
    if isinstance(given, pa.Table):
        batches: list[pa.RecordBatch] = given.to_batches()
        return batches
    if not isinstance(given, Iterable):
        raise OptionError(f"rows are {type(given).__name__}; {_TAKEN}")
    return map(_batch, given)


def _batch(given: object) -> pa.RecordBatch:
    if not isinstance(given, pa.RecordBatch):
        raise OptionError(f"rows come as {type(given).__name__}; {_TAKEN}")
    return given


class _Stage:
    """The state of `stage_topics`."""

    def __init__(
        self,
        plan_of: PlanOf,
        task: Task,
        store: WritableStore,
        spool: Spool,
        topic: str | None,
        dead_letters: DeadLetters | None,
        buffer_bytes: int,
    ) -> None:
        self.spool = spool
        self._plan_of, self._task, self._store = plan_of, task, store
        self._topic, self._dead_letters, self._buffer_bytes = topic, dead_letters, buffer_bytes
        self._stages: dict[str, TopicStage] = {}
        self._refused: dict[str, str] = {}

    def add(self, batch: pa.RecordBatch, numbers: Longs) -> None:
        """Take rows."""
        if self._topic is not None:
            self._stage(self._topic).add(batch, numbers)
        else:
            check_columns(batch.schema)
            for topic, rows, their_numbers in _by_topic(batch, numbers):
                self._add(topic, rows, their_numbers)
        self._make_room()

    def finish(self) -> dict[str, Staged]:
        """Put what is not put yet."""
        staged = {topic: self._stages[topic].finish() for topic in sorted(self._stages)}
        return {topic: one for topic, one in staged.items() if one.segments or topic == self._topic}

    def _add(self, topic: str | None, rows: pa.RecordBatch, numbers: Longs) -> None:
        if topic is None:
            why = "its topic is null; set it, or name one topic for all rows"
        else:
            why = self._refused.get(topic, "") or self._refusal(topic)
            if not why:
                self._stage(topic).add(rows, numbers)
                return
        if self._dead_letters is None:
            place = f"row {numbers[0]}{self._task.name and f' of {self._task.name}'}"
            raise KlogError(f"{place}: {why}")
        columns = {name: rows.column(name) for name in rows.schema.names}
        refused = RefusedError(np.ones(len(rows), bool), lambda row: why)
        self._set_aside(topic, columns, refused, numbers)

    def _refusal(self, topic: str) -> str:
        """Say why a topic cannot be written to, if it cannot, and remember it."""
        try:
            self._stage(topic)
        except OptionError as exc:
            self._refused[topic] = str(exc)
        return self._refused.get(topic, "")

    def _stage(self, topic: str) -> TopicStage:
        found = self._stages.get(topic)
        if found is None:
            aside = None
            if self._dead_letters is not None and topic != self._dead_letters.topic:

                def aside(
                    columns: Mapping[str, pa.Array], refused: RefusedError, of: Longs
                ) -> None:
                    self._set_aside(topic, columns, refused, of)

            plan = self._plan_of(topic)
            found = TopicStage(plan, self._task, self._store, self.spool, aside)
            self._stages[topic] = found
        return found

    def _set_aside(
        self, topic: str | None, columns: Mapping[str, pa.Array], refused: RefusedError, of: Longs
    ) -> None:
        """Write what cannot be written to the topic for dead letters."""
        assert self._dead_letters is not None
        rows = self._dead_letters.rows(topic, columns, refused, of)
        self._stage(self._dead_letters.topic).add(rows, of[refused.wrong])

    def _make_room(self) -> None:
        """Keep rows and batches within `buffer.memory`, so far as one piece of rows allows."""
        budget = self._buffer_bytes
        if self._held_bytes() + self.spool.held_bytes <= budget:
            return
        if self._held_bytes() > budget // 2:
            for stage in self._stages.values():
                stage.copy()
            if self._held_bytes() > budget // 2:
                for stage in self._stages.values():
                    stage.encode_all()
        if self._held_bytes() + self.spool.held_bytes > budget:
            self.spool.spill()

    def _held_bytes(self) -> int:
        return sum(stage.held_bytes for stage in self._stages.values())


def _by_topic(
    batch: pa.RecordBatch, numbers: Longs
) -> Iterator[tuple[str | None, pa.RecordBatch, Longs]]:
    """Give the rows of each topic, in their order; None is the topic of rows that have none."""
    if "topic" not in batch.schema.names:
        raise OptionError("there is no column topic; add it, or name one topic for all rows")
    if not len(batch):
        return
    column = plain(batch.column("topic"))
    if column.null_count == len(batch):
        yield None, batch, numbers
        return
    encoded = column.dictionary_encode()
    codes = encoded.indices.fill_null(-1).to_numpy()
    topics = encoded.dictionary.to_pylist()
    for code in np.unique(codes).tolist():
        topic = topics[code] if code >= 0 else None
        if len(topics) == 1 and not column.null_count:
            yield topic, batch, numbers
            return
        own = np.flatnonzero(codes == code)
        yield topic, batch.take(pa.array(own)), numbers[own]
