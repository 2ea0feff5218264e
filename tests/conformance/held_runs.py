"""Run scripts on a partition that a broker holds: what is read ends at its high watermark.

A script is a list of steps as `log_runs` has them. `watermark` writes what a broker writes into
`replication-offset-checkpoint`; before the first one the file does not exist. The connector
answers the questions, and finds the directory locked by a running process.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from klog.connector.kafka_dir.raw_root import RawRoot
from klog.errors import OffsetOutOfRangeError
from klog.logformat.topic_partition import TopicPartition
from tests.conformance.log_files import LogFiles
from tests.conformance.state_runs import Step
from tests.connector.kafka_dir.lock_holder import holding
from tests.connector.log_dirs import offsets, open_log, read, set_checkpoint


def held(*steps: Step) -> list[Any]:
    """Return the answers to a script's questions."""
    files, answers = LogFiles(), []
    with tempfile.TemporaryDirectory(prefix="klog-") as directory, holding(Path(directory)) as root:
        for name, *args in steps:
            if name == "watermark":
                set_checkpoint(root, "replication-offset-checkpoint", {("t", 0): args[0]})
            elif name in QUESTIONS:
                _put(files, root / "t-0")
                answers.append(QUESTIONS[name](root, *args))
            else:
                getattr(files, name)(*args)
    return answers


def _put(files: LogFiles, partition: Path) -> None:
    shutil.rmtree(partition, ignore_errors=True)
    partition.mkdir()
    for name, data in files.files.items():
        (partition / name).write_bytes(data)


def _bounds(root: Path) -> tuple[int, int, int]:
    """Return log start, high watermark and log end."""
    log = open_log(root)
    return log.log_start, log.log_end, log.active_end.next_offset


def _stable(root: Path) -> int:
    """Return the last stable offset."""
    name = TopicPartition("t", 0)
    raw = RawRoot([str(root)])
    return raw.last_stable_offset(raw.open([name])[name])


def _read(root: Path, start: int, level: str = "read_uncommitted") -> list[int] | str:
    """Read from an offset to the log's end; return the error's name if it is after the end."""
    try:
        rows = read(root, startingOffsets=json.dumps({"t": {"0": start}}), isolationLevel=level)
    except OffsetOutOfRangeError as exc:
        return type(exc).__name__
    return offsets(rows)


QUESTIONS: dict[str, Callable[..., Any]] = {"bounds": _bounds, "stable": _stable, "read": _read}
