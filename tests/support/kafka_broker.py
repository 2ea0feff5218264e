"""A real Kafka broker for tests: one KRaft node, its folders, its start and its two kinds of stop.

The rule: no broker outlives the test process. It is killed at the end of the `with` block, at exit
of the interpreter, and (on Linux) by the kernel when the interpreter itself is killed.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import re
import secrets
import signal
import socket
import subprocess
import sys
import time
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

from tests.support.waiting import TIMEOUT_SECONDS
from tools.jars import jars, java

VERSION = "4.2.0"
JAVA_OPTIONS = (
    "-Xmx512m",
    "-XX:TieredStopAtLevel=1",
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
    "-Dorg.slf4j.simpleLogger.log.kafka.server.KafkaRaftServer=info",  # says that it started
    "-Dorg.slf4j.simpleLogger.log.kafka.server.KafkaServer=info",  # the same, with ZooKeeper
)

# Everything a test would otherwise wait for happens within a second, and every file is small.
QUICK_AND_SMALL = {
    "auto.create.topics.enable": "false",
    "broker.heartbeat.interval.ms": "500",
    "broker.session.timeout.ms": "3000",  # a killed broker is let in again only after this
    "group.initial.rebalance.delay.ms": "0",
    "log.cleaner.backoff.ms": "500",
    "log.cleaner.dedupe.buffer.size": str(2 << 20),
    "log.cleaner.io.buffer.size": str(1 << 17),
    "log.cleaner.threads": "1",
    "log.flush.offset.checkpoint.interval.ms": "500",
    "log.flush.start.offset.checkpoint.interval.ms": "500",
    "log.index.size.max.bytes": "4096",
    "log.initial.task.delay.ms": "500",
    "log.retention.check.interval.ms": "1000",
    "num.recovery.threads.per.data.dir": "1",
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "1",
    "offsets.topic.segment.bytes": str(1 << 20),
    "replica.high.watermark.checkpoint.interval.ms": "500",
    "transaction.max.timeout.ms": "3600000",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.segment.bytes": str(1 << 20),
}

_FAULT = re.compile(r"(?i)truncat|corrupt|invalid|stray|recover.*fail|exception|error")
_LATE = re.compile(r"(?i)heartbeat")  # answered within half its interval, or the machine is busy
_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None)  # looked up here: a fresh child process should do as little as it can


class BrokerError(Exception):
    """The broker did not do what a test needs; the message holds the end of its output."""


def log_faults(output: str) -> list[str]:
    """Return the lines of a broker's output that find fault, but for those of late heartbeats."""
    lines = output.splitlines()
    return [line for line in lines if _FAULT.search(line) and not _LATE.search(line)]


