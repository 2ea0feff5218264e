"""Who changes a topic itself: its config, its partitions, and whether it is there.

The rule: a config is a counter, and each admin adds one to what they saw. A change that was lost
shows as a number that does not follow.
"""

from __future__ import annotations

from collections.abc import Callable

from klog.connector.commit_log import commit_builders
from klog.connector.commit_log.commit import Topic
from klog.errors import CommitConflictError
from tests.simulation.cast import PARTITIONS, Cast
from tests.simulation.world import Actor

Run = Callable[[Actor], None]
COUNTER = "retention.ms"
MOST_PARTITIONS = 4


def create(cast: Cast) -> None:
    """Make the topic before anybody begins."""
    log = cast.log(Actor("creator", lambda actor: None, 0, restarts=False))
    build = commit_builders.create_topic(Topic(cast.world.new_id(), PARTITIONS), {})
    log.commit(log.load(), build, cast.attempt("create-topic"))


def admin(cast: Cast) -> Run:
    """Add one to the config, and sometimes a partition."""

    def run(actor: Actor) -> None:
        log = cast.log(actor)
        while True:
            cast.idle(60)
            state = log.load()
            if not state.topic_id:
                continue
            more = int(state.config.get(COUNTER, "0")) + 1
            build = commit_builders.alter_config(state.topic_id, state.config, {COUNTER: str(more)})
            operation = "alter-config"
            if state.partitions < MOST_PARTITIONS and cast.world.random.random() < 0.3:
                build = commit_builders.add_partitions(state.topic_id, state.partitions + 1)
                operation = "add-partitions"
            try:
                log.commit(state, build, cast.attempt(operation))
            except CommitConflictError:
                cast.world.events[f"refused {operation}"] += 1

    return run


def maker_anew(cast: Cast) -> Run:
    """Delete the topic and make it anew."""

    def run(actor: Actor) -> None:
        log = cast.log(actor)
        while True:
            state = log.load()
            if state.topic_id:
                cast.idle(400)
                build = commit_builders.delete_topic(state.topic_id)
                state = log.commit(state, build, cast.attempt("delete-topic"))
                cast.idle(10)
            topic = Topic(cast.world.new_id(), PARTITIONS)
            try:
                log.commit(
                    state, commit_builders.create_topic(topic, {}), cast.attempt("create-topic")
                )
            except CommitConflictError:
                continue

    return run
