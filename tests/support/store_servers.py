"""Real stores for tests: one server per store, each on its own ports.

The rule: no server outlives the test process. It is killed at the end of the `with` block, at exit
of the interpreter, and (on Linux) by the kernel when the interpreter itself is killed.
"""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import TypeVar

from tests.support.kafka_broker import die_with_parent, free_ports
from tests.support.waiting import TIMEOUT_SECONDS
from tools.jars import jars, java

JAVA_OPTIONS = ("-Xmx384m", "-XX:TieredStopAtLevel=1")
BUCKET = "klog"
ACCESS_KEY_ID = "klogkeyid"
SECRET_ACCESS_KEY = "canary-of-s3proxy"

LOGBACK = """<configuration>
  <appender name="ERR" class="ch.qos.logback.core.ConsoleAppender">
    <target>System.err</target><encoder><pattern>%level %logger %msg%n</pattern></encoder>
  </appender>
  <root level="WARN"><appender-ref ref="ERR"/></root>
</configuration>
"""
LOG4J = """log4j.rootLogger=WARN,ERR
log4j.appender.ERR=org.apache.log4j.ConsoleAppender
log4j.appender.ERR.target=System.err
log4j.appender.ERR.layout=org.apache.log4j.PatternLayout
log4j.appender.ERR.layout.ConversionPattern=%p %c %m%n
"""

NAME_NODE = "org.apache.hadoop.hdfs.server.namenode.NameNode"
METRICS_SECONDS = 1
CLOSED_EARLY = {"dfs.namenode.file.close.num-committed-allowed": "1"}
"""The NameNode closes a file when its DataNodes have it, before they have reported it."""
BLOCK_BYTES = 4 << 20
"""Small, so that a small segment has several."""
DATA_NODE = "org.apache.hadoop.hdfs.server.datanode.DataNode"

Self = TypeVar("Self", bound="Server")


class ServerError(Exception):
    """The server did not do what a test needs; the message holds the end of its output."""


class Server:
    """Processes over a folder; `_start` runs them, and `_ready` returns whether they serve."""

    java_options: tuple[str, ...] = JAVA_OPTIONS

    def __init__(self, work: Path) -> None:
        self.work = work
        self.output = work / "server.out"
        self._processes: list[subprocess.Popen[bytes]] = []

    def __enter__(self: Self) -> Self:
        self.work.mkdir(parents=True, exist_ok=True)
        atexit.register(self.kill)
        try:
            self._start()
            self._wait_until(self._ready)
        except BaseException:
            self.kill()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.kill()

    def kill(self) -> None:
        """End it at once."""
        for process in self._processes:
            process.kill()
            process.wait()
        self._processes.clear()
        atexit.unregister(self.kill)

    def _start(self) -> None:
        raise NotImplementedError

    def _ready(self) -> bool:
        raise NotImplementedError

    def _java(self, component: str, main_class: str, *arguments: str) -> list[str]:
        classes = f"{self.work / 'conf'}:{jars(component)}/*"
        return [str(java()), *self.java_options, "-cp", classes, main_class, *arguments]

    def _spawn(self, command: list[str], environment: Mapping[str, str] | None = None) -> None:
        with self.output.open("ab") as output:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=self.work,
                env=None if environment is None else {**os.environ, **environment},
                preexec_fn=die_with_parent,
            )
        self._processes.append(process)

    def _wait_until(self, is_ready: Callable[[], bool]) -> None:
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while time.monotonic() < deadline:
            if any(process.poll() is not None for process in self._processes):
                raise ServerError(f"a server ended at start\n{self.tail()}")
            if is_ready():
                return
            time.sleep(0.1)
        raise ServerError(f"not ready in {TIMEOUT_SECONDS} s\n{self.tail()}")

    def tail(self) -> str:
        """Return the end of the server's output."""
        return self.output.read_bytes()[-4000:].decode(errors="replace")


class S3(Server):
    """An S3 server with the bucket `BUCKET` and a user with all rights."""

    endpoint: str

    def _ready(self) -> bool:
        try:
            urllib.request.urlopen(self.endpoint, timeout=5).close()
        except urllib.error.HTTPError as answer:
            answer.close()
            return True
        except OSError:
            return False
        return True

    def options(
        self, key_id: str = ACCESS_KEY_ID, secret: str = SECRET_ACCESS_KEY, token: str = ""
    ) -> dict[str, str]:
        """Return the `storage.*` options that reach the server."""
        return {
            "storage.endpoint": self.endpoint,
            "storage.access_key_id": key_id,
            "storage.secret_access_key": secret,
            **({"storage.session_token": token} if token else {}),
            "storage.allow_http": "true",
        }

    def environment(self) -> dict[str, str]:
        """Return the environment variables that reach the server."""
        return {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ACCESS_KEY_ID": ACCESS_KEY_ID,
            "AWS_SECRET_ACCESS_KEY": SECRET_ACCESS_KEY,
            "AWS_ALLOW_HTTP": "true",
        }


