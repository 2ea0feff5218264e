"""`python -m tests.soak`: run a soak with klog's producers, and print its tally as JSON."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.soak.lanes import klog_producer
from tests.soak.run_soak import soak


def main() -> int:
    """Run a soak; return 1 if its tally has errors or a producer gave up."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--producers", type=int, default=3)
    parser.add_argument("--consumers", type=int, default=2)
    parser.add_argument(
        "--throughput", type=int, default=200, help="messages a second of each producer"
    )
    parser.add_argument("--keep", type=Path, help="a new directory for the root and all events")
    arguments = parser.parse_args()
    kinds = [klog_producer] * arguments.producers
    with TemporaryDirectory() as temporary:
        folder = arguments.keep or Path(temporary)
        folder.mkdir(exist_ok=True)
        done = soak(
            folder,
            arguments.seconds,
            arguments.seed,
            kinds,
            arguments.consumers,
            arguments.throughput,
        )
    sys.stdout.write(f"{done}\n")
    return int(done.tally.wrong > 0 or not done.tally.acknowledged or done.gave_up > 0)


if __name__ == "__main__":
    sys.exit(main())
