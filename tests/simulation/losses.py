"""Files that vanish from the store while actors run, and the invariants from then on.

The rule: a loss takes no actor's turn, and no actor is notified. From then on

* a load gives the state of one history, in which each commit follows the previous one, or an error
  that names a file. It is at least as new as the files on the store show, unless it continues
  version by version from a state that was listed less than a minute ago;
* no commit follows a lost commit without a checkpoint that covers it, unless the commit began less
  than a minute after the loss. Later loads have those commits, or are errors;
* nothing is deleted too early: commits after the last expired version or without a checkpoint at or
  after them, the newest complete checkpoint, live segments, removed ones inside their grace. An
  expiration that began before the loss may have read that checkpoint while it was complete;
* a process that has loaded a commit which another replaced gets an error (`knowing.py`);
* nothing hangs;
* after the lost files are restored, if nothing replaced them, all is as if nothing had been lost.

If the last commits are lost, nothing on the store may show it. Actors that never loaded them may
then continue from the commit before: the only invariant is that there is one history.
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
from tests.simulation.world import Actor, ViolationError

WINDOW = LISTING_INTERVAL_MS // STEP_MS + 2
"""The steps for which a process may go without a listing; clocks are up to a step off."""
VERB_STEPS = 3000


@dataclass(frozen=True, slots=True)
class WatchedLog(CommitLog):
    """A topic's log whose loads and commits are checked after files were lost."""

    losses: Losses = field(kw_only=True)

    def load(self, cached: TopicState | None = None) -> TopicState:
        """Load, and compare the state with the files on the store."""
        is_listed = cached is None or self.is_listing_due(cached)
        self.losses.note_load()
        min_version = self.losses.min_version(is_listed=is_listed)
        state = CommitLog.load(self, cached)
        self.losses.check_load(state, max(min_version, -1 if cached is None else cached.version))
        if cached is not None:
            check_known(cached, state)
        if cached is None and not self.has_description and state.version >= 0:
            raise ViolationError(
                f"{self.paths.description} is lost, and a load gave version {state.version}"
            )
        return state

    def commit(self, state: TopicState, build: CommitBuilder, attempt: CommitInfo) -> TopicState:
        """Commit, and check the commits before it."""
        uncovered_versions, present = self.losses.uncovered_versions(), self.losses.versions()
        after = CommitLog.commit(self, state, build, attempt)
        check_known(state, after)
        if (version := after.writes.get(attempt.write_id)) is not None:
            self.losses.check_commit(attempt.write_id, version, uncovered_versions, present)
        return after


@dataclass(frozen=True, slots=True)
class _Before:
    """What could expire when the files were lost."""

    last_expired: int
    checkpoint: CheckpointName | None


