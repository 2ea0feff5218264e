"""Options and configs of Kafka's tools that only a broker's client needs.

The rule: an option that says how to reach a broker, how many brokers have a copy, or which group
reads, has no effect on files. A verb takes those of the Kafka tool that it replaces, and a warning
names them. An option that is neither that nor klog's own is an error.
"""

from __future__ import annotations

import argparse
import logging
from collections.abc import Iterable, Mapping

from klog.text_output import printable

_CONFIGS = (
    "acks", "bootstrap.servers", "client.", "connections.", "delivery.timeout.ms",
    "enable.idempotence", "enable.metrics.push", "interceptor.classes", "key.serializer",
    "max.block.ms", "max.in.flight.requests.per.connection", "max.request.size", "metadata.",
    "metric", "partitioner.", "receive.buffer.bytes", "reconnect.", "request.timeout.ms", "retries",
    "retry.", "sasl.", "security.", "send.buffer.bytes", "socket.", "ssl.",
    "transaction.timeout.ms", "transaction.two.phase.commit.enable", "value.serializer",
)  # fmt: skip
"""Configs of Kafka's producer; one that ends in a dot is the prefix of several."""
_PREFIXES = ("metric",)
"""Prefixes that do not end in a dot."""

ADMIN_OPTIONS = ("--bootstrap-server", "--command-config")
"""Options of every tool of Kafka that asks or changes brokers."""

_log = logging.getLogger(__name__)


def add_client_options(
    parser: argparse.ArgumentParser, options: Iterable[str], flags: Iterable[str] = ()
) -> None:
    """Add options of Kafka's tool, with a value, and flags; they have no effect."""
    for name in options:
        parser.add_argument(name, dest=_dest(name), help=argparse.SUPPRESS)
    for name in flags:
        parser.add_argument(name, dest=_dest(name), action="store_true", help=argparse.SUPPRESS)


def client_options(args: argparse.Namespace) -> list[str]:
    """Return the names of the client options on the command line."""
    return [
        f"--{name.removeprefix('client ')}"
        for name, value in vars(args).items()
        if name.startswith("client ") and value
    ]


def without_client_configs(configs: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """Return a producer's configs without those of a broker's client, and the removed names."""
    ignored = [name for name in configs if _is_clients(name)]
    return {name: text for name, text in configs.items() if name not in ignored}, ignored


def warn_of_client_options(names: Iterable[str]) -> None:
    """Log one warning that names the options without effect."""
    text = ", ".join(sorted(set(names)))
    if text:
        _log.warning("options without effect, because klog needs no broker: %s", printable(text))


def _is_clients(name: str) -> bool:
    return any(
        name.startswith(config) if config.endswith(".") or config in _PREFIXES else name == config
        for config in _CONFIGS
    )


def _dest(name: str) -> str:
    return f"client {name.removeprefix('--')}"
