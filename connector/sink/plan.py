"""What the tasks of one write have in common, planned once from the topic's state.

The rule: all tasks write for the same state. Its version is the birth of their files, and its log
ends are the offsets that they stamp, each as if it were alone: the commit shifts what it puts
behind something else. The leader epoch is that of the partition's last segment, so that epochs
never fall along a log, and 0 where there is none: a new partition's first leader has that epoch. A
log of epoch -1, "not known", no follower of a broker takes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow.compute as pc

from klog.connector.log.state import State
from klog.connector.sink.identity import Identity, identity_of
from klog.connector.sink.settings import Settings, read_settings
from klog.errors import OptionError
from klog.logformat.form import Form


@dataclass(frozen=True, slots=True)
class WritePlan:
    """One write to one topic. `log_ends` and `leader_epochs` are by partition.

    `topic_id` is empty where there is no such topic yet.

    `name` and `number` are whose batch it is: a transactional id and its batch, or the write id
    and 0.
    """

    topic: str
    root: str
    topic_id: str
    birth: int
    log_ends: tuple[int, ...]
    leader_epochs: tuple[int, ...]
    settings: Settings
    name: str
    number: int = 0

    @property
    def partitions(self) -> int:
        """Give the number of partitions."""
        return len(self.log_ends)

    def identity(self, task: int) -> Identity:
        """Give what a task's batches say of their producer."""
        return identity_of(self.name, task, self.number)

    def form(self, task: int, partition: int, now_ms: int) -> Form:
        """Give what a task's batches of a partition have in common, as the first of them is."""
        producer = self.identity(task)
        return Form(
            batch_bytes=self.settings.batch_bytes,
            codec=self.settings.codec,
            level=self.settings.level,
            leader_epoch=self.leader_epochs[partition],
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            base_sequence=0,
            append_time_ms=now_ms if self.settings.append_time else None,
        )


def plan_write(
    topic: str,
    root: str,
    state: State,
    options: Mapping[str, str],
    name: str,
    number: int = 0,
    new_partitions: int | None = None,
) -> WritePlan:
    """Plan a write on top of a state. `root` is the root's path as the store spells it.

    A topic that is not there gets `new_partitions` when it is made. Raises `OptionError` if it is
    not to be made, and for options.
    """
    ends, epochs = state.log_end, _leader_epochs(state)
    if not state.topic_id:
        if new_partitions is None:
            raise OptionError(f"{root}: there is no topic {topic}; create it first")
        ends = epochs = (0,) * new_partitions
    return WritePlan(
        topic=topic,
        root=root,
        topic_id=state.topic_id,
        birth=max(state.version, 0),
        log_ends=ends,
        leader_epochs=epochs,
        settings=read_settings(state.config, options),
        name=name,
        number=number,
    )


def _leader_epochs(state: State) -> tuple[int, ...]:
    found = state.segments["leader_epoch"]
    highest = pc.max(found).as_py()
    if highest is None or highest <= 0:  # None but an adopted log has another.
        return (0,) * state.partitions
    epochs = np.zeros(state.partitions, np.int64)
    np.maximum.at(epochs, state.segments["partition"].to_numpy(), found.to_numpy())
    return tuple(epochs.tolist())
