"""Live segments as one sorted table: it has what was added and not taken out, whatever the way."""

from __future__ import annotations

import dis
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import CodeType, FrameType
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from klog.connector.commit_log import live_segments, segment_entries
from klog.connector.commit_log.live_segments import ROW_SCHEMA, LiveSegments
from tests.support.segment_entry import entry_of

Key = tuple[int, int]
keys = st.tuples(st.integers(0, 3), st.integers(0, 40))
changes = st.lists(
    st.tuples(st.just("add"), st.lists(keys, min_size=1, max_size=9, unique=True))
    | st.tuples(st.just("take"), st.lists(keys, min_size=1, max_size=4)),
    max_size=20,
)


def table(pairs: list[Key], version: int = 0) -> pa.Table:
    rows = [{**entry_of(f"{p} {base}", p, base, base + 1), "version": version} for p, base in pairs]
    return pa.Table.from_pylist(rows, ROW_SCHEMA)


def keys_of(segments: LiveSegments) -> list[Any]:
    rows = segments.segments()
    return list(zip(rows["partition"].to_pylist(), rows["base_offset"].to_pylist(), strict=True))


@pytest.mark.parametrize("limits", [(0, 0), (5, 2), (4096, 64)])
@settings(deadline=None)
@given(changes)
def test_segments_are_those_added_and_not_taken_out_in_order(
    limits: tuple[int, int], steps: list[tuple[str, list[Key]]]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(live_segments, "_MAX_RECENT_ROWS", limits[0])
        patch.setattr(live_segments, "_MAX_INSERTIONS", limits[1])
        expected: set[Key] = set()
        first: set[str] = set()
        segments = LiveSegments()
        for number, (change, pairs) in enumerate(steps):
            files = [f"{p} {base}" for p, base in pairs]
            assert segments.live_files_among(files) == {
                f"{p} {base}" for p, base in expected & set(pairs)
            }
            assert segments.live_files_among(files, number - 1) == set()
            assert segments.live_files_among(files, 0) == segments.live_files_among(files) - first
            if change == "add":
                new = [pair for pair in pairs if pair not in expected]
                segments = segments.plus(table(new, number)) if new else segments
                expected.update(new)
                first |= {f"{p} {base}" for p, base in new if not number}
            else:
                segments = segments.without(files)
                expected.difference_update(pairs)
                first.difference_update(files)
            if number % 3:  # A table that was asked for before makes no difference.
                assert keys_of(segments) == sorted(expected)
        assert keys_of(segments) == sorted(expected)
        assert len(segments) == len(expected)
        assert segments == LiveSegments.of(segments.rows())
        assert segments.segments().schema.equals(segment_entries.SCHEMA)


def test_a_live_table_does_not_change() -> None:
    first = LiveSegments.of(table([(1, 5), (0, 3)]))
    second = first.plus(table([(0, 9)], 4))
    third = second.without(["0 3"])
    assert keys_of(first) == [(0, 3), (1, 5)]
    assert keys_of(second) == [(0, 3), (0, 9), (1, 5)]
    assert keys_of(third) == [(0, 9), (1, 5)]
    assert third.rows()["version"].to_pylist() == [4, 0]
    assert first != second
    assert second.without(["0 9"]) == first


def test_an_append_leaves_the_large_table_where_it_is() -> None:
    large = LiveSegments.of(table([(p, base) for p in range(2) for base in range(500)]))
    address = large.rows()["file"].chunk(0).buffers()[2].address
    after = large.plus(table([(0, 600)])).plus(table([(1, 600)])).segments()
    assert {chunk.buffers()[2].address for chunk in after["file"].chunks} >= {address}
    assert after["file"].num_chunks <= 4


@pytest.mark.parametrize("method", ["without", "live_files_among"])
def test_a_checkpoint_may_sort_the_tables_meanwhile(method: str) -> None:
    """Its thread sorts the tables that a writer goes through, between any two steps of it."""
    code = getattr(LiveSegments, method).__code__
    steps = [step.offset for step in dis.get_instructions(code)]
    for step in steps:
        segments = LiveSegments().plus(table([(0, 1)])).plus(table([(0, 2)]))
        expected = getattr(LiveSegments.of(segments.rows()), method)(["0 1"])
        segments = LiveSegments(None, (table([(0, 1)]), table([(0, 2)])))
        with at_step(code, step, segments.rows):
            actual = getattr(segments, method)(["0 1"])
        assert actual == expected


@contextmanager
def at_step(code: CodeType, step: int, do: Callable[[], object]) -> Iterator[None]:
    """Do something when a function comes to one of its steps."""

    def trace(frame: FrameType, event: str, _: object) -> Any:
        if frame.f_code is code:
            frame.f_trace_opcodes = True
            if event == "opcode" and frame.f_lasti == step:
                sys.settrace(None)
                do()
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(before)