class Broker:
    """A broker over `<work>/<name>` for each name of `log_dir_names`; a `with` block starts it.

    `properties` override the quick and small defaults. The broker keeps folders that exist, so a
    stopped or killed broker starts again on its files.
    """

    version = VERSION
    component = "kafka"  # its jars, by their name in tools/jars.py
    started = b"Kafka Server started"

    def __init__(
        self,
        work: Path,
        properties: Mapping[str, str] | None = None,
        log_dir_names: tuple[str, ...] = ("log",),
    ) -> None:
        self.work = work
        self.log_dirs = [work / name for name in log_dir_names]
        self.properties = {**QUICK_AND_SMALL, **(properties or {})}
        self.output = work / "broker.out"
        self.bootstrap = ""
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Broker:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.kill()

    @property
    def running(self) -> bool:
        """Whether the process is alive."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Format the log dirs if they are new, start, and wait until topics can be listed."""
        if self.running:
            raise BrokerError("the broker runs already")
        self.work.mkdir(parents=True, exist_ok=True)
        config = self._configure()
        if self._is_new:
            self._format(config)
        self.output.write_bytes(b"")
        self._process = self._spawn("kafka.Kafka", str(config))
        atexit.register(self.kill)
        try:
            self._wait_until_ready()
        except BaseException:
            self.kill()
            raise

    def stop(self) -> None:
        """Shut down cleanly (SIGTERM) and wait for the end."""
        if self._process is None or self._process.poll() is not None:
            raise BrokerError(f"the broker does not run\n{self._tail()}")
        self._process.terminate()
        try:
            self._process.wait(TIMEOUT_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
            raise BrokerError(f"no clean stop in {TIMEOUT_SECONDS} s\n{self._tail()}") from None
        self._forget()

    def kill(self) -> None:
        """End it at once (SIGKILL); nothing happens if it does not run."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        self._forget()

    def tool(self, main_class: str, *arguments: str, stdin: bytes = b"") -> str:
        """Run one of Kafka's own command-line classes and return what it printed.

        Raises BrokerError if it fails. The class is named with its package, for instance
        `kafka.tools.DumpLogSegments` or `org.apache.kafka.tools.ConsoleProducer`.
        """
        return kafka_tool(main_class, *arguments, stdin=stdin, component=self.component)

    @property
    def _is_new(self) -> bool:
        return not all((folder / "meta.properties").exists() for folder in self.log_dirs)

    def _configure(self) -> Path:
        settings = {
            **self.properties,
            **self._settings(),
            "log.dirs": ",".join(str(folder) for folder in self.log_dirs),
        }
        config = self.work / "server.properties"
        config.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        return config

    def _settings(self) -> dict[str, str]:
        """Choose free ports and say how the broker is reached and led."""
        broker_port, controller_port = free_ports(2)
        self.bootstrap = f"127.0.0.1:{broker_port}"
        return {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.voters": f"1@127.0.0.1:{controller_port}",
            "listeners": f"PLAINTEXT://{self.bootstrap},CONTROLLER://127.0.0.1:{controller_port}",
            "advertised.listeners": f"PLAINTEXT://{self.bootstrap}",
            "controller.listener.names": "CONTROLLER",
            "inter.broker.listener.name": "PLAINTEXT",
        }

    def _format(self, config: Path) -> None:
        # A dash in front would look like an option to the tool.
        cluster_id = "k" + urlsafe_b64encode(secrets.token_bytes(16)).decode()[:21]
        self.tool("kafka.tools.StorageTool", "format", "-t", cluster_id, "-c", str(config))

    def _spawn(self, *arguments: str) -> subprocess.Popen[bytes]:
        with self.output.open("ab") as output:
            return subprocess.Popen(
                _command(self.component, *arguments),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=self.work,
                preexec_fn=die_with_parent,
            )

    def _wait_until_ready(self) -> None:
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while time.monotonic() < deadline:
            if not self.running:
                raise BrokerError(f"the broker ended at start\n{self._tail()}")
            if self.started in self.output.read_bytes():
                return
            time.sleep(0.1)
        raise BrokerError(f"not ready in {TIMEOUT_SECONDS} s\n{self._tail()}")

    def _tail(self) -> str:
        if not self.output.exists():
            return "(no output)"
        return self.output.read_bytes()[-4000:].decode(errors="replace")

    def _forget(self) -> None:
        self._process = None
        atexit.unregister(self.kill)


def kafka_tool(
    main_class: str, *arguments: str, stdin: bytes = b"", component: str = "kafka"
) -> str:
    """Run one of Kafka's own command-line classes, with or without a broker; see Broker.tool."""
    printed, _ = kafka_tool_output(main_class, *arguments, stdin=stdin, component=component)
    return printed


def kafka_tool_output(
    main_class: str, *arguments: str, stdin: bytes = b"", component: str = "kafka"
) -> tuple[str, str]:
    """Run a class as kafka_tool does and return its standard output and its standard error."""
    process = kafka_process(main_class, *arguments, stdin=stdin, component=component)
    printed, errors = (
        stream.decode(errors="replace") for stream in (process.stdout, process.stderr)
    )
    if process.returncode != 0:
        raise BrokerError(f"{main_class} failed: {(printed + errors)[-4000:]}")
    return printed, errors


def kafka_process(
    main_class: str, *arguments: str, stdin: bytes = b"", component: str = "kafka"
) -> subprocess.CompletedProcess[bytes]:
    """Run one of Kafka's own command-line classes to its end, however it ends."""
    return subprocess.run(
        _command(component, main_class, *arguments),
        input=stdin,
        capture_output=True,
        env={**os.environ, "LC_ALL": "C.UTF-8"},  # what is printed is UTF-8 everywhere
        timeout=TIMEOUT_SECONDS,
        check=False,
    )


def _command(component: str, main_class: str, *arguments: str) -> list[str]:
    return [str(java()), *JAVA_OPTIONS, "-cp", f"{jars(component)}/*", main_class, *arguments]


def free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    try:
        for server in sockets:
            server.bind(("127.0.0.1", 0))
        return [int(server.getsockname()[1]) for server in sockets]
    finally:
        for server in sockets:
            server.close()


def die_with_parent() -> None:
    if sys.platform == "linux":
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
