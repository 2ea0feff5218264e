"""Zip klog for `spark-submit --py-files`: the packages as a worker imports them, and nothing else.

The rule: the same sources give the same bytes, so a cluster's cache of the file stays good. The
links of `src/klog` become ordinary folders; compiled files are left out; times are fixed.

    python tools/pyfiles.py dist/klog-pyfiles.zip
"""

from __future__ import annotations

import argparse
import os
import zipfile
from collections.abc import Iterator
from pathlib import Path

SOURCES = Path(__file__).resolve().parent.parent / "src"
EARLIEST_TIME = (1980, 1, 1, 0, 0, 0)  # the first that a zip can name


def write_zip(target: Path) -> None:
    """Write `klog` and `pyspark_klog` to `target`, complete or not at all."""
    target.parent.mkdir(parents=True, exist_ok=True)
    staged = target.with_name(f"{target.name}.{os.getpid()}")
    with zipfile.ZipFile(staged, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in _members():
            member = zipfile.ZipInfo(path.relative_to(SOURCES).as_posix(), EARLIEST_TIME)
            member.compress_type = zipfile.ZIP_DEFLATED
            member.external_attr = 0o644 << 16
            archive.writestr(member, path.read_bytes())
    staged.replace(target)


def _members() -> Iterator[Path]:
    yield SOURCES / "pyspark_klog.py"
    for folder, names, files in os.walk(SOURCES / "klog", followlinks=True):
        names.sort()
        for name in sorted(files):
            if name.endswith(".py") or name == "py.typed":
                yield Path(folder) / name


def main() -> None:
    """Write the zip named on the command line."""
    parser = argparse.ArgumentParser(description="Zip klog for `spark-submit --py-files`.")
    parser.add_argument("target", type=Path, metavar="TARGET.zip")
    target: Path = parser.parse_args().target
    write_zip(target)
    print(target)  # noqa: T201


if __name__ == "__main__":
    main()
