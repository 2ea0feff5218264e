"""Brokers of older versions: 3.9, which runs as 4.2 does, and 2.8 with a ZooKeeper.

The rule is `tests/support/kafka_broker.py`'s: no process outlives the test process.
"""

from __future__ import annotations

import atexit
import socket
import subprocess
import time

from tests.support.kafka_broker import Broker, BrokerError, free_ports
from tests.support.waiting import TIMEOUT_SECONDS


class Broker39(Broker):
    """The last version before 4, in KRaft mode."""

    version = "3.9.1"
    component = "kafka-3.9"


class Broker28(Broker):
    """A broker that still writes formats v0 and v1; its ZooKeeper starts and ends with it."""

    version = "2.8.2"
    component = "kafka-2.8"
    started = b"[KafkaServer id=1] started"
    _zookeeper: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start a ZooKeeper, then the broker, and wait until topics can be listed."""
        if self.running:
            raise BrokerError("the broker runs already")
        self.work.mkdir(parents=True, exist_ok=True)
        (self._zookeeper_port,) = free_ports(1)
        config = self.work / "zookeeper.properties"
        config.write_text(
            f"dataDir={self.work / 'zookeeper'}\n"
            f"clientPort={self._zookeeper_port}\n"
            "clientPortAddress=127.0.0.1\n"
            "admin.enableServer=false\n"
        )
        self._zookeeper = self._spawn(
            "org.apache.zookeeper.server.quorum.QuorumPeerMain", str(config)
        )
        atexit.register(self._kill_zookeeper)
        try:
            self._wait_for_zookeeper()
            super().start()
        except BaseException:
            self._kill_zookeeper()
            raise

    def stop(self) -> None:
        """Shut the broker down cleanly and end its ZooKeeper."""
        try:
            super().stop()
        finally:
            self._kill_zookeeper()

    def kill(self) -> None:
        """End both at once."""
        super().kill()
        self._kill_zookeeper()

    def _settings(self) -> dict[str, str]:
        (port,) = free_ports(1)
        self.bootstrap = f"127.0.0.1:{port}"
        return {
            "broker.id": "1",
            "listeners": f"PLAINTEXT://{self.bootstrap}",
            "zookeeper.connect": f"127.0.0.1:{self._zookeeper_port}",
        }

    @property
    def _is_new(self) -> bool:
        return False  # a broker without a quorum of its own formats its log dirs itself

    def _wait_for_zookeeper(self) -> None:
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while time.monotonic() < deadline:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self._zookeeper_port)) == 0:
                    return
            time.sleep(0.1)
        raise BrokerError(f"no ZooKeeper in {TIMEOUT_SECONDS} s")

    def _kill_zookeeper(self) -> None:
        if self._zookeeper is not None:
            self._zookeeper.kill()
            self._zookeeper.wait()
            self._zookeeper = None
        atexit.unregister(self._kill_zookeeper)
