"""A process that loaded the log's last commit before files were lost, and continues afterwards.

The rule: a load from a cached state has the last commit of that state, or it is an error, whatever
others have put in its place. The exception is a commit so old that the log no longer has its write
id.
"""

from __future__ import annotations

from collections.abc import Callable

from klog.connector.commit_log.topic_state import TopicState
from tests.simulation import writers
from tests.simulation.cast import Cast
from tests.simulation.world import Actor, ViolationError


def check_known(known: TopicState, state: TopicState) -> None:
    """Check that a state has the last commit of the state that it was loaded from."""
    if known.version < 0 or not state.remembers(known.version):
        return
    if state.writes.get(known.last_write_id) != known.version:
        raise ViolationError(
            f"a load from version {known.version} ({known.last_write_id}) gave version "
            f"{state.version}, which does not have that commit"
        )


def verbs(cast: Cast, known: TopicState) -> dict[str, Callable[[Actor], object]]:
    """Return what such a process does: a load and an append."""

    def append(actor: Actor) -> None:
        if not known.topic_id:
            return
        log, owner = cast.log(actor), (f"known {known.version}", "", 0)
        staged = writers.stage(cast, log, known, owner)
        writers.commit(cast, log, known, staged, None, cast.attempt("append"))
        cast.acknowledged.add(owner)

    return {
        "load from a cached state": lambda actor: cast.log(actor).load(known),
        "append to a cached state": append,
    }