class S3Server(S3):
    """s3proxy; `folder` holds the bucket's objects as files."""

    @property
    def folder(self) -> Path:
        """The folder of the objects."""
        return self.work / "data" / BUCKET

    def _start(self) -> None:
        (port,) = free_ports(1)
        self.endpoint = f"http://127.0.0.1:{port}"
        conf = self.work / "conf"
        conf.mkdir(exist_ok=True)
        self.folder.mkdir(parents=True, exist_ok=True)
        (conf / "logback.xml").write_text(LOGBACK)
        settings = {
            "s3proxy.endpoint": self.endpoint,
            "s3proxy.authorization": "aws-v2-or-v4",
            "s3proxy.identity": ACCESS_KEY_ID,
            "s3proxy.credential": SECRET_ACCESS_KEY,
            "jclouds.provider": "filesystem-nio2",
            "jclouds.filesystem.basedir": str(self.work / "data"),
        }
        _properties(conf / "s3proxy.conf", settings)
        arguments = ("--properties", str(conf / "s3proxy.conf"))
        self._spawn(self._java("s3proxy", "org.gaul.s3proxy.Main", *arguments))


class Hdfs(Server):
    """A NameNode and DataNodes; permissions apply to all users but the one that started them.

    A file has as many replicas as there are DataNodes. `more` overrides the settings of
    `hdfs-site.xml`.
    """

    def __init__(
        self, work: Path, more: Mapping[str, str] | None = None, datanodes: int = 1
    ) -> None:
        super().__init__(work)
        self._more, self._datanodes = dict(more or {}), datanodes

    def _start(self) -> None:
        rpc, http, self._datanode = free_ports(3)
        self.url, self.web_url = f"hdfs://127.0.0.1:{rpc}", f"webhdfs://127.0.0.1:{http}"
        self._state = (
            f"http://127.0.0.1:{http}/jmx?qry=Hadoop:service=NameNode,name=FSNamesystemState"
        )
        conf = self.work / "conf"
        for name in ("hdfs", "datanode"):  # the jars do not bring them, and both look for them
            (conf / "webapps" / name).mkdir(parents=True, exist_ok=True)
        (conf / "log4j.properties").write_text(LOG4J)
        _properties(conf / "hadoop-metrics2.properties", {"*.period": str(METRICS_SECONDS)})
        core = {"fs.defaultFS": self.url, "hadoop.tmp.dir": str(self.work / "data")}
        _xml(conf / "core-site.xml", core)
        _xml(
            conf / "hdfs-site.xml",
            {
                "dfs.replication": str(self._datanodes),
                "dfs.blocksize": str(BLOCK_BYTES),
                "dfs.permissions.enabled": "true",
                "dfs.namenode.http-address": f"127.0.0.1:{http}",
                "dfs.namenode.rpc-bind-host": "127.0.0.1",
                "dfs.namenode.safemode.extension": "0",
                "dfs.namenode.datanode.registration.ip-hostname-check": "false",
                # Else it wants a gigabyte of the disk to stay free.
                "dfs.datanode.round-robin-volume-choosing-policy.additional-available-space": "0",
                "dfs.datanode.address": "127.0.0.1:0",
                "dfs.datanode.ipc.address": "127.0.0.1:0",
                "dfs.datanode.hostname": "127.0.0.1",
                **self._more,
            },
        )
        formatting = ("-format", "-nonInteractive", "-force")
        done = subprocess.run(
            self._java("hadoop", NAME_NODE, *formatting),
            capture_output=True,
            cwd=self.work,
            timeout=TIMEOUT_SECONDS,
            check=False,
        )
        self.output.write_bytes(done.stderr)
        if done.returncode:
            raise ServerError(f"the NameNode cannot be formatted\n{self.tail()}")
        self._run()

    def _run(self) -> None:
        self._spawn(self._java("hadoop", NAME_NODE))
        web = (f"127.0.0.1:{self._datanode}", *("127.0.0.1:0",) * (self._datanodes - 1))
        for number, address in enumerate(web):
            settings = {
                "dfs.datanode.http.address": address,
                "dfs.datanode.data.dir": str(self.work / "data" / f"datanode-{number}"),
            }
            defined = [f"-D{name}={value}" for name, value in settings.items()]
            self._spawn(self._java("hadoop", DATA_NODE, *defined))

    def kill_and_restart(self) -> None:
        """Kill all processes at once (SIGKILL), and start them again on their files."""
        self.kill()
        atexit.register(self.kill)
        self._run()
        self._wait_until(self._ready)

    def kill_datanode(self) -> None:
        """Kill only the first DataNode."""
        self._processes[1].kill()
        self._processes[1].wait()

    def syncs(self) -> int:
        """Return how often the first DataNode has synced a file to its disk so far."""
        time.sleep(METRICS_SECONDS + 0.2)  # It shows the metrics of the last interval.
        query = "qry=Hadoop:service=DataNode,name=DataNodeActivity-*"
        address = f"http://127.0.0.1:{self._datanode}/jmx?{query}"
        with urllib.request.urlopen(address, timeout=5) as answer:
            (metrics,) = json.load(answer)["beans"]
        return int(metrics["FsyncCount"])

    def _ready(self) -> bool:
        try:
            with urllib.request.urlopen(self._state, timeout=5) as answer:
                state = answer.read()
        except OSError:
            return False
        # After a restart it waits for the blocks of the files that it knows.
        live = f'"NumLiveDataNodes" : {self._datanodes},'.encode()
        return live in state and b'"FSState" : "Operational"' in state


def _xml(path: Path, settings: dict[str, str]) -> None:
    properties = "".join(
        f"<property><name>{name}</name><value>{value}</value></property>\n"
        for name, value in settings.items()
    )
    path.write_text(f"<configuration>\n{properties}</configuration>\n")


def _properties(path: Path, settings: dict[str, str]) -> None:
    path.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
