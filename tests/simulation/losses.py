"""Files that vanish from the store while actors run, and what has to hold from then on.

The rule: a loss takes no turn of anybody, and nobody hears of it. From then on

* a load gives the state that the commits of one history lead to, each put on top of the one before,
  or an error that names a file. It is not shorter than what lies on the store shows, unless it goes
  on by number from a state that was listed less than a minute ago;
* nobody commits on top of a lost commit that no checkpoint stands for, unless the commit began less
  than a minute after the loss. Those that did are in what is loaded later, or the load is an error;
* nothing goes that was not free to go: commits above the boundary or without a checkpoint at or
  above them, the newest whole checkpoint, live segments, removed ones inside their grace. A
  cleaning that began before the loss may have read that checkpoint while it was whole;
* who has loaded a commit that another was put in the place of is told so (`knowing.py`);
* nobody hangs;
* with the lost files put back, and nothing in their place, all is as if nothing had been lost.

Where the last commits are lost nothing may be left that shows it. Others that never loaded them may
then go on from the commit before: what is asked of that history is only that it is one.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from klog.connector.commit_log import commit_expiration, topic_vacuum
from klog.connector.commit_log.commit import Commit
from klog.connector.commit_log.commit_builders import CommitBuilder
from klog.connector.commit_log.commit_info import CommitInfo
from klog.connector.commit_log.commit_log import CommitLog
from klog.connector.commit_log.commit_log_paths import (
    CheckpointName,
    TopicPaths,
    parse_checkpoint_name,
    parse_commit_version,
    parse_sidecar_name,
)
from klog.connector.commit_log.commit_log_reader import LISTING_INTERVAL_MS
from klog.connector.commit_log.segment_path import parse_segment_path
from klog.connector.commit_log.state_replay import replay
from klog.connector.commit_log.topic_state import TopicState
from klog.jobs.verifying.check_commit_log import verify_log
from tests.simulation import knowing, on_store, writers
from tests.simulation.cast import ROOT, TOPIC, Cast
from tests.simulation.checks import history
from tests.simulation.knowing import check_known
from tests.simulation.on_store import name_of, version_of
from tests.simulation.scene import GRACE_MS, STEP_MS
from tests.simulation.world import Actor, FoundError

WINDOW = LISTING_INTERVAL_MS // STEP_MS + 2
"""So many steps a process may go on without a listing; clocks are up to a step off."""
VERB_STEPS = 3000


@dataclass(frozen=True, slots=True)
class WatchedLog(CommitLog):
    """A topic's log whose loads and commits are looked at once files were lost."""

    losses: Losses = field(kw_only=True)

    def load(self, cached: TopicState | None = None) -> TopicState:
        """Load, and compare with what the store shows."""
        is_listed = cached is None or self.is_listing_due(cached)
        self.losses.note_load()
        least = self.losses.least(is_listed=is_listed)
        state = CommitLog.load(self, cached)
        self.losses.check_load(state, max(least, -1 if cached is None else cached.version))
        if cached is not None:
            check_known(cached, state)
        if cached is None and not self.has_description and state.version >= 0:
            raise FoundError(f"{self.paths.description} is lost, and version {state.version} given")
        return state

    def commit(self, state: TopicState, build: CommitBuilder, attempt: CommitInfo) -> TopicState:
        """Commit, and look what it was put on top of."""
        holes, there = self.losses.holes(), self.losses.versions()
        after = CommitLog.commit(self, state, build, attempt)
        check_known(state, after)
        if (version := after.writes.get(attempt.write_id)) is not None:
            self.losses.check_commit(attempt.write_id, version, holes, there)
        return after


@dataclass(frozen=True, slots=True)
class _Before:
    """What was free to go when the files were lost."""

    boundary: int
    checkpoint: CheckpointName | None


