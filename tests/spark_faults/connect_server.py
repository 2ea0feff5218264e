"""A Spark Connect server with a Python of its own."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from pathlib import Path

from tests.support.kafka_broker import free_ports
from tests.support.store_servers import Server
from tools.java_home import java_home

MAIN_CLASS = "org.apache.spark.sql.connect.service.SparkConnectServer"
HIDDEN = ("PYTHONPATH", "PYSPARK_DRIVER_PYTHON", "PYSPARK_SUBMIT_ARGS")


class ConnectServer(Server):
    """A server of one process, whose address is `url`."""

    def __init__(self, work: Path, python: Path, jars: Sequence[Path] = ()) -> None:
        super().__init__(work)
        (home,) = python.parent.parent.glob("lib/python*/site-packages/pyspark")
        self._home, self._python, self._jars = home, python, jars
        (self._port,) = free_ports(1)
        self.url = f"sc://127.0.0.1:{self._port}"

    def _start(self) -> None:
        conf = {
            "spark.connect.grpc.binding.port": str(self._port),
            "spark.driver.memory": "512m",
            "spark.ui.enabled": "false",
            "spark.jars": ",".join(map(str, self._jars)),
        }
        options = [part for name in conf for part in ("--conf", f"{name}={conf[name]}")]
        submit = ["--master", "local[2]", "--class", MAIN_CLASS, *options, "spark-internal"]
        self._spawn(
            [
                "env",
                *(f"--unset={name}" for name in HIDDEN),
                str(self._home / "bin" / "spark-submit"),
                *submit,
            ],
            {
                "JAVA_HOME": str(java_home()),
                "PYSPARK_PYTHON": str(self._python),
                "SPARK_HOME": str(self._home),
                "SPARK_LOCAL_IP": "127.0.0.1",
            },
        )

    def _ready(self) -> bool:
        with socket.socket() as client:
            return client.connect_ex(("127.0.0.1", self._port)) == 0
