"""What each operation commits on top of a state, and what of a state forbids it.

The rule (docs/commit-protocol.md, 4): each function makes the `build` of one commit. It is called
anew for each state that others' commits lead to, so it decides by that state alone: an append gets
the offsets of the moment, a rewrite asks whether its inputs are still what they were, a named write
whether it is there already.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from klog.connector.log import entries
from klog.connector.log.commit import Actions, Amount, Progress, Topic
from klog.connector.log.state import Build, State
from klog.errors import CommitConflictError, LostCommitError, ProducerFencedError

REMEMBERED_RUNS = 32


@dataclass(frozen=True, slots=True)
class Writer:
    """Who writes under a transactional id: a batch by its number, of a run of a query."""

    name: str
    batch_id: int
    query_id: str
    run_id: str


@dataclass(frozen=True, slots=True)
class Staged:
    """Segments that a write has put on the store, in the order they are to be in the log.

    Their offsets are those in the files, from where the partition ended as of `birth`. `partitions`
    is how many there were to choose from; None where nobody chose. `topic_id` is empty where there
    was no such topic, and the commit is to make it.
    """

    topic_id: str
    birth: int
    segments: Sequence[entries.Entry]
    partitions: int | None = None


def create_topic(topic: Topic, config: Mapping[str, str]) -> Build:
    """Make the topic; one that is there is a `CommitConflictError`."""

    def build(state: State) -> Actions:
        if state.topic_id:
            raise CommitConflictError(f"the topic is there already, with id {state.topic_id}")
        return Actions(create_topic=topic, config=dict(config))

    return build


def delete_topic(topic_id: str) -> Build:
    """Delete this topic, not one that was made anew under its name."""

    def build(state: State) -> Actions | None:
        if state.topic_id != topic_id:
            return None
        return Actions(delete_topic=True, removed=_held(state.segments))

    return build


def alter_config(topic_id: str, seen: Mapping[str, str], config: Mapping[str, str | None]) -> Build:
    """Set and unset configs that still have the values `seen`."""

    def build(state: State) -> Actions:
        _same_topic(state, topic_id)
        for name in config:
            if state.config.get(name) != seen.get(name):
                raise CommitConflictError(f"config {name} was changed meanwhile; look at it again")
        return Actions(config=dict(config))

    return build


def add_partitions(topic_id: str, partitions: int) -> Build:
    """Give the topic more partitions."""

    def build(state: State) -> Actions:
        _same_topic(state, topic_id)
        if partitions <= state.partitions:
            raise CommitConflictError(
                f"the topic has {state.partitions} partitions, which cannot become {partitions}"
            )
        return Actions(partitions=partitions)

    return build


def append(staged: Staged, writer: Writer | None = None, create: Topic | None = None) -> Build:
    """Put staged segments behind the log's ends, exactly once for a named writer.

    What was staged for a topic that was not there makes it, as `create` says, in the same commit;
    one that another made meanwhile will do, if it is as this one would have been. Raises
    `CommitConflictError` if the topic is not the one that was written for, vacuum may have taken
    the files, or they are in the log already, and `ProducerFencedError` if another run, or another
    query with later batches, has taken over the name.
    """

    def build(state: State) -> Actions | None:
        progress = None
        if writer is not None:
            if is_done(state, writer):
                return None
            progress = _progress(state, writer)
        making = None if state.topic_id or staged.topic_id else create
        if making is None:
            _is_target(state, staged)
        check_birth(state, staged.birth)
        _not_there(state, staged)
        ends = dict(enumerate((0,) * making.partitions if making else state.log_end))
        added = []
        for segment in staged.segments:
            partition = segment["partition"]
            if partition not in ends:
                raise CommitConflictError(f"there is no partition {partition} any more")
            shift = ends[partition] - segment["base_offset"]
            added.append(shifted(segment, shift))
            ends[partition] += segment["next_offset"] - segment["base_offset"]
        changed = {entry["partition"]: ends[entry["partition"]] for entry in added}
        return Actions(add=tuple(added), progress=progress, log_end=changed, create_topic=making)

    return build


def shifted(segment: entries.Entry, shift: int) -> entries.Entry:
    """Give a segment whose offsets are so much higher than its file says."""
    return {
        **segment,
        "base_offset": segment["base_offset"] + shift,
        "next_offset": segment["next_offset"] + shift,
        "offset_shift": segment["offset_shift"] + shift,
    }


def is_done(state: State, writer: Writer) -> bool:
    """Tell whether the log has this writer's batch already.

    Raises `ProducerFencedError` where the number says so, but of another query: what it wrote is
    not what this one would.
    """
    found = state.progress.get(writer.name)
    if found is None or writer.batch_id > found.batch_id:
        return False
    if found.query_id != writer.query_id:
        raise ProducerFencedError(
            f"transactional id {writer.name!r} has written batch {found.batch_id} as "
            f"{_query(found.query_id)}, and {_query(writer.query_id)} comes with batch "
            f"{writer.batch_id}: it would be skipped. Use another transactional id, or the "
            "checkpoint of that query"
        )
    return True


def _query(query_id: str) -> str:
    return f"query {query_id}" if query_id else "a write outside of a query"


def _progress(state: State, writer: Writer) -> Progress:
    found = state.progress.get(writer.name)
    if found is None:
        return Progress(writer.name, writer.batch_id, writer.query_id, writer.run_id)
    superseded = found.superseded
    if writer.run_id in superseded:
        raise ProducerFencedError(
            f"transactional id {writer.name!r}: run {found.run_id} has taken over from run "
            f"{writer.run_id}, which must stop"
        )
    if found.run_id != writer.run_id:
        superseded = (*superseded, found.run_id)[-REMEMBERED_RUNS:]
    return Progress(writer.name, writer.batch_id, writer.query_id, writer.run_id, superseded)


def replace_segments(
    topic_id: str,
    birth: int,
    inputs: Sequence[str],
    outputs: Sequence[entries.Entry],
    cleaned_to: Mapping[int, int],
) -> Build:
    """Put segments in the place of others (compaction, merge), if those are all still live.

    Each output lies where inputs lay side by side; a `ValueError` if not, for the log would hold
    offsets twice.
    """

    def build(state: State) -> Actions:
        _same_topic(state, topic_id)
        check_birth(state, birth)
        _, found = entries.without(state.segments, inputs)
        if len(found) != len(inputs):
            raise CommitConflictError(
                f"{len(inputs) - len(found)} of {len(inputs)} segments to be rewritten are gone: "
                "another job was faster; run it again"
            )
        _check_places(state, found, outputs)
        return Actions(
            add=tuple(outputs),
            remove=tuple(inputs),
            removed=_held(found),
            cleaned_to=dict(cleaned_to),
        )

    return build


def _check_places(state: State, inputs: pa.Table, outputs: Sequence[entries.Entry]) -> None:
    """Refuse outputs that would lie over what is not rewritten, or over each other.

    Each has to fit between the first and the last offset of inputs that lie side by side.
    """
    free: dict[int, list[tuple[int, int]]] = {}
    for partition in pc.unique(inputs["partition"]).to_pylist():
        own = entries.of_partition(inputs, partition)
        begins, behinds = (own[name].to_numpy() for name in ("base_offset", "next_offset"))
        starts = entries.of_partition(state.segments, partition)["base_offset"].to_numpy()
        apart = np.flatnonzero(np.diff(np.searchsorted(starts, begins)) != 1)
        firsts, lasts = begins[np.append(0, apart + 1)], behinds[np.append(apart, len(own) - 1)]
        free[partition] = list(zip(firsts.tolist(), lasts.tolist(), strict=True))
    for output in sorted(outputs, key=lambda one: (one["partition"], one["base_offset"])):
        places = free.get(output["partition"], [])
        while places and places[0][1] < output["next_offset"]:
            places.pop(0)
        if not places or output["base_offset"] < places[0][0]:
            raise ValueError(
                f"{output['file']} of offsets {output['base_offset']} to {output['next_offset']} "
                "does not lie where segments that are rewritten lay side by side"
            )
        places[0] = (output["next_offset"], places[0][1])


def delete_records(topic_id: str, log_start: Mapping[int, int]) -> Build:
    """Begin partitions at higher offsets, and take out the segments that lie wholly below.

    An offset above the log's end means its end. Nothing left to do is nothing committed.
    """

    def build(state: State) -> Actions | None:
        _same_topic(state, topic_id)
        starts = {}
        for partition, offset in log_start.items():
            if partition >= state.partitions:
                raise CommitConflictError(f"there is no partition {partition}")
            start = min(offset, state.log_end[partition])
            if start > state.log_start[partition]:
                starts[partition] = start
        if not starts:
            return None
        remove: list[str] = []
        for partition, start in starts.items():
            own = entries.of_partition(state.segments, partition)
            remove += own.filter(pc.less_equal(own["next_offset"], start))["file"].to_pylist()
        _, found = entries.without(state.segments, remove)
        return Actions(log_start=starts, remove=tuple(remove), removed=_held(found))

    return build


def raise_horizon(horizon: int, forget: Sequence[str]) -> Build:
    """Say that files born before `horizon` may go if no commit names them (vacuum)."""

    def build(state: State) -> Actions | None:
        if horizon <= state.horizon and not forget:
            return None
        _, known = entries.without(state.removed, forget)
        return Actions(horizon=max(horizon, state.horizon), forget=tuple(known["file"].to_pylist()))

    return build


def check_birth(state: State, birth: int) -> None:
    """Refuse files that vacuum may have taken for garbage, and a log that has lost its end."""
    if birth > max(state.version, 0):
        raise LostCommitError(
            f"this write began at version {birth}, and the log ends at version {state.version}: "
            "its last commits are lost. Restore them from a copy, then write it again"
        )
    if birth < state.horizon:
        raise CommitConflictError(
            f"this write began at version {birth}, and vacuum has cleared what was not committed "
            f"before version {state.horizon}: write it again, in less time than vacuum's grace"
        )


def _held(segments: pa.Table) -> Amount | None:
    if not segments.num_rows:
        return None
    return Amount(*(pc.sum(segments[name]).as_py() for name in ("record_count", "size_bytes")))


def _is_target(state: State, staged: Staged) -> None:
    """Refuse a topic that is not the one, or not as the one, that was written for."""
    if staged.topic_id or not state.topic_id:
        _same_topic(state, staged.topic_id)
    elif state.config:
        raise CommitConflictError(
            "the topic was made meanwhile, with configs that this write did not go by: write it "
            "again"
        )
    _same_partitions(state, staged.partitions)


def _same_partitions(state: State, partitions: int | None) -> None:
    if partitions not in (None, state.partitions):
        raise CommitConflictError(
            f"the topic has {state.partitions} partitions now, rows were spread over {partitions}: "
            "keys would lie in two places. Write it again"
        )


def _not_there(state: State, staged: Staged) -> None:
    """Refuse what an earlier try has committed under another write id."""
    files = [segment["file"] for segment in staged.segments]
    _, removed = entries.without(state.removed, files)
    # Of birth 0 are also those that the first commit of a log has.
    found = state.live.present(files, staged.birth or -1) | set(removed["file"].to_pylist())
    if found:
        raise CommitConflictError(
            f"{len(found)} of {len(files)} segments of this write are in the log already, such as "
            f"{min(found)}: it was committed before, and nothing is to be done"
        )


def _same_topic(state: State, topic_id: str) -> None:
    if not state.topic_id:
        raise CommitConflictError("the topic was deleted meanwhile")
    if state.topic_id != topic_id:
        raise CommitConflictError(
            f"the topic was made anew meanwhile: its id is {state.topic_id}, not {topic_id}"
        )
