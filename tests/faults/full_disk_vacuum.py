"""A vacuum of a root on a full disk: run as a process that prints its results as JSON.

`python -m tests.faults.full_disk_vacuum <folder>`: the folder is a small file system of its own.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from klog.jobs import vacuum
from tests.faults.full_disk import full
from tests.jobs.written_root import WrittenRoot, numbers


def vacuum_full_disk(folder: Path, name: str, records: int) -> dict[str, object]:
    """Vacuum a topic with deleted records on a full disk, then on one with free space."""
    root = WrittenRoot(str(folder / name))
    root.create("t", 1)
    for first in range(0, 600, 100):
        root.append("t", numbers(first, 100, 1_700_000_000_000, 400))
    if records:
        root.delete_records("t", {0: records})
    with full(folder, 0):
        during = vacuum.run(None, root.location, dry_run=False, grace_ms=0)
        live = [(folder / name / file).exists() for file in root.files("t")]
    after = vacuum.run(None, root.location, dry_run=False, grace_ms=0)
    reports = {"during": during.as_json(), "after": after.as_json()}
    codes = [during.exit_code, after.exit_code]
    horizon = root.state("t").vacuum_version
    return {**reports, "codes": codes, "live": live, "horizon": horizon}


def main() -> None:
    folder = Path(sys.argv[1])
    reports = {
        "freed": vacuum_full_disk(folder, "a", 300),
        "nothing": vacuum_full_disk(folder, "b", 0),
    }
    sys.stdout.write(json.dumps(reports))


if __name__ == "__main__":
    main()
