"""Write the archive of a release: `archives/klog-<version>.tar.gz`.

When a version is released, run this once on its code, with nothing changed, and commit the archive:

    .venv/bin/python -m tests.releases.make

It uses whichever klog can be imported. An existing archive is never written again: its files are
those that users of that version have. Tests check with klog 0.1 that it can still read what it
supports: its code is the zip that its `make pyfiles` made, `archives/klog-0.1.0-pyfiles.zip`.

    root/          topics: see `release_topics.py`
    wide/          a topic whose append has a sidecar
    brokers/       directories of brokers, for commands
    adopted-*/     adopted brokers' directories; adopting/ has an unfinished adoption
    repaired/      topics that `klog repair` repaired (0.2 and later)
    restored/      topics that `klog restore` restored (0.3 and later)
    letters/       topics that Spark wrote, with dead letters
    streams/       streams of Spark: the source, sink and checkpoint of each
    expected.json  the account of each root, how to start the streams, the result of the adoption
    reports.json   scenes: commands and their output
"""

from __future__ import annotations

import gzip
import json
import os
import sys
import tarfile
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pyspark.sql import SparkSession

import klog
from tests.releases import ARCHIVES, EXPECTED, REPORTS, copy
from tests.releases.account import root_account, short, topic_account
from tests.releases.brokers import (
    ABORT,
    KEEP,
    import_topics,
    write_adopted,
    write_brokers,
    write_repaired,
    write_restored,
)
from tests.releases.command import done
from tests.releases.playing import play
from tests.releases.release_topics import write_topics, write_wide
from tests.releases.reports import common
from tests.releases.scenes import scenes_of
from tests.releases.streams import STREAMS, source_records, write_letters, write_streams
from tools.java_home import java_home


def write_archive(target: Path) -> None:
    """Write the archive of the klog that is imported."""
    if target.exists():
        raise SystemExit(
            f"{target} exists: the archive of a release is never written again. "
            "Raise klog's version to write a new one"
        )
    with TemporaryDirectory(prefix="klog-release-") as name:
        folder = Path(name) / "archive"
        folder.mkdir()
        _write_roots(folder)
        _write_json(folder / EXPECTED, _expected(folder, Path(name) / "adopted"))
        _write_json(folder / REPORTS, _reports(folder, Path(name)))
        target.parent.mkdir(exist_ok=True)
        with (
            gzip.GzipFile(target, "wb", mtime=0) as packed,
            tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive,
        ):
            for path in sorted(folder.iterdir()):
                archive.add(path, path.name, filter=_anonymous)


def _write_roots(folder: Path) -> None:
    write_topics(folder / "root")
    write_wide(folder / "wide")
    assert list((folder / "wide").glob("_klog/topics/*/sidecars/*.parquet"))
    write_brokers(folder / "brokers")
    write_adopted(folder)
    import_topics(folder / "brokers", folder / "root")
    if klog.__version__ != "0.1.0":
        write_repaired(folder / "repaired")
    if klog.__version__ not in ("0.1.0", "0.2.0"):
        write_restored(folder / "restored")
    spark = _session()
    try:
        write_letters(spark, folder / "letters")
        write_streams(spark, folder / "streams")
    finally:
        spark.stop()


def _session() -> SparkSession:
    os.environ["JAVA_HOME"] = str(java_home())
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    return session


def _expected(folder: Path, adopted: Path) -> dict[str, Any]:
    """Return the accounts of the roots, and what else the tests need."""
    roots = sorted(
        path.parent.parent.relative_to(folder).as_posix()
        for path in folder.rglob("_klog/format.json")
    )
    copy(folder / "adopting", adopted)
    done("adopt", "--root", str(adopted), *KEEP, *ABORT)
    return {
        "version": klog.__version__,
        "roots": {root: root_account(folder / root) for root in roots},
        "adopting": {topic: topic_account(adopted, topic) for topic in klog.open(adopted).topics()},
        "streams": {
            name: {**options, "records": short(source_records(folder / "streams" / name))}
            for name, options in STREAMS.items()
        },
    }


def _reports(folder: Path, work: Path) -> list[dict[str, Any]]:
    """Play the scenes twice, and return them with the values that both plays share."""
    scenes = []
    for scene in scenes_of(klog.__version__):
        plays = [play(scene, folder, work / f"{scene['scene']}-{number}") for number in (1, 2)]
        steps = [common(first, second) for first, second in zip(*plays, strict=True)]
        scenes.append({**scene, "steps": steps})
    return scenes


def _write_json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, ensure_ascii=False, indent=1))


def _anonymous(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """Remove the owner and time of a file."""
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    member.mtime = 0
    return member


def main() -> None:
    """Write the archive, and print its path."""
    target = ARCHIVES / f"klog-{klog.__version__}.tar.gz"
    write_archive(target)
    sys.stdout.write(f"{target} ({target.stat().st_size:,} bytes), of {klog.__file__}\n")


if __name__ == "__main__":
    main()
