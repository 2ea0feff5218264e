"""Run seeds, and print a summary at the end.

    python -m tests.simulation 0..1000                 # stops at the first seed that fails
    python -m tests.simulation 0..1000 --keep-going    # prints each seed that fails
    python -m tests.simulation 17                      # one seed, again
    python -m tests.simulation 0..200 --mistake no_grace

Every hundred seeds a line says how to resume: seeds are independent, so the rest of a range is a
range.
"""

from __future__ import annotations

import argparse
import gc
import sys
import time
from collections import Counter

from tests.simulation.checks import history
from tests.simulation.mistakes import MISTAKES, with_mistake
from tests.simulation.run_seed import run
from tests.simulation.world import ViolationError

REPORT_EVERY = 100


def main() -> int:
    """Run the seeds; return 1 if one violates an invariant."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation")
    parser.add_argument("seeds", help="one, or a range as 0..1000 (its end not included)")
    parser.add_argument("--mistake", choices=sorted(MISTAKES), default="")
    parser.add_argument(
        "--keep-going", action="store_true", help="continue after a seed that fails"
    )
    arguments = parser.parse_args()
    first, _, stop = arguments.seeds.partition("..")
    begin = int(first)
    end = int(stop) if stop else begin + 1
    mistake = f" --mistake {arguments.mistake}" if arguments.mistake else ""
    events: Counter[str] = Counter()
    commits = violations = 0
    began = time.monotonic()
    gc.disable()  # A seed ends before its memory matters.
    for seed in range(begin, end):
        try:
            with with_mistake(arguments.mistake):
                world = run(seed)
            events.update(world.events)
            commits += len(history(world))
        except ViolationError as exc:
            violations += 1
            print(f"seed {seed}: {exc}")
            print(f"    again: python -m tests.simulation {seed}{mistake}", flush=True)
            if not arguments.keep_going:
                end = seed + 1
                break
        if (seed + 1 - begin) % REPORT_EVERY == 0:
            gc.collect()
            seconds = time.monotonic() - began
            print(
                f"{seed + 1 - begin} seeds, {commits} commits, {violations} violations, "
                f"{seconds:.0f} s; the rest: {seed + 1}..{end}",
                flush=True,
            )
    seconds = time.monotonic() - began
    summary = ", ".join(f"{count} {name}" for name, count in sorted(events.items()))
    counts = f"{end - begin} seeds, {commits} commits, {violations} violations"
    print(f"{counts}, {seconds:.0f} s: {summary}")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
