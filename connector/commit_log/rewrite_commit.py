"""Replace segments by others (compaction, merge)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from klog.connector.commit_log import commit_checks, segment_entries
from klog.connector.commit_log.commit import Actions
from klog.connector.commit_log.commit_builders import CommitBuilder
from klog.connector.commit_log.commit_checks import amount_of
from klog.connector.commit_log.topic_state import TopicState
from klog.errors import CommitConflictError


def replace_segments(
    topic_id: str,
    birth: int,
    inputs: Sequence[str],
    outputs: Sequence[segment_entries.SegmentEntry],
    cleaned_to: Mapping[int, int],
) -> CommitBuilder:
    """Put segments in the place of others (compaction, merge), if those are all still live.

    Each output lies where inputs lay side by side; a `ValueError` if not, for the log would hold
    offsets twice.
    """

    def build(state: TopicState) -> Actions:
        commit_checks.check_same_topic(state, topic_id)
        commit_checks.check_base_version(state, birth)
        _, found = segment_entries.split_by_files(state.segments, inputs)
        if len(found) != len(inputs):
            raise CommitConflictError(
                f"{len(inputs) - len(found)} of {len(inputs)} segments to be rewritten are gone: "
                "another job was faster; run it again"
            )
        _check_places(state, found, outputs)
        return Actions(
            add=tuple(outputs),
            remove=tuple(inputs),
            removed=amount_of(found),
            cleaned_to=dict(cleaned_to),
        )

    return build


def _check_places(
    state: TopicState, inputs: pa.Table, outputs: Sequence[segment_entries.SegmentEntry]
) -> None:
    """Refuse outputs that would lie over what is not rewritten, or over each other.

    Each has to fit between the first and the last offset of inputs that lie side by side.
    """
    free: dict[int, list[tuple[int, int]]] = {}
    for partition in pc.unique(inputs["partition"]).to_pylist():
        own = segment_entries.rows_of_partition(inputs, partition)
        begins, behinds = (own[name].to_numpy() for name in ("base_offset", "next_offset"))
        starts = segment_entries.rows_of_partition(state.segments, partition)[
            "base_offset"
        ].to_numpy()
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
