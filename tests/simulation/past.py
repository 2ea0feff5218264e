"""Actors that load earlier versions of the log, and what such a load may give.

The rule: a load of a version gives what the commits up to it, in the order that they were created,
lead to; or it is refused because the version expired, or because the topic was deleted or created
again. A version at or above the last expired one on the store is never refused as expired.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from klog.connector.commit_log.commit import Commit
from klog.connector.commit_log.commit_log import CommitLog
from klog.connector.commit_log.past_versions import load_version
from klog.connector.commit_log.state_replay import replay
from klog.connector.commit_log.topic_state import TopicState
from klog.errors import OptionError
from tests.simulation import on_store
from tests.simulation.cast import Cast
from tests.simulation.checks import check_same, history
from tests.simulation.readers import read_all
from tests.simulation.world import Actor, ViolationError

CHECKED_VERSIONS = 8
"""So many versions are loaded at the end of a run."""


def past_reader(cast: Cast, name: str) -> Callable[[Actor], None]:
    """Load a random version again and again, and read all of it that is still there."""

    def run(actor: Actor) -> None:
        log = cast.log(actor)
        while True:
            cast.idle(cast.world.random.choice([5, 20, 60]))
            current = log.load()
            if current.version >= 0:
                version = cast.world.random.randrange(current.version + 1)
                state = load_past(cast, log, version, current)
                if state is not None:
                    read_all(cast, log, state, name, 0)

    return run


def check_past(cast: Cast, log: CommitLog) -> None:
    """Load the last expired version, and some of the others, without faults."""
    current, last_expired = log.load(), on_store.last_expired(cast.world.disk)
    versions = {max(last_expired - 1, 0), max(last_expired, 0), last_expired + 1, current.version}
    for _ in range(CHECKED_VERSIONS - len(versions)):
        versions.add(cast.world.random.randrange(current.version + 1))
    for version in sorted(version for version in versions if version <= current.version):
        load_past(cast, log, version, current)


def load_past(cast: Cast, log: CommitLog, version: int, current: TopicState) -> TopicState | None:
    """Load a version, and compare it with the history; return None if it was rightly refused."""
    try:
        state = load_version(log, version, current)
    except OptionError as exc:
        if not cast.world.lost:
            _check_refusal(cast, version, current, str(exc))
        return None
    if not cast.world.may_go_back:
        check_same(state, _expected(history(cast.world), version))
    return state


def _check_refusal(cast: Cast, version: int, current: TopicState, reason: str) -> None:
    expected = _expected(history(cast.world), version)
    if expected.topic_id not in ("", current.topic_id) or not expected.topic_id:
        return
    last_expired = on_store.last_expired(cast.world.disk)
    if "has expired" not in reason or version >= last_expired:
        raise ViolationError(
            f"version {version} was refused, the last expired one is {last_expired}: {reason}"
        )


def _expected(past: Sequence[Commit], version: int) -> TopicState:
    return replay(TopicState(), past[: version + 1])
