"""Cache the results of klog's decoding and replay, which take most of a seed's time.

The rule: only pure functions with immutable results are cached, and only for one seed. A dozen
actors read each commit again and again, where a real process reads it once. With the cache, commits
are replayed one by one. The final checks replay the whole history at once, and one seed in sixteen
caches nothing, so that each way of replaying is tested.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import pytest

from klog.connector.commit_log import commit_json, commit_log, commit_log_reader, state_checkpoint
from klog.connector.commit_log.commit import Commit
from klog.connector.commit_log.commit_log_paths import CheckpointName
from klog.connector.commit_log.state_checkpoint import ReadPart
from klog.connector.commit_log.state_replay import compacted, replay
from klog.connector.commit_log.topic_state import TopicState

REMEMBERS_NOTHING = 16
"""One seed in this many caches nothing."""


class _Memory:
    """Decoded commits and states; keys are identities, so all objects are kept alive."""

    def __init__(self) -> None:
        self._commits: dict[tuple[bytes, int], Commit] = {}
        self._bytes: dict[int, bytes] = {}
        self._checkpoints: dict[bytes, tuple[TopicState, list[tuple[CheckpointName, bytes]]]] = {}
        self._states: dict[tuple[int, bytes], TopicState] = {}
        self._kept: dict[int, TopicState] = {}
        self._read: dict[CheckpointName, TopicState] = {}
        self._decode, self._decode_checkpoint = (
            commit_json.decode_commit,
            state_checkpoint.decode_checkpoint,
        )

    def decode(self, data: bytes, topic: str, version: int) -> Commit:
        commit = self._commits.get((data, version))
        if commit is None:
            commit = self._commits[data, version] = self._decode(data, topic, version)
            self._bytes[id(commit)] = data
        return commit

    def decode_checkpoint(
        self, data: bytes, read_part: ReadPart, topic: str | None = None
    ) -> TopicState:
        """Read the parts each time, as they may be gone, and decode only new checkpoints."""
        known = self._checkpoints.get(data)
        if known is not None and all(_is(read_part, *part) for part in known[1]):
            return known[0]
        parts = []

        def reading(name: CheckpointName) -> bytes:
            parts.append((name, read_part(name)))
            return parts[-1][1]

        state = self._decode_checkpoint(data, reading, topic)
        self._checkpoints[data] = (state, parts)
        return state

    def replay_cached(self, state: TopicState, tail: Iterable[Commit]) -> TopicState:
        name = state.checkpoint
        if name is not None and name.version == state.version:
            state = self._read.setdefault(name, state)
        for commit in tail:
            data = self._bytes.get(id(commit)) or commit_json.encode_commit(commit)
            key = (id(state) if state.version >= 0 else 0, data)
            after = self._states.get(key)
            if after is None:
                after = self._states[key] = compacted(replay(state, [commit]))
                self._kept |= {id(state): state, id(after): after}
            state = after
        return state


def _is(read_part: ReadPart, name: CheckpointName, data: bytes) -> bool:
    try:
        return read_part(name) == data
    except FileNotFoundError:
        return False


@contextmanager
def memoizing(seed: int) -> Iterator[None]:
    """Cache results while the context lasts, if this seed does."""
    with pytest.MonkeyPatch.context() as patch:
        if seed % REMEMBERS_NOTHING:
            memory = _Memory()
            patch.setattr(commit_json, "decode_commit", memory.decode)
            patch.setattr(state_checkpoint, "decode_checkpoint", memory.decode_checkpoint)
            patch.setattr(
                state_checkpoint, "decode_parts", functools.cache(state_checkpoint.decode_parts)
            )
            patch.setattr(commit_log, "replay", memory.replay_cached)
            patch.setattr(commit_log_reader, "replay", memory.replay_cached)
            patch.setattr(commit_log_reader, "compacted", lambda state: state)
        yield
