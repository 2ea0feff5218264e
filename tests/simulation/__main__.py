"""Run seeds, and say at the end what was seen.

    python -m tests.simulation 0..1000                 # prints every seed that fails
    python -m tests.simulation 17                      # one seed, again
    python -m tests.simulation 0..200 --mistake no_grace

A range is resumed by giving its rest: seeds do not know of each other.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter

from tests.simulation.mistakes import MISTAKES, making
from tests.simulation.run import history, run
from tests.simulation.world import FoundError


def main() -> int:
    """Run what was asked for; 1 if anything was found."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation")
    parser.add_argument("seeds", help="one, or a range as 0..1000 (its end not included)")
    parser.add_argument("--mistake", choices=sorted(MISTAKES), default="")
    arguments = parser.parse_args()
    first, _, end = arguments.seeds.partition("..")
    seeds = range(int(first), int(end) if end else int(first) + 1)
    events: Counter[str] = Counter()
    commits = found = 0
    began = time.monotonic()
    for seed in seeds:
        try:
            with making(arguments.mistake):
                world = run(seed)
        except FoundError as exc:
            found += 1
            print(f"seed {seed}: {exc}", flush=True)
        else:
            events.update(world.events)
            commits += len(history(world))
    seconds = time.monotonic() - began
    told = ", ".join(f"{count} {name}" for name, count in sorted(events.items()))
    print(f"{len(seeds)} seeds, {commits} commits, {found} violations, {seconds:.0f} s: {told}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
