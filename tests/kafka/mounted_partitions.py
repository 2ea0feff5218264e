"""What a broker and Java's clients read of partitions that were put into its log directory.

The rule: nothing here knows who wrote them, so the checks are the same for every writer.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Collection
from pathlib import Path
from typing import Any, TypeAlias

from tests.corpus import Record
from tests.corpus.clients import numbered
from tests.support.kafka_broker import Broker
from tests.support.kafka_classes import JavaProducer, consume
from tests.support.project import PROJECT
from tests.support.reader_rows import LEVELS
from tests.support.waiting import TIMEOUT_SECONDS

Where: TypeAlias = tuple[str, int]
Accounts: TypeAlias = dict[str, list[Record]]
DOC = (PROJECT / "docs" / "export.md").read_text()
INDEXES = (".index", ".timeindex", ".txnindex")
PRODUCED_RECORDS = {"read_uncommitted": 3 + 3 * 2 + 2, "read_committed": 3 + 2 * 2 + 2}
"""The number of records that a consumer reads of those `produce_after` appends, by level."""


def mount(root: str, topic: str, partitions: int, log_dir: Path, work: Path, *options: str) -> None:
    """Run the commands of docs/export.md for another topic, with options of `export-log`."""
    (block,) = re.findall(r"^```sh mount\n(.*?)^```$", DOC, re.DOTALL | re.MULTILINE)
    block = block.replace("export-log", " ".join(["export-log", *options]))
    numbers = " ".join(map(str, range(partitions)))
    commands = block.replace("orders", topic).replace("0 1 2", numbers)
    commands = commands.replace("/tmp/", f"{work}/")
    main = "from klog.cli import main; raise SystemExit(main())"
    klog = f'klog() {{ "{sys.executable}" -c "{main}" "$@"; }}\n'
    subprocess.run(
        ["sh", "-eu", "-c", klog + commands],
        env={**os.environ, "LOG_DIR": str(log_dir), "ROOT": root},
        check=True,
        timeout=TIMEOUT_SECONDS,
    )


def files(folder: Path, where: Where, *suffixes: str) -> dict[str, bytes]:
    """Return the files of a partition that end with one of the suffixes."""
    directory = folder / f"{where[0]}-{where[1]}"
    return {
        path.name: path.read_bytes()
        for path in sorted(directory.iterdir())
        if path.suffix in suffixes
    }


def of_partition(records: list[Record], where: Where) -> list[Record]:
    """Return the records of one partition."""
    return [record for record in records if (record.topic, record.partition) == where]


def consumed(gateway: Any, broker: Broker, partitions: Collection[Where]) -> Accounts:
    """Read partitions with the Java consumer, by isolation level."""
    return {level: consume(gateway, broker.bootstrap, partitions, level)[1] for level in LEVELS}


def produce_after(gateway: Any, broker: Broker, partitions: Collection[Where]) -> None:
    """Append to every partition: idempotent, committed, aborted."""
    plain = JavaProducer(gateway, broker.bootstrap, enable_idempotence="true", acks="all",
                         compression_type="lz4")  # fmt: skip
    both = JavaProducer(gateway, broker.bootstrap, transactional_id="after klog")
    both.java.initTransactions()
    for topic, partition in partitions:
        plain.batch(topic, partition, numbered(3))
    for commit in (True, False, True):
        both.java.beginTransaction()
        for topic, partition in partitions:
            both.batch(topic, partition, numbered(2, 10))
        if commit:
            both.java.commitTransaction()
        else:
            both.java.abortTransaction()
    for topic, partition in partitions:
        plain.batch(topic, partition, numbered(2, 20))
    plain.close()
    both.close()


def assert_kept(before: dict[str, bytes], after: dict[str, bytes]) -> None:
    """Check that a clean start kept every file of a partition.

    Closed segments keep their bytes; the active one begins with its bytes of before.
    """
    active = max(name[:20] for name in before)
    for name, content in before.items():
        if name.startswith(active):
            # The last entry of a time index is that of the clean stop.
            assert after[name].startswith(content), name
        else:
            assert after[name] == content, name
