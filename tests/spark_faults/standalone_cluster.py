"""A Spark standalone cluster from PySpark's own jars: a master and two workers of one core each.

Each worker has an address of its own: a speculative copy of a task only runs on another host.
"""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

from tests.support.store_servers import Server
from tools import spark_archive

WORKERS = ("127.0.0.1", "127.0.0.2")
_DEPLOY = "org.apache.spark.deploy"
_JAVA_OPTIONS = f"-XX:TieredStopAtLevel=1 {spark_archive.jvm_options()}"


class Cluster(Server):
    """A master, whose address is `url`, and its workers."""

    url: str

    def _start(self) -> None:
        self._run(f"{_DEPLOY}.master.Master", "--host", "127.0.0.1", "--port", "0")
        self._wait_until(self._is_master_there)
        for host in WORKERS:
            folder = str(self.work / host)
            sizes = ("--cores", "1", "--memory", "1g", "--work-dir", folder)
            self._run(f"{_DEPLOY}.worker.Worker", "--host", host, *sizes, self.url)

    def _is_master_there(self) -> bool:
        """Read the address from the master's log: it uses another port if one is in use."""
        address = re.search(r"Starting Spark master at (spark://\S+)", self._log())
        if address is not None:
            self.url = address[1]
        return address is not None

    def _log(self) -> str:
        return self.output.read_text(errors="replace")

    def _run(self, main_class: str, *arguments: str) -> None:
        spec = find_spec("pyspark")
        assert spec is not None
        assert spec.origin is not None
        home = Path(spec.origin).parent
        hidden = {"PYTHONPATH", "SPARK_LOCAL_IP", "SPARK_HOME", "PYSPARK_PYTHON"}
        command = [str(home / "bin" / "spark-class"), main_class, "--webui-port", "0", *arguments]
        self._spawn(
            ["env", *(f"--unset={name}" for name in sorted(hidden)), *command],
            {
                "SPARK_DAEMON_JAVA_OPTS": _JAVA_OPTIONS,
                "SPARK_DAEMON_MEMORY": "256m",
                "SPARK_HOME": str(home),
            },
        )

    def _ready(self) -> bool:
        return self._log().count("Successfully registered with master") == len(WORKERS)

    def conf(self, faults: Path, hooks: Path) -> dict[str, str]:
        """Return the config of a session whose executors look for faults in a folder."""
        return {
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.executor.extraJavaOptions": _JAVA_OPTIONS,
            "spark.executor.memory": "512m",
            "spark.executorEnv.KLOG_FAULTS": str(faults),
            "spark.executorEnv.PYTHONPATH": str(hooks),
        }
