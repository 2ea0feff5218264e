"""What kind of world a seed is: who takes part, and what may go wrong there.

The rule: a scene is drawn from the seed before anything happens, and each scene leaves things out.
A fault that hides another is then absent from some seeds, and each seed stays small.
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
    """How often things go wrong, a call; a loss of power and a clock that is set, a step."""

    fault: float = 0.06
    crash: float = 0.012
    pause: float = 0.02
    power_loss: float = 0.0
    clock: float = 0.0


CALM = Chances(0, 0, 0)


@dataclass(frozen=True)
class Scene:
    """One kind of world."""

    chances: Chances
    skews_ms: tuple[int, ...]
    """How far a clock may be off; more than a step only where `apart`."""
    apart: bool
    """Clocks are days apart and go back: then no grace is promised to a reader."""
    is_disk: bool
    """A disk that a loss of power can hit: what is not synced yet may be undone."""
    page: int
    """So many names come with one answer of a listing."""
    retention_ms: int
    """How long cleaning keeps commits."""
    cleaning_pause: int
    streams: int
    batch_writers: int
    readers: int
    mergers: int
    cleaners: int
    vacuums: int
    retentions: int
    admins: int
    """How many change config and partitions."""
    hurried: str
    """Who gets every second turn: maintenance makes many calls, and would be seen too seldom."""
    in_parts: bool
    """Commits have sidecars and checkpoints parts, as those of large topics do."""
    is_made_anew: bool
    """Somebody deletes the topic and makes it anew."""
    two_queries: bool
    """Two queries write under one transactional id."""
    pins: bool
    """A reader who takes longer than the grace, under a pin."""
    compactors: int
    loses: str
    """What kind of files vanish at rest, if any: see `losses.py`."""
    lags: bool
    """A read may say once that a young commit is absent, as a cache before the store does."""


LOSSES = (
    "commit", "commits", "commits", "last commit", "overtaken commit", "overtaken commit",
    "sidecar", "checkpoint", "part", "boundary", "segment", "description", "any", "any",
)  # fmt: skip
LONG_RETENTION_MS = 5 * GRACE_MS
"""A log keeps commits for longer than its writers go on without a listing."""


def draw(random: Random, seed: int) -> Scene:
    """Draw a scene; what was added to scenes later is drawn apart, so that most stay the same."""
    added = Random(f"added to {seed}")
    losing = Random(f"losses of {seed}")
    loses = losing.choice(LOSSES) if losing.random() < 0.25 else ""
    apart, is_disk = random.random() < 0.3, random.random() < 0.3
    lags = not loses and Random(f"lags of {seed}").random() < 0.2
    scene = Scene(
        chances=Chances(
            fault=random.choice([0.02, 0.06, 0.06, 0.12]),
            crash=random.choice([0.004, 0.012, 0.012, 0.03]),
            pause=random.choice([0.01, 0.02, 0.02, 0.04]),
            power_loss=0.003 if is_disk else 0.0,
            clock=0.01 if apart else 0.0,
        ),
        skews_ms=(0, 0, 500, -500, DAY_MS, -DAY_MS) if apart else (0, 0, 0, 500, -500),
        apart=apart,
        is_disk=is_disk,
        page=random.choice([1000, 1000, 4]),
        retention_ms=random.choice([GRACE_MS // 30, GRACE_MS // 10, GRACE_MS // 2]),
        cleaning_pause=random.choice([10, 40, 120]),
        streams=random.choice([1, 2, 2]),
        batch_writers=random.choice([0, 1]),
        readers=random.choice([1, 2]),
        mergers=random.choice([0, 1, 2]),
        cleaners=random.choice([0, 1, 1, 1, 2]),
        vacuums=random.choice([0, 1, 1, 1]),
        retentions=random.choice([0, 1]),
        admins=random.choice([0, 0, 2]),
        hurried=random.choice(["vacuum", "vacuum", "clean", "merge", "r1"]),
        in_parts=random.random() < 0.3,
        is_made_anew=random.random() < 0.25,
        two_queries=random.random() < 0.3,
        pins=random.random() < 0.3,
        compactors=added.choice([0, 0, 1]),
        loses=loses,
        lags=lags,
    )
    return _losing(scene) if loses else scene


def _losing(scene: Scene) -> Scene:
    """Give a scene what its losses need, and no loss of power: that undoes what they are told by.

    Who goes on from an old state looks at the boundary alone: with that lost, only the retention
    is in the way of a number that was cleaned.
    """
    keeps = scene.loses in ("boundary", "any")
    return replace(
        scene,
        chances=replace(scene.chances, power_loss=0.0),
        in_parts=scene.in_parts or scene.loses in ("sidecar", "part"),
        retention_ms=LONG_RETENTION_MS if keeps else scene.retention_ms,
    )