class Losses:
    """The lost files of a world, and what its actors have seen since."""

    def __init__(self, cast: Cast, steps: int) -> None:
        """Draw the time of the loss; which files are lost depends on the files at that time."""
        self._cast, self._world, self._disk = cast, cast.world, cast.world.disk
        self._random = Random(f"lost by {cast.world.seed}")
        self._at = self._random.randrange(steps // 4, steps * 3 // 4)
        self._lost_at = -1
        self._before = _Before(-1, None)
        self._known = TopicState()
        """The state that a process loaded just before."""
        self._lost_versions: set[int] = set()
        self._acknowledged: dict[str, int] = {}
        self._loaded_at: dict[object, int] = {}
        """The start of each actor's last load: an expiration begins with one."""
        self._created_at: list[int] = []
        self._previous: dict[str, set[str]] = {}
        """By write id: a lost commit may be put again after another commit."""
        self._parsed = 0
        self._replayed: tuple[int, TopicState] = (-1, TopicState())

    def wrap_log(self, log: CommitLog) -> WatchedLog:
        """Return the same log with checks; it looks for `topic.json` as a root does."""
        is_described = self._disk.get(log.paths.description) is not None
        return WatchedLog(
            log.store, log.paths, log.clock, log.wait, has_description=is_described, losses=self
        )

    def step(self) -> None:
        """Record when commits were made; lose files when it is time and there are any."""
        more = len(self._disk.created) - len(self._created_at)
        self._created_at += [self._world.now] * more
        if self._lost_at < 0 and self._world.now >= self._at:
            self._lose()

    def _lose(self) -> None:
        files = self._drawn(self._world.scene.loses)
        if not files:
            return
        self._before = _Before(
            on_store.last_expired(self._disk), on_store.newest_checkpoint(self._disk)
        )
        self._known = replay(TopicState(), history(self._world))
        tip = max(self.versions(), default=-1)
        for path in files:
            self._world.lost[path] = self._disk.lose(path)
            self._world.events[f"lost {_kind(path)}"] += 1
        lost = {parse_commit_version(name_of(path)) for path in files if "/log/" in path}
        self._lost_versions = {version for version in lost if version is not None}
        self._world.may_go_back = tip in self._lost_versions
        self._disk.on_remove = self._check_removed
        self._lost_at = self._world.now

    def _drawn(self, kind: str) -> list[str]:
        """Draw files of a kind: one or several, some of the last, or of any kind."""
        random, paths = self._random, sorted(self._disk.paths())
        if kind == "contested commit":
            return self._contested_commit()
        if kind == "any":
            return random.sample(paths, min(len(paths), random.randrange(1, 6)))
        own = [path for path in paths if _kind(path) == kind.removesuffix("s").split()[-1]]
        if kind == "last commit":
            return own[-random.randrange(1, 4) :]
        if "commit" in kind:
            own = own[:-1] if random.random() < 0.5 else own[-4:-1]  # Writers may be at these.
        if not own:
            return []
        if kind == "commits":
            first, count = random.randrange(len(own)), random.randrange(2, 5)
            return own[first : first + count] if random.random() < 0.5 else _few(random, own, count)
        return [random.choice(own[-2:] if kind in ("checkpoint", "expiration") else own)]

    def _contested_commit(self) -> list[str]:
        """Return a commit, but not the last, whose version another writer is about to put."""
        present = self.versions()
        for path in sorted(self._world.coming_puts()):
            version = version_of(path)
            if version in present and version + 1 in present:
                return [path]
        return []

    def uncovered_versions(self) -> list[int]:
        """Return the lost commits after which a commit that begins now must fail."""
        if self._lost_at < 0 or self._world.now - self._lost_at <= WINDOW:
            return []
        newest = on_store.newest_checkpoint(self._disk)
        stood_for = max(on_store.last_expired(self._disk), -1 if newest is None else newest.version)
        return sorted(self._lost_versions - self.versions() - set(range(stood_for + 1)))

    def min_version(self, *, is_listed: bool) -> int:
        """Return the highest version that a load must reach, with or without a listing."""
        if self._lost_at < 0:
            return -1
        until = self._world.now - (0 if is_listed else WINDOW)
        if self._lost_at > until:
            return -1
        present = self.versions()
        old = [
            version
            for (path, _), at in zip(self._disk.created, self._created_at, strict=False)
            if at <= until and (version := version_of(path)) is not None and version in present
        ]
        newest = on_store.newest_checkpoint(self._disk) if is_listed else None
        return max([*old, -1 if newest is None else newest.version])

    def versions(self) -> set[int]:
        """Return the versions of the commits on the store."""
        return on_store.versions(self._disk)

    def note_load(self) -> None:
        """Record that the current actor begins a load."""
        self._loaded_at[self._world.current_actor()] = self._world.now

    def check_load(self, state: TopicState, min_version: int) -> None:
        """Check the state of a load."""
        if self._lost_at < 0:
            return
        if state.version < min_version:
            raise ViolationError(
                f"a load gave version {state.version}, the store shows {min_version}"
            )
        self._parse()
        before = ""
        for write_id in state.writes:
            if before not in self._previous.get(write_id, ()):
                raise ViolationError(f"a load gave {write_id} after {before or 'nothing'}")
            before = write_id

    def check_commit(
        self, write_id: str, version: int, uncovered_versions: list[int], before: set[int]
    ) -> None:
        """Check an acknowledged commit; `before` are the versions on the store before it."""
        if self._lost_at < 0:
            return
        present = self.versions()
        # Both may be lost after the commit began, and then nothing shows that they were there.
        if version + 1 in before & present:
            raise ViolationError(f"version {version} was acknowledged, but the next one existed")
        if below := [
            lost_version
            for lost_version in uncovered_versions
            if lost_version < version and lost_version not in present
        ]:
            raise ViolationError(f"version {version} was acknowledged after lost {below}")
        lost = self._world.lost.get(TopicPaths(ROOT, TOPIC).commit(version), b"{}")
        if json.loads(lost).get("writeId") != write_id:  # Otherwise it was put before the loss.
            self._acknowledged[write_id] = version

    def check_damaged(self) -> None:
        """Run each operation once without faults while the files are lost."""
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
            "expire": lambda actor: commit_expiration.expire_log(cast.log(actor), 0),
            "append": append,
            "load again": load,
            **knowing.verbs(cast, self._known),
        }
        for name, verb in verbs.items():
            self._run(name, verb)

    def _check_acknowledged(self, log: CommitLog) -> None:
        """Check that a load or `verify` finds each acknowledged commit.

        Expired commits are gone, and nothing can find them any more.
        """
        state = log.load()
        lost = {
            version: write_id
            for write_id, version in self._acknowledged.items()
            if write_id not in state.writes and version > on_store.last_expired(self._disk)
        }
        if not lost:
            return
        forks = [finding for finding in verify_log(log).findings if finding.kind == "fork"]
        for version, write_id in lost.items():
            path = log.paths.commit(version)
            if not any(finding.file == path and write_id in finding.reason for finding in forks):
                raise ViolationError(
                    f"{path} ({write_id}) was acknowledged, not loaded and not reported"
                )
            self._world.events["fork reported"] += 1

    def _run(self, name: str, verb: Callable[[Actor], object]) -> None:
        def run(actor: Actor) -> None:
            verb(actor)

        self._world.add(name, run, restarts=False)
        for _ in range(VERB_STEPS):
            if not self._world.actors:
                return
            self._world.step()
            self.step()
        if not self._world.may_go_back and not is_topic_deleted(self._cast):
            raise ViolationError(f"{name} does not end after files were lost")
        self._world.stop()

    def put_back(self) -> bool:
        """Restore the lost files; return False if another file replaced a commit."""
        lost, self._world.lost = self._world.lost, {}
        self._lost_at, self._disk.on_remove = -1, None
        for path, data in lost.items():
            if version_of(path) is not None and self._disk.get(path) not in (None, data):
                self._world.events["lost commit replaced"] += 1
                return False
        for path, data in lost.items():
            if self._disk.get(path) is None:
                self._disk.put(path, data)
        versions = [
            version for path, _ in self._disk.created if (version := version_of(path)) is not None
        ]
        if len(set(versions)) < len(versions):  # Deleted again, or put again with the same bytes.
            return False
        self._world.may_go_back = False
        self._world.events["put back"] += 1
        return True

    def _check_removed(self, path: str, by: object) -> None:
        if (name := parse_checkpoint_name(name_of(path))) is not None and "/parts/" not in path:
            self._check_checkpoint_removed(path, name)
        sidecar = parse_sidecar_name(name_of(path))
        version = version_of(path) if sidecar is None else sidecar.version
        if version is not None and version > self._before.last_expired:
            newest = on_store.newest_checkpoint(self._disk)
            began_before = self._loaded_at.get(by, self._lost_at) < self._lost_at
            if began_before and self._before.checkpoint is not None:
                newest = max(self._before.checkpoint, newest or self._before.checkpoint)
            stood_for = -1 if newest is None else newest.version
            if version > min(stood_for, on_store.last_expired(self._disk)):
                raise ViolationError(f"{path} was deleted, and no checkpoint covers it")
        relative = path.removeprefix(f"{ROOT}/")
        if parse_segment_path(relative) is not None and not self._world.may_go_back:
            self._check_segment_removed(relative)

    def _check_checkpoint_removed(self, path: str, name: CheckpointName) -> None:
        before = self._before.checkpoint
        if on_store.is_complete(self._disk, path) and (before is None or name >= before):
            newest = on_store.newest_checkpoint(self._disk)
            if newest is None or newest <= name:
                raise ViolationError(f"{path}, the newest complete checkpoint, was deleted")

    def _check_segment_removed(self, file: str) -> None:
        count, state = self._replayed
        if count != len(self._disk.created):
            state = replay(TopicState(), _chained(history(self._world)))
            self._replayed = (len(self._disk.created), state)
        if file in state.segments["file"].to_pylist():
            raise ViolationError(f"live file {file} was deleted after others were lost")
        at = {row["file"]: row["timestamp_ms"] for row in state.removed.to_pylist()}.get(file)
        now = self._world.clock(Actor("", lambda actor: None, 0, restarts=False))
        is_young = at is not None and now - at < GRACE_MS - 2 * STEP_MS
        if is_young and not self._world.scene.clocks_differ:
            raise ViolationError(f"removed file {file} was deleted inside its grace")

    def _parse(self) -> None:
        for path, data in self._disk.created[self._parsed :]:
            if version_of(path) is not None:
                fields = json.loads(data)
                self._previous.setdefault(fields["writeId"], set()).add(fields["previousWriteId"])
        self._parsed = len(self._disk.created)


def is_topic_deleted(cast: Cast) -> bool:
    """Whether the topic is deleted, so that writers wait for another."""
    past = history(cast.world)
    return not replay(TopicState(), _chained(past)).topic_id


def _chained(past: list[Commit]) -> list[Commit]:
    """Return the commits before the first that follows another history."""
    last = ""
    for number, commit in enumerate(past):
        if commit.previous_write_id != last:
            return past[:number]
        last = commit.write_id
    return past


def _few(random: Random, paths: list[str], count: int) -> list[str]:
    return random.sample(paths, min(count, len(paths)))


def _kind(path: str) -> str:
    folders = {
        "/log/": "commit",
        "/sidecars/": "sidecar",
        "/checkpoints/": "checkpoint",
        "/parts/": "part",
        "/gc/": "expiration",
        "/pins/": "lease",
        "/topic.json": "description",
    }
    return next((kind for folder, kind in folders.items() if folder in path), "segment")
