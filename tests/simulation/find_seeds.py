"""Find a seed for each mistake that its recorded seed no longer shows.

    python -m tests.simulation.find_seeds 0..700            # all mistakes
    python -m tests.simulation.find_seeds 0..700 no_fence   # one

The rule: a change of klog's calls of a store changes what happens at a seed, so the seeds in
`test_simulation.py` move. A recorded seed that still shows its mistake stays.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from random import Random

from tests.simulation.mistakes import with_mistake
from tests.simulation.run_seed import run
from tests.simulation.scene import Scene, draw
from tests.simulation.test_simulation import SHOWN_BY
from tests.simulation.world import ViolationError

NEEDED: dict[str, Callable[[Scene], bool]] = {
    "checkpoint_only_read": lambda scene: scene.chances.power_loss > 0 and scene.expirers > 0,
    "expiration_only_read": lambda scene: scene.chances.power_loss > 0 and scene.expirers > 0,
    "deletion_looked_up_once": lambda scene: scene.is_recreated and scene.is_undeleted,
    "writers_forgotten_at_an_undelete": lambda scene: scene.is_recreated and scene.is_undeleted,
}
"""The scenes in which a rare mistake can show at all."""


def shows(mistake: str, seed: int) -> bool:
    """Return whether the checks detect the mistake at a seed."""
    if mistake in NEEDED and not NEEDED[mistake](draw(Random(seed), seed)):
        return False
    with with_mistake(mistake):
        try:
            run(seed)
        except ViolationError:
            return True
    return False


def main() -> int:
    """Print a line for each mistake; return 1 if one shows in no seed of the range."""
    first, _, stop = sys.argv[1].partition("..")
    code = 0
    for mistake in sys.argv[2:] or SHOWN_BY:
        seeds = [SHOWN_BY[mistake], *range(int(first), int(stop))]
        seed = next((seed for seed in seeds if shows(mistake, seed)), None)
        gc.collect()
        code = code if seed is not None else 1
        is_kept = seed == SHOWN_BY[mistake]
        print(f"{mistake}: {seed}{'' if is_kept else ' (moved)'}", flush=True)  # noqa: T201
    return code


if __name__ == "__main__":
    sys.exit(main())
