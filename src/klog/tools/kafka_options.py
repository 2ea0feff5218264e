"""What only a broker's client understands: options and configs of Kafka's tools that end here.

The rule: a command line that worked against brokers goes on working when its tool and its place are
changed. What says how to reach a broker, or how long to wait for one, has no effect on files: it is
taken, and one warning names all of it. What is neither that nor klog's own is an error.
"""

from __future__ import annotations

import argparse
import logging
from collections.abc import Iterable, Mapping

from klog.jobs.shared.text_output import printable

_CONFIGS = (
    "acks", "bootstrap.servers", "client.", "connections.", "delivery.timeout.ms",
    "enable.idempotence", "enable.metrics.push", "interceptor.classes", "key.serializer",
    "max.block.ms", "max.in.flight.requests.per.connection", "max.request.size", "metadata.",
    "metric", "partitioner.", "receive.buffer.bytes", "reconnect.", "request.timeout.ms", "retries",
    "retry.", "sasl.", "security.", "send.buffer.bytes", "socket.", "ssl.",
    "transaction.timeout.ms", "transaction.two.phase.commit.enable", "value.serializer",
)  # fmt: skip
"""Of Kafka's producer; one that ends in a dot, or in no word, begins the names of several."""
_BEGIN_NAMES = ("metric",)

_log = logging.getLogger(__name__)


def add_client_options(
    parser: argparse.ArgumentParser, options: Iterable[str], flags: Iterable[str] = ()
) -> None:
    """Take options of Kafka's tool that have a value, and flags, to no effect."""
    for name in options:
        parser.add_argument(name, dest=_dest(name), help=argparse.SUPPRESS)
    for name in flags:
        parser.add_argument(name, dest=_dest(name), action="store_true", help=argparse.SUPPRESS)


def given_client_options(args: argparse.Namespace) -> list[str]:
    """Name those that were given."""
    return [
        f"--{name.removeprefix('client ')}"
        for name, value in vars(args).items()
        if name.startswith("client ") and value
    ]


def without_client_configs(configs: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """Give a producer's configs without those of a broker's client, and the names of these."""
    ignored = [name for name in configs if _is_clients(name)]
    return {name: text for name, text in configs.items() if name not in ignored}, ignored


def warn_of_client_options(names: Iterable[str]) -> None:
    """Say once what had no effect."""
    said = ", ".join(sorted(set(names)))
    if said:
        _log.warning("klog writes files and asks no broker: %s without effect", printable(said))


def _is_clients(name: str) -> bool:
    return any(
        name.startswith(one) if one.endswith(".") or one in _BEGIN_NAMES else name == one
        for one in _CONFIGS
    )


def _dest(name: str) -> str:
    return f"client {name.removeprefix('--')}"
