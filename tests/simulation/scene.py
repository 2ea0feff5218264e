"""The scene of a seed: its actors, and the faults that may happen.

The rule: a scene is drawn from the seed before the run, and each scene leaves things out. A fault
that hides another is then absent from some seeds, and each seed stays small.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random

STEP_MS = 1000
GRACE_MS = 120 * STEP_MS
START_MS = 1_700_000_000_000
DAY_MS = 86_400_000


@dataclass(frozen=True)
class Chances:
    """Probabilities of faults per call; of a power loss and a clock change per step."""

    fault: float = 0.06
    crash: float = 0.012
    pause: float = 0.02
    power_loss: float = 0.0
    clock: float = 0.0


CALM = Chances(0, 0, 0)


@dataclass(frozen=True)
class Scene:
    """The actors and faults of a world."""

    chances: Chances
    skews_ms: tuple[int, ...]
    """How far a clock may be off; more than a step only if `clocks_differ`."""
    clocks_differ: bool
    """Clocks differ by days and go back: then readers have no grace."""
    is_disk: bool
    """The store is a disk, where a power loss may undo changes that are not synced."""
    page: int
    """The number of names on a page of a listing."""
    retention_ms: int
    """How long log expiration keeps commits."""
    expiration_pause: int
    streams: int
    batch_writers: int
    readers: int
    mergers: int
    expirers: int
    vacuums: int
    retentions: int
    admins: int
    """The number of actors that change config and partitions."""
    frequent_actor: str
    """The actor that gets half of the turns: maintenance makes many calls and needs more turns."""
    in_parts: bool
    """Commits have sidecars and checkpoints have parts, as in large topics."""
    is_recreated: bool
    """An actor deletes the topic and creates it again."""
    two_queries: bool
    """Two queries write under one transactional id."""
    has_leases: bool
    """A reader takes longer than the grace, with a snapshot lease."""
    compactors: int
    loses: str
    """The kind of files that vanish at rest, if any: see `losses.py`."""
    restores: int
    """The number of actors that restore earlier versions of the topic."""
    has_stale_reads: bool
    """A read may miss a young commit once, as with a cache in front of the store."""
    has_past_reader: bool
    """A reader loads earlier versions."""
    is_undeleted: bool
    """The actor that deletes the topic brings it back, or another one does."""


LOSSES = (
    "commit", "commits", "commits", "last commit", "contested commit", "contested commit",
    "sidecar", "checkpoint", "part", "expiration", "segment", "description", "any", "any",
)  # fmt: skip
LONG_RETENTION_MS = 5 * GRACE_MS
"""A log keeps commits for longer than its writers go without a listing."""


def draw(random: Random, seed: int) -> Scene:
    """Draw a scene; later additions have generators of their own, so that most scenes stay."""
    added = Random(f"added to {seed}")
    losing = Random(f"losses of {seed}")
    loses = losing.choice(LOSSES) if losing.random() < 0.25 else ""
    clocks_differ, is_disk = random.random() < 0.3, random.random() < 0.3
    has_stale_reads = not loses and Random(f"lags of {seed}").random() < 0.2
    restoring = Random(f"restores of {seed}")
    scene = Scene(
        chances=Chances(
            fault=random.choice([0.02, 0.06, 0.06, 0.12]),
            crash=random.choice([0.004, 0.012, 0.012, 0.03]),
            pause=random.choice([0.01, 0.02, 0.02, 0.04]),
            power_loss=0.003 if is_disk else 0.0,
            clock=0.01 if clocks_differ else 0.0,
        ),
        skews_ms=(0, 0, 500, -500, DAY_MS, -DAY_MS) if clocks_differ else (0, 0, 0, 500, -500),
        clocks_differ=clocks_differ,
        is_disk=is_disk,
        page=random.choice([1000, 1000, 4]),
        retention_ms=random.choice([GRACE_MS // 30, GRACE_MS // 10, GRACE_MS // 2]),
        expiration_pause=random.choice([10, 40, 120]),
        streams=random.choice([1, 2, 2]),
        batch_writers=random.choice([0, 1]),
        readers=random.choice([1, 2]),
        mergers=random.choice([0, 1, 2]),
        expirers=random.choice([0, 1, 1, 1, 2]),
        vacuums=random.choice([0, 1, 1, 1]),
        retentions=random.choice([0, 1]),
        admins=random.choice([0, 0, 2]),
        frequent_actor=random.choice(["vacuum", "vacuum", "expire", "merge", "r1"]),
        in_parts=random.random() < 0.3,
        is_recreated=random.random() < 0.25,
        two_queries=random.random() < 0.3,
        has_leases=random.random() < 0.3,
        compactors=added.choice([0, 0, 1]),
        loses=loses,
        restores=0 if loses else restoring.choice([0, 0, 1]),
        has_stale_reads=has_stale_reads,
        has_past_reader=Random(f"past of {seed}").random() < 0.3,
        is_undeleted=not loses and Random(f"undeletions of {seed}").random() < 0.5,
    )
    if scene.restores and restoring.random() < 0.6:
        # A vacuum makes many calls, and a restore meets one that has decided what to delete.
        return replace(scene, vacuums=2, frequent_actor="vacuum")
    return _losing(scene) if loses else scene


def _losing(scene: Scene) -> Scene:
    """Return the scene with what its losses need, and no power loss: that undoes their evidence.

    A process with an old state looks only at the last expired version. If that file is lost, only
    the retention keeps it from committing an expired version again.
    """
    keeps = scene.loses in ("expiration", "any")
    return replace(
        scene,
        chances=replace(scene.chances, power_loss=0.0),
        in_parts=scene.in_parts or scene.loses in ("sidecar", "part"),
        retention_ms=LONG_RETENTION_MS if keeps else scene.retention_ms,
    )
