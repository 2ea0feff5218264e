"""A process that has loaded the log's last commit before files were lost, and is asked afterwards.

The rule: what is loaded from a state has the last commit of that state, or the load is an error,
whatever others have put in its place. Only of a commit so old that the log no longer remembers its
write can nobody tell.
"""

from __future__ import annotations

from collections.abc import Callable

from klog.connector.commit_log.topic_state import TopicState
from tests.simulation import writers
from tests.simulation.cast import Cast
from tests.simulation.world import Actor, FoundError


def check_known(known: TopicState, state: TopicState) -> None:
    """Look whether a state has the last commit of the one that it was loaded from."""
    if known.version < 0 or not state.remembers(known.version):
        return
    if state.writes.get(known.last_write_id) != known.version:
        raise FoundError(
            f"version {state.version} was given to who knows {known.last_write_id} as version "
            f"{known.version}, and does not have it"
        )


def verbs(cast: Cast, known: TopicState) -> dict[str, Callable[[Actor], object]]:
    """Return what such a process does: it reads, and it writes."""

    def append(actor: Actor) -> None:
        if not known.topic_id:
            return
        log, owner = cast.log(actor), (f"known {known.version}", "", 0)
        staged = writers.stage(cast, log, known, owner)
        writers.commit(cast, log, known, staged, None, cast.attempt("append"))
        cast.acknowledged.add(owner)

    return {
        "load what is known": lambda actor: cast.log(actor).load(known),
        "append to what is known": append,
    }
