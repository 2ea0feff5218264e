"""Executors of a cluster that a test kills while to-delta writes a table."""

from __future__ import annotations

import signal
from pathlib import Path

import psutil

from tests.delta.copy_process import data_files
from tests.spark_faults.standalone_cluster import Cluster

_KILLS = 3


class ExecutorKills:
    """Kills an executor after each of the first data files of a table."""

    def __init__(self, cluster: Cluster, table: Path) -> None:
        """Take the cluster, and the folder of the table."""
        self._cluster, self._table = cluster, table
        self._killed: set[int] = set()

    def settings(self) -> dict[str, str]:
        """Return those of a driver whose tasks may fail so often."""
        return {
            "spark.master": self._cluster.url,
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.executor.memory": "512m",
            "spark.task.maxFailures": "8",
        }

    def are_done(self) -> bool:
        """Kill an executor if it is time to, and return whether it was the last one."""
        for process in psutil.process_iter(["cmdline"]):
            words = process.info["cmdline"] or []
            is_executor = any(word.endswith("CoarseGrainedExecutorBackend") for word in words)
            is_of_cluster = str(self._cluster.work) in _folder_of(process)
            if is_executor and is_of_cluster and data_files(self._table) > len(self._killed):
                process.send_signal(signal.SIGKILL)
                self._killed.add(process.pid)
        return len(self._killed) >= _KILLS


def _folder_of(process: psutil.Process) -> str:
    """Return the working directory of a process; an empty text if it has ended."""
    try:
        return str(process.cwd())
    except psutil.Error:
        return ""
