"""A real schema registry: Apicurio, which speaks Confluent's API under a path of its own."""

from __future__ import annotations

import urllib.error
import urllib.request

from tests.support.kafka_broker import free_ports
from tests.support.store_servers import Server
from tools.apicurio import apicurio_jar
from tools.jars import java


class Apicurio(Server):
    """The server, with its schemas in memory."""

    url: str

    def _start(self) -> None:
        (port,) = free_ports(1)
        self.url = f"http://127.0.0.1:{port}/apis/ccompat/v7"
        options = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
        settings = {"quarkus.http.host": "127.0.0.1", "quarkus.http.port": str(port)}
        words = [f"-D{name}={value}" for name, value in settings.items()]
        self._spawn([str(java()), *options, *words, "-jar", str(apicurio_jar())])

    def _ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/subjects", timeout=5) as answer:
                return bool(answer.status == 200)
        except (urllib.error.URLError, OSError):
            return False
