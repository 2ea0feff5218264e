"""Make the golden vectors from scratch: `python -m tests.golden.make_golden [version ...]`.

The rule: one broker a version, its log dir taken after a clean stop, so that its indexes are
trimmed; the account is that of the Java consumer of that version. Topic ids and the broker's times
differ from run to run, and so do the bytes; offsets, keys and values do not. Needs Java and the
jars of `tools/jars.py`, which fetches 2.8.2 and 3.9.1 the first time.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.corpus import Bounds, Record
from tests.corpus.clients import Client
from tests.corpus.oracle import Account, text, write_account
from tests.golden import ROOT, VERSIONS
from tests.golden.golden_topics import (
    V0,
    V1,
    V2,
    write_append_time,
    write_compacted,
    write_groups,
    write_idempotent,
    write_kafka_python,
    write_mixed,
    write_shapes,
    write_transactions,
)
from tests.golden.old_brokers import Broker28, Broker39
from tests.support.kafka_broker import Broker
from tests.support.kafka_classes import consume, java_process
from tests.support.waiting import TIMEOUT_SECONDS

LARGEST_BYTES = 900_000
# Records carry times of 2024: neither retention nor a segment's age may act on them by itself.
PROPERTIES = {"log.retention.ms": "-1", "log.roll.ms": str((1 << 63) - 1)}
LEFT_OUT = ("__cluster_metadata-0", ".lock")
INDEXES = {"segment.index.bytes": "512", "index.interval.bytes": "300"}
SMALL = {"segment.bytes": "1536", **INDEXES}
SMALL_42 = {"internal.segment.bytes": "1536", **INDEXES}
Write = Callable[[Client, Any], list[Any]]


def write_28(client: Client, gateway: Any) -> list[Any]:
    """Write all three formats."""
    for topic, version in (("v0", V0), ("v1", V1), ("v2", V2)):
        write_shapes(client, gateway, topic, version)
    for topic, version in (("v1.append", V1), ("v2.append", V2)):
        write_append_time(client, topic, version)
    write_kafka_python(client)
    write_mixed(client)
    write_idempotent(client, gateway)
    held = write_transactions(client, gateway, SMALL)
    write_groups(client)
    formats = {"v0.compacted": V0, "v1.compacted": V1, "v2.compacted": V2}
    write_compacted(client, client.broker.log_dirs[0], formats, SMALL)
    return held


def write_39(client: Client, gateway: Any) -> list[Any]:
    """Write v2, the only format of that version."""
    return _write_v2(client, gateway, SMALL)


def write_42(client: Client, gateway: Any) -> list[Any]:
    """Write v2, with small segments by another config."""
    return _write_v2(client, gateway, SMALL_42)


def _write_v2(client: Client, gateway: Any, small: dict[str, str]) -> list[Any]:
    write_shapes(client, gateway, "v2", None)
    write_append_time(client, "v2.append", None)
    write_idempotent(client, gateway)
    held = write_transactions(client, gateway, small)
    write_groups(client)
    write_compacted(client, client.broker.log_dirs[0], {"v2.compacted": None}, small)
    return held


MAKERS: dict[str, tuple[type[Broker], Write]] = {
    "2.8.2": (Broker28, write_28),
    "3.9.1": (Broker39, write_39),
    "4.2.0": (Broker, write_42),
}


def make(version: str, work: Path, out: Path) -> None:
    """Let one broker write its topics, take the account and then its log dir."""
    kind, write = MAKERS[version]
    started = time.monotonic()
    with kind(work, PROPERTIES) as broker, java_process(broker.component) as gateway:
        client = Client(broker)
        held = write(client, gateway)
        time.sleep(2)  # longer than the period of every checkpoint of tests/support/kafka_broker.py
        count = _account(client, gateway, out, f"broker-{version}")
        broker.stop()
        del held
    log_dir = broker.log_dirs[0]
    shutil.copytree(log_dir, out / f"broker-{version}" / log_dir.name,
                    ignore=shutil.ignore_patterns(*LEFT_OUT))  # fmt: skip
    size, seconds = _size(out / f"broker-{version}"), time.monotonic() - started
    sys.stdout.write(f"{version}: {count} records, {size} bytes, {seconds:.0f} s\n")


def _account(client: Client, gateway: Any, out: Path, name: str) -> int:
    topics = client.admin.list_topics(timeout=TIMEOUT_SECONDS).topics
    partitions = [(topic, p) for topic in client.notes for p in topics[topic].partitions]
    bootstrap = client.broker.bootstrap
    high, everything = consume(gateway, bootstrap, partitions, "read_uncommitted")
    stable, committed = consume(gateway, bootstrap, partitions, "read_committed")
    bounds: dict[tuple[str, int], Bounds] = {
        where: replace(bound, last_stable_offset=stable[where].last_stable_offset)
        for where, bound in high.items()
    }
    write_account(
        client,
        out / "truth",
        name,
        "clean",
        bounds,
        _to_account(everything),
        _to_account(committed),
    )
    return len(everything)


def _to_account(records: list[Record]) -> Account:
    return {
        (record.topic, record.partition, record.offset): {
            "topic": record.topic,
            "partition": record.partition,
            "offset": record.offset,
            "timestamp": record.timestamp,
            "timestampType": record.timestamp_type,
            "key": text(record.key),
            "value": text(record.value),
            "headers": [[name, text(content)] for name, content in record.headers] or None,
        }
        for record in records
    }


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def main() -> None:
    """Make the versions of the arguments, or all, in a temporary folder; then replace them."""
    versions = sys.argv[1:] or VERSIONS
    with tempfile.TemporaryDirectory(prefix="golden-") as temporary:
        work, out = Path(temporary) / "work", Path(temporary) / "out"
        for version in versions:
            make(version, work / version, out)
        for path in out.rglob("*"):
            if path.is_file() and temporary.encode() in path.read_bytes():
                raise RuntimeError(f"{path} names the temporary folder")
        for version in versions:
            shutil.rmtree(ROOT / f"broker-{version}", ignore_errors=True)
        shutil.copytree(out, ROOT, dirs_exist_ok=True)
    size = _size(ROOT)
    sys.stdout.write(f"{size} bytes in all\n")
    if size > LARGEST_BYTES:
        raise SystemExit(f"the golden vectors have over {LARGEST_BYTES} bytes")


if __name__ == "__main__":
    main()
