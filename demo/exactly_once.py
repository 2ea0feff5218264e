"""A stream into a klog root that is killed midway and started again: each row is there once.

python demo/exactly_once.py ROOT CHECKPOINT    # the stream, in a process that can be killed
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from session import session

import klog
from klog.errors import KlogError

TOPIC = "numbers"
ROWS = 1000
"""Of each micro-batch; the source counts, and a batch that runs again has the same numbers."""
TIMEOUT_SECONDS = 300


def show(folder: Path) -> None:
    """Kill a stream after its second commit, start it again, and count."""
    root, checkpoint = folder / "root", folder / "checkpoint"
    for run, commits in (("first", 2), ("second", 5)):
        stream = start_stream(root, checkpoint)
        try:
            wait_for(root, commits, stream)
        finally:
            os.killpg(stream.pid, signal.SIGKILL)
            stream.wait()
        print(f"{run} run: killed (SIGKILL) with {len(history(root))} micro-batches committed")
    log = klog.open(root)
    values = log.scan(TOPIC, columns=["value"]).read_all()["value"].to_pylist()
    print(f"records: {len(values)}, different ones: {len(set(values))}, "
          f"expected: {ROWS * len(history(root))}")  # fmt: skip


def start_stream(root: Path, checkpoint: Path) -> subprocess.Popen[bytes]:
    """Start the stream in a process group of its own."""
    command = [sys.executable, __file__, str(root), str(checkpoint)]
    return subprocess.Popen(command, start_new_session=True, stderr=subprocess.DEVNULL)


def wait_for(root: Path, commits: int, stream: subprocess.Popen[bytes]) -> None:
    """Wait until the topic has `commits` micro-batches."""
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while len(history(root)) < commits:
        if stream.poll() is not None or time.monotonic() > deadline:
            raise SystemExit(f"the stream has ended ({stream.returncode}) or does nothing")
        time.sleep(0.2)


def history(root: Path) -> list[int]:
    """Return the versions of the topic's commits; none while the topic does not exist."""
    try:
        return [commit.version for commit in klog.open(root).history(TOPIC)]
    except KlogError:
        return []


def stream(root: str, checkpoint: str) -> None:
    """Write numbers, a thousand in a micro-batch, until killed."""
    rows = session().readStream.format("rate-micro-batch").option("rowsPerBatch", ROWS).load()
    numbers = rows.selectExpr("cast(value as string) value")
    writer = numbers.writeStream.format("klog").option("topic", TOPIC)
    writer.option("checkpointLocation", checkpoint).start(root).awaitTermination()


if __name__ == "__main__":
    stream(*sys.argv[1:])
