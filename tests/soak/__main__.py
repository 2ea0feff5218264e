"""`python -m tests.soak`: one soak with the producers that klog has, and its tally as JSON."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.soak.lanes import klog_producer
from tests.soak.run_soak import soak


def main() -> int:
    """Run it; 1 if a record was lost, doubled or out of order, or a producer gave up."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--producers", type=int, default=3)
    parser.add_argument("--consumers", type=int, default=2)
    parser.add_argument("--throughput", type=int, default=200, help="of a producer, a second")
    parser.add_argument("--keep", type=Path, help="a new directory for the root and all events")
    given = parser.parse_args()
    kinds = [klog_producer] * given.producers
    with TemporaryDirectory() as temporary:
        folder = given.keep or Path(temporary)
        folder.mkdir(exist_ok=True)
        done = soak(folder, given.seconds, given.seed, kinds, given.consumers, given.throughput)
    sys.stdout.write(f"{done}\n")
    return int(done.tally.wrong > 0 or not done.tally.acknowledged or done.gave_up > 0)


if __name__ == "__main__":
    sys.exit(main())
