"""The commit that replaces segments by others (compaction, merge).

The rule: it lands only if every input is still live, its outputs overlap neither each other nor a
segment that is not replaced, and no restore came after it was planned: the inputs may be live then
without the records that made others obsolete.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from klog.connector import arrow_compute as pc
from klog.connector.commit_log import commit_checks, segment_entries
from klog.connector.commit_log.commit import Actions
from klog.connector.commit_log.commit_builders import CommitBuilder
from klog.connector.commit_log.commit_checks import amount_of
from klog.connector.commit_log.topic_state import TopicState
from klog.errors import CommitConflictError


def replace_segments(
    topic_id: str,
    base_version: int,
    inputs: Sequence[str],
    outputs: Sequence[segment_entries.SegmentEntry],
    cleaned_to: Mapping[int, int],
) -> CommitBuilder:
    """Return the builder of a commit that replaces segments, if all of them are still live.

    Args:
        topic_id: The id of the topic.
        base_version: The version of the log that the rewrite was planned on.
        inputs: The files of the segments to replace.
        outputs: The new segments. Each must lie within the offsets of neighbouring inputs.
        cleaned_to: By partition, the offset up to which the log cleaner has cleaned.

    Returns:
        The builder. It raises `CommitConflictError` if an input is no longer live, and `ValueError`
        if the log would have an offset twice.
    """

    def build(state: TopicState) -> Actions:
        commit_checks.check_same_topic(state, topic_id)
        commit_checks.check_base_version(state, base_version)
        commit_checks.check_not_restored(state, base_version)
        _, input_rows = segment_entries.split_by_files(state.segments, inputs)
        if len(input_rows) != len(inputs):
            raise CommitConflictError(
                f"{len(inputs) - len(input_rows)} of {len(inputs)} segments to rewrite were "
                "replaced by a concurrent commit; run it again"
            )
        _check_offsets(state, input_rows, outputs)
        return Actions(
            add=tuple(outputs),
            remove=tuple(inputs),
            removed=amount_of(input_rows),
            cleaned_to=dict(cleaned_to),
        )

    return build


def _check_offsets(
    state: TopicState, inputs: pa.Table, outputs: Sequence[segment_entries.SegmentEntry]
) -> None:
    """Refuse outputs that overlap a segment that is not rewritten, or each other.

    Each must fit between the first and the last offset of neighbouring inputs.
    """
    free_ranges: dict[int, list[tuple[int, int]]] = {}
    for partition in pc.unique(inputs["partition"]).to_pylist():
        rows = segment_entries.rows_of_partition(inputs, partition)
        base_offsets, next_offsets = (
            rows[name].to_numpy() for name in ("base_offset", "next_offset")
        )
        starts = segment_entries.rows_of_partition(state.segments, partition)[
            "base_offset"
        ].to_numpy()
        last_neighbours = np.flatnonzero(np.diff(np.searchsorted(starts, base_offsets)) != 1)
        firsts, lasts = (
            base_offsets[np.append(0, last_neighbours + 1)],
            next_offsets[np.append(last_neighbours, len(rows) - 1)],
        )
        free_ranges[partition] = list(zip(firsts.tolist(), lasts.tolist(), strict=True))
    for output in sorted(outputs, key=lambda entry: (entry["partition"], entry["base_offset"])):
        ranges = free_ranges.get(output["partition"], [])
        while ranges and ranges[0][1] < output["next_offset"]:
            ranges.pop(0)
        if not ranges or output["base_offset"] < ranges[0][0]:
            raise ValueError(
                f"{output['file']} of offsets {output['base_offset']} to {output['next_offset']} "
                "does not lie within the offsets of neighbouring inputs"
            )
        ranges[0] = (output["next_offset"], ranges[0][1])
