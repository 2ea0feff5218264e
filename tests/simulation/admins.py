"""Actors that change a topic itself: its config and partitions, its version, its existence.

The rule: a config is a counter, and each admin adds one to the value that it loaded. A lost change
shows as a gap in the numbers.
"""

from __future__ import annotations

from collections.abc import Callable

from klog.connector.commit_log import commit_builders, topic_restore, topic_undelete
from klog.connector.commit_log.commit import UNDELETE, Topic
from klog.connector.commit_log.commit_log import CommitLog
from klog.errors import CommitConflictError, OptionError
from tests.simulation.cast import PARTITIONS, Cast
from tests.simulation.world import Actor

Run = Callable[[Actor], None]
COUNTER = "retention.ms"
MAX_PARTITIONS = 4


def create(cast: Cast) -> None:
    """Create the topic before any actor begins."""
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
            if state.partitions < MAX_PARTITIONS and cast.world.random.random() < 0.3:
                build = commit_builders.add_partitions(state.topic_id, state.partitions + 1)
                operation = "add-partitions"
            try:
                log.commit(state, build, cast.attempt(operation))
            except CommitConflictError:
                cast.world.events[f"refused {operation}"] += 1

    return run


def restorer(cast: Cast) -> Run:
    """Restore one of the last versions, and sometimes what was before a restore."""

    def run(actor: Actor) -> None:
        log = cast.log(actor)
        while True:
            cast.idle(40)
            state = log.load()
            if not state.topic_id:
                continue
            version = max(state.version - cast.world.random.choice([1, 2, 4, 8, 16]), 0)
            if state.restores and cast.world.random.random() < 0.3:
                version = state.restores[-1].version - 1
            try:
                topic_restore.restore_log(log, state, version, cast.attempt("restore"))
            except (CommitConflictError, OptionError):
                cast.world.events["refused restore"] += 1
            else:
                cast.world.events["restored"] += 1

    return run


def recreator(cast: Cast) -> Run:
    """Delete the topic and create it again, or bring it back."""

    def run(actor: Actor) -> None:
        log, is_undeleted = cast.log(actor), cast.world.scene.is_undeleted
        while True:
            state = log.load()
            if state.topic_id:
                cast.idle(60 if is_undeleted else 400)
                build = commit_builders.delete_topic(state.topic_id)
                state = log.commit(state, build, cast.attempt("delete-topic"))
                cast.idle(10)
            if is_undeleted and cast.world.random.random() < 0.7:
                _undelete(cast, log)
                continue
            topic = Topic(cast.world.new_id(), PARTITIONS)
            try:
                log.commit(
                    state, commit_builders.create_topic(topic, {}), cast.attempt("create-topic")
                )
            except CommitConflictError:
                continue

    return run


def undeleter(cast: Cast) -> Run:
    """Bring the topic back whenever it is deleted."""

    def run(actor: Actor) -> None:
        log = cast.log(actor)
        while True:
            cast.idle(20)
            if not log.load().topic_id:
                _undelete(cast, log)

    return run


def _undelete(cast: Cast, log: CommitLog) -> None:
    try:
        topic_undelete.undelete_log(log, log.load(), cast.attempt(UNDELETE))
    except (CommitConflictError, OptionError):
        cast.world.events["refused undelete"] += 1
    else:
        cast.world.events["undeleted"] += 1