class Losses:
    """What one world loses, and what its actors were told since."""

    def __init__(self, cast: Cast, steps: int) -> None:
        """Draw when; what it is depends on what there is by then."""
        self._cast, self._world, self._disk = cast, cast.world, cast.world.disk
        self._random = Random(f"lost by {cast.world.seed}")
        self._at = self._random.randrange(steps // 4, steps * 3 // 4)
        self._lost_at = -1
        self._before = _Before(-1, None)
        self._known = TopicState()
        """What a process has loaded just before."""
        self._lost_versions: set[int] = set()
        self._acknowledged: dict[str, int] = {}
        self._loaded_at: dict[object, int] = {}
        """By actor, when their last load began: a cleaning begins with one."""
        self._created_at: list[int] = []
        self._previous: dict[str, set[str]] = {}
        """By write: one that is lost may be put again, on top of another commit."""
        self._parsed = 0
        self._truth: tuple[int, TopicState] = (-1, TopicState())

    def watched(self, log: CommitLog) -> WatchedLog:
        """Give the same log, looked at; who makes it looks for `topic.json`, as a root does."""
        is_described = self._disk.get(log.paths.description) is not None
        return WatchedLog(
            log.store, log.paths, log.clock, log.wait, has_description=is_described, losses=self
        )

    def step(self) -> None:
        """Note when commits were made; lose files when it is time and there are any."""
        more = len(self._disk.created) - len(self._created_at)
        self._created_at += [self._world.now] * more
        if self._lost_at < 0 and self._world.now >= self._at:
            self._lose()

    def _lose(self) -> None:
        files = self._drawn(self._world.scene.loses)
        if not files:
            return
        self._before = _Before(
            on_store.boundary(self._disk), on_store.newest_checkpoint(self._disk)
        )
        self._known = replay(TopicState(), history(self._world))
        tip = max(self.versions(), default=-1)
        for path in files:
            self._world.lost[path] = self._disk.take(path)
            self._world.events[f"lost {_kind(path)}"] += 1
        lost = {parse_commit_version(name_of(path)) for path in files if "/log/" in path}
        self._lost_versions = {version for version in lost if version is not None}
        self._world.may_go_back = tip in self._lost_versions
        self._disk.on_remove = self._check_removed
        self._lost_at = self._world.now

    def _drawn(self, kind: str) -> list[str]:
        """Draw files of a kind: one or several, a run of the last ones, or of all kinds."""
        random, paths = self._random, sorted(self._disk.paths())
        if kind == "overtaken commit":
            return self._overtaken()
        if kind == "any":
            return random.sample(paths, min(len(paths), random.randrange(1, 6)))
        own = [path for path in paths if _kind(path) == kind.removesuffix("s").split()[-1]]
        if kind == "last commit":
            return own[-random.randrange(1, 4) :]
        if "commit" in kind:
            own = own[:-1] if random.random() < 0.5 else own[-4:-1]  # Writers may be below these.
        if not own:
            return []
        if kind == "commits":
            first, many = random.randrange(len(own)), random.randrange(2, 5)
            return own[first : first + many] if random.random() < 0.5 else _few(random, own, many)
        return [random.choice(own[-2:] if kind in ("checkpoint", "boundary") else own)]

    def _overtaken(self) -> list[str]:
        """Choose a commit with one above it, whose number another writer is just about to put."""
        there = self.versions()
        for path in sorted(self._world.coming_puts()):
            version = version_of(path)
            if version in there and version + 1 in there:
                return [path]
        return []

    def holes(self) -> list[int]:
        """Give the lost commits on top of which nobody may commit any more who begins now."""
        if self._lost_at < 0 or self._world.now - self._lost_at <= WINDOW:
            return []
        newest = on_store.newest_checkpoint(self._disk)
        stood_for = max(on_store.boundary(self._disk), -1 if newest is None else newest.version)
        return sorted(self._lost_versions - self.versions() - set(range(stood_for + 1)))

    def least(self, *, is_listed: bool) -> int:
        """Give the highest version that the store shows; for one who lists nothing, to all."""
        if self._lost_at < 0:
            return -1
        until = self._world.now - (0 if is_listed else WINDOW)
        if self._lost_at > until:
            return -1
        there = self.versions()
        old = [
            version
            for (path, _), at in zip(self._disk.created, self._created_at, strict=False)
            if at <= until and (version := version_of(path)) is not None and version in there
        ]
        newest = on_store.newest_checkpoint(self._disk) if is_listed else None
        return max([*old, -1 if newest is None else newest.version])

    def versions(self) -> set[int]:
        """Return the commits that are there."""
        return on_store.versions(self._disk)

    def note_load(self) -> None:
        """Note that the actor whose code runs begins a load."""
        self._loaded_at[self._world.acting()] = self._world.now

    def check_load(self, state: TopicState, least: int) -> None:
        """Look at what a load gave."""
        if self._lost_at < 0:
            return
        if state.version < least:
            raise FoundError(f"a load gave version {state.version}, the store shows {least}")
        self._parse()
        before = ""
        for write_id in state.writes:
            if before not in self._previous.get(write_id, ()):
                raise FoundError(f"a load gave {write_id} on top of {before or 'nothing'}")
            before = write_id

    def check_commit(self, write_id: str, version: int, holes: list[int], before: set[int]) -> None:
        """Look at a commit that was acknowledged; `before` are those that were there before it."""
        if self._lost_at < 0:
            return
        if version + 1 in before:
            raise FoundError(f"version {version} was acknowledged below one that was there")
        there = self.versions()
        if below := [hole for hole in holes if hole < version and hole not in there]:
            raise FoundError(f"version {version} was acknowledged on top of lost {below}")
        lost = self._world.lost.get(TopicPaths(ROOT, TOPIC).commit(version), b"{}")
        if json.loads(lost).get("writeId") != write_id:  # It was put before the loss otherwise.
            self._acknowledged[write_id] = version

    def check_damaged(self) -> None:
        """Let everybody do their work once with the files lost, undisturbed."""
        cast = self._cast

        def load(actor: Actor) -> None:
            self._check_acknowledged(cast.log(actor))

        def append(actor: Actor) -> None:
            writers.batch_writer(cast, f"after {self._world.now}", 1)(actor)

        verbs: dict[str, Callable[[Actor], object]] = {
            "load": load,
            "vacuum": lambda actor: topic_vacuum.vacuum(
                cast.log(actor), cast.attempt("vacuum"), GRACE_MS
            ),
            "clean": lambda actor: commit_expiration.expire_log(cast.log(actor), 0),
            "append": append,
            "load again": load,
            **knowing.verbs(cast, self._known),
        }
        for name, verb in verbs.items():
            self._run(name, verb)

    def _check_acknowledged(self, log: CommitLog) -> None:
        """Look for commits that were acknowledged and that no load reads, nor `verify` tells of.

        Those at or below the boundary are cleaned, and nobody can tell of them any more.
        """
        state = log.load()
        lost = {
            version: write_id
            for write_id, version in self._acknowledged.items()
            if write_id not in state.writes and version > on_store.boundary(self._disk)
        }
        if not lost:
            return
        forks = [one for one in verify_log(log).findings if one.kind == "fork"]
        for version, write_id in lost.items():
            path = log.paths.commit(version)
            if not any(one.file == path and write_id in one.reason for one in forks):
                raise FoundError(f"{path} ({write_id}) was acknowledged, not loaded and not told")
            self._world.events["fork told"] += 1

    def _run(self, name: str, verb: Callable[[Actor], object]) -> None:
        def run(actor: Actor) -> None:
            verb(actor)

        self._world.add(name, run, restarts=False)
        for _ in range(VERB_STEPS):
            if not self._world.actors:
                return
            self._world.step()
            self.step()
        if not self._world.may_go_back and not cast_is_deleted(self._cast):
            raise FoundError(f"{name} does not end after files were lost")
        self._world.stop()

    def put_back(self) -> bool:
        """Put the lost files back; tells whether nothing had been put in the place of commits."""
        lost, self._world.lost = self._world.lost, {}
        self._lost_at, self._disk.on_remove = -1, None
        for path, data in lost.items():
            if version_of(path) is not None and self._disk.get(path) not in (None, data):
                self._world.events["put in the place of a lost commit"] += 1
                return False
        for path, data in lost.items():
            if self._disk.get(path) is None:
                self._disk.put(path, data)
        made = [
            version for path, _ in self._disk.created if (version := version_of(path)) is not None
        ]
        if len(set(made)) < len(made):  # It has gone again, or it was the same commit once more.
            return False
        self._world.may_go_back = False
        self._world.events["put back"] += 1
        return True

    def _check_removed(self, path: str, by: object) -> None:
        if (name := parse_checkpoint_name(name_of(path))) is not None and "/parts/" not in path:
            self._check_checkpoint_removed(path, name)
        beside = parse_sidecar_name(name_of(path))
        version = version_of(path) if beside is None else beside.version
        if version is not None and version > self._before.boundary:
            newest = on_store.newest_checkpoint(self._disk)
            began_before = self._loaded_at.get(by, self._lost_at) < self._lost_at
            if began_before and self._before.checkpoint is not None:
                newest = max(self._before.checkpoint, newest or self._before.checkpoint)
            stood_for = -1 if newest is None else newest.version
            if version > min(stood_for, on_store.boundary(self._disk)):
                raise FoundError(f"{path} was deleted, and nothing stands for it")
        relative = path.removeprefix(f"{ROOT}/")
        if parse_segment_path(relative) is not None and not self._world.may_go_back:
            self._check_segment_removed(relative)

    def _check_checkpoint_removed(self, path: str, name: CheckpointName) -> None:
        before = self._before.checkpoint
        if on_store.is_whole(self._disk, path) and (before is None or name >= before):
            newest = on_store.newest_checkpoint(self._disk)
            if newest is None or newest <= name:
                raise FoundError(f"{path}, the newest whole checkpoint, was deleted")

    def _check_segment_removed(self, file: str) -> None:
        many, state = self._truth
        if many != len(self._disk.created):
            state = replay(TopicState(), _chained(history(self._world)))
            self._truth = (len(self._disk.created), state)
        if file in state.segments["file"].to_pylist():
            raise FoundError(f"live file {file} was deleted after others were lost")
        at = {row["file"]: row["timestamp_ms"] for row in state.removed.to_pylist()}.get(file)
        now = self._world.clock(Actor("", lambda actor: None, 0, restarts=False))
        is_young = at is not None and now - at < GRACE_MS - 2 * STEP_MS
        if is_young and not self._world.scene.apart:
            raise FoundError(f"removed file {file} was deleted inside its grace")

    def _parse(self) -> None:
        for path, data in self._disk.created[self._parsed :]:
            if version_of(path) is not None:
                said = json.loads(data)
                self._previous.setdefault(said["writeId"], set()).add(said["previousWriteId"])
        self._parsed = len(self._disk.created)


def cast_is_deleted(cast: Cast) -> bool:
    """Tell whether the topic is deleted, so that who appends waits for another."""
    past = history(cast.world)
    return not replay(TopicState(), _chained(past)).topic_id


def _chained(past: list[Commit]) -> list[Commit]:
    """Give the commits up to the first that was put on top of another history."""
    last = ""
    for number, commit in enumerate(past):
        if commit.previous_write_id != last:
            return past[:number]
        last = commit.write_id
    return past


def _few(random: Random, paths: list[str], many: int) -> list[str]:
    return random.sample(paths, min(many, len(paths)))


def _kind(path: str) -> str:
    folders = {
        "/log/": "commit",
        "/sidecars/": "sidecar",
        "/checkpoints/": "checkpoint",
        "/parts/": "part",
        "/gc/": "boundary",
        "/pins/": "pin",
        "/topic.json": "description",
    }
    return next((kind for folder, kind in folders.items() if folder in path), "segment")
