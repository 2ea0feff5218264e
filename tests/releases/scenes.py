"""Scenes: commands on copies of an archive's directories, and the JSON that each must print.

The rule: a scene is data. `reports.json` of an archive has the scenes that its release played, and
the current code plays them again. A step runs a command or changes a file:

    {"run": [...]}                         runs a command that prints JSON; `{here}` is the scene's
                                           directory, and a star stands for the files that match
    {"delete": GLOB}                       deletes files
    {"flip": GLOB, "position": N}          flips a bit of each, from the end if N is negative
    {"write": PATH, "text": TEXT}          makes a file
    {"edit": PATH, "replace": [OLD, NEW]}  replaces a text that occurs once in a file
    {"copy": [FROM, TO]}                   copies a file
    {"link": [PATH, TO]}                   moves a file or a directory, and leaves a link to it
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tests.releases.release_topics import WIDE

Step = dict[str, Any]
HERE = "{here}"
ROOT = ("--root", f"{HERE}/root")
DEFAULT_TOPICS = (
    "again", "altered", "append-time", "cleaned", "codecs", "compacted", "compacted-many",
    "deleted", "indexed", "many", "merged", "mixed", "named", "retained", "shifted", "trimmed",
    "txn.interleaved", "v1.append",
)  # fmt: skip
"""The topics of the root, deleted ones too."""
BROKERS = f"{HERE}/brokers"
NEVER = "99999d"
ABORT = ("--open-transactions", "abort")
LEASE = '{"version": 13, "expiresMs": 4102444800000}'
ORPHAN = f"root/codecs-0/{99:020}-{0:010}-0123456789abcdef.log"
TEMPORARY_FILES = (
    f"root/codecs-0/.{99:020}-{0:010}-0123456789abcdef.log.0123456789abcdef.tmp",
    f"root/_klog/topics/codecs/log/.{1:020}.json.0123456789abcdef.tmp",
)
"""Temporary files: docs/stores.md has their names."""


def command(*arguments: str) -> Step:
    """Return the step of a command that prints JSON."""
    return {"run": [*arguments, "--json"]}


def plain(*arguments: str) -> Step:
    """Return the step of a command that always prints JSON."""
    return {"run": list(arguments)}


def _topics(verb: str, *more: str) -> Step:
    return command("topics", verb, *ROOT, *more)


def _reading() -> Iterable[Step]:
    """Yield commands that change nothing."""
    yield _topics("list")
    yield _topics("list", "--exclude-internal", "--topic", "a.*,v1.append")
    yield _topics("describe")
    yield command("topics", "list", "--root", f"{BROKERS}/old")
    yield command("topics", "describe", "--root", f"{BROKERS}/transactions")
    yield command("configs", *ROOT)
    yield command("configs", *ROOT, "--topic", "altered", "--all")
    for topic in DEFAULT_TOPICS:
        yield command("history", *ROOT, "--topic", topic)
    yield command("history", "--root", f"{HERE}/wide", "--topic", WIDE, "--limit", "2")
    yield command("consume", *ROOT, "--topic", "codecs")
    yield command("consume", *ROOT, "--topic", "append-time", "--offset", "-2")
    yield command("consume", "--root", f"{BROKERS}/old", "--topic", "v0", "--partition", "1")
    yield command("verify", *ROOT)
    yield command("verify", *ROOT, "--fast", "--topic", "many")
    yield command("compact", *ROOT, "--dry-run")
    yield command("merge", *ROOT, "--dry-run")
    yield command("retain", *ROOT, "--dry-run")
    yield command("vacuum", *ROOT)
    yield command("vacuum", *ROOT, "--grace", NEVER, "--log-retention", NEVER)
    yield command("vacuum", *ROOT, "--grace", "0s", "--log-retention", "0s")
    position = ("--topic", "codecs", "--partition", "1", "--offset", "3")
    yield command("delete-records", *ROOT, *position, "--dry-run")
    yield command("export-log", *ROOT, "--to", f"{HERE}/exported", "--dry-run")
    yield command("adopt", "--root", f"{BROKERS}/transactions", *ABORT, "--dry-run")
    yield command("adopt", "--root", f"{HERE}/adopting", *ABORT, "--dry-run")
    source = ("--from", f"{BROKERS}/killed", *ABORT)
    yield command("import-log", *ROOT, *source, "--dry-run")
    consumer = ("verifiable-consumer", *ROOT, "--topic", "merged", "--max-messages", "20")
    yield plain(*consumer, "--verbose")


def _dumping() -> Iterable[Step]:
    """Yield dumps of each kind of file."""
    yield command("dump", "--print-data-log", "--files", f"{HERE}/root/codecs-0/*.log")
    yield command("dump", "--files", f"{HERE}/root/indexed-0/*.log")
    yield command("dump", "--deep-iteration", "--files", f"{HERE}/root/shifted-0/*.log")
    transactions = f"{BROKERS}/transactions"
    yield command("dump", "--files", f"{transactions}/txn.interleaved-0/*")
    yield command("dump", "--files", f"{transactions}/*-checkpoint,{transactions}/meta.properties")
    yield command("dump", "--files", f"{transactions}/.kafka_cleanshutdown")
    log = f"{BROKERS}/old/__transaction_state-0/*.log"
    yield command("dump", "--transaction-log-decoder", "--files", log)
    log = f"{BROKERS}/old/__consumer_offsets-0/*.log"
    yield command("dump", "--offsets-decoder", "--files", log)
    for topic in ("v0-0", "mixed-1", "v1.compacted-0"):
        yield command("dump", "--print-data-log", "--files", f"{BROKERS}/old/{topic}/*.log")
    yield {"flip": "brokers/old/mixed-1/*.log", "position": -3}
    yield command("dump", "--print-data-log", "--files", f"{BROKERS}/old/mixed-1/*.log")
    yield {"flip": "brokers/killed/killed-0/*.index", "position": 5}
    yield command("dump", "--files", f"{BROKERS}/killed/killed-0/*,{HERE}/nothing.log")


def _changing() -> Iterable[Step]:
    """Yield commands that change topics and files."""
    orders = ("--topic", "orders")
    yield _topics("create", *orders, "--partitions", "2", "--config", "retention.ms=-1")
    yield _topics("create", *orders, "--if-not-exists")
    yield _topics("alter", *orders, "--partitions", "3")
    yield command("configs", *ROOT, *orders, "--config", "segment.ms=3600000", "--all")
    yield command("configs", *ROOT, *orders, "--delete-config", "segment.ms")
    yield {"write": "lines.txt", "text": "a\tone\nb\ttwo\nc\tthree\n"}
    produce = ("produce", *ROOT, *orders, "--file", f"{HERE}/lines.txt")
    keys = ("--reader-property", "parse.key=true", "--compression-codec", "none")
    yield command(*produce, *keys)
    for version in ("7", "7", "8"):
        writer = ("--transactional-id", "etl", "--transaction-version", version)
        yield command(*produce, *keys, *writer)
    producer = ("verifiable-producer", *ROOT, *orders, "--max-messages", "6")
    yield plain(*producer, "--batch-messages", "3", "--value-prefix", "2")
    yield {"write": "starts.json", "text": _starts(("codecs", 0, 5), ("orders", 1, -1))}
    yield command("delete-records", *ROOT, "--offset-json-file", f"{HERE}/starts.json")
    yield command("compact", *ROOT, "--min-dirty-ratio", "0")
    yield command("merge", *ROOT)
    yield command("retain", *ROOT)
    yield command("import-log", *ROOT, "--from", f"{BROKERS}/killed", *ABORT)
    yield command("import-log", *ROOT, "--from", f"{BROKERS}/killed", *ABORT)
    yield command("adopt", "--root", f"{BROKERS}/transactions", *ABORT)
    yield command("adopt", "--root", f"{BROKERS}/transactions", *ABORT)
    yield command("adopt", "--root", f"{HERE}/adopting", *ABORT)
    yield command("export-log", *ROOT, "--topic", "shifted", "--to", f"{HERE}/exported")
    end = ("--open-transactions", "end")
    adopted = ("--root", f"{HERE}/adopting", "--topic", "killed.open")
    yield command("export-log", *adopted, "--to", f"{HERE}/exported", *end)
    yield command("topics", "describe", "--root", f"{HERE}/exported")
    yield _topics("delete", *orders)
    yield _topics("delete", *orders, "--if-exists")
    yield command("verify", *ROOT)
    for topic in ("compacted", "merged", "retained", "orders", "killed", "codecs"):
        yield command("history", *ROOT, "--topic", topic)
    yield {"write": "root/_klog/topics/merged/pins/lease-01.json", "text": LEASE}
    yield command("vacuum", *ROOT, "--topic", "merged", "--grace", "0s")
    yield {"delete": "root/_klog/topics/merged/pins/lease-01.json"}
    for name in (ORPHAN, *TEMPORARY_FILES):
        yield {"write": name, "text": "of a writer that was killed"}
    yield command("vacuum", *ROOT, "--grace", "0s", "--log-retention", "0s", "--execute")
    yield command("verify", *ROOT)


def _starts(*partitions: tuple[str, int, int]) -> str:
    rows = ", ".join(
        f'{{"topic": "{topic}", "partition": {partition}, "offset": {offset}}}'
        for topic, partition, offset in partitions
    )
    return f'{{"partitions": [{rows}], "version": 1}}'


def _failing() -> Iterable[Step]:
    """Yield commands on damaged files, which leave them alone and report findings."""
    yield {"write": "root/_klog/topics/altered/log/" + f"{1:020}.json", "text": "no JSON"}
    yield {"flip": "root/compacted-0/*.log", "position": -3}
    yield {"flip": "root/merged-1/*.log", "position": -3}
    yield {"flip": "root/indexed-0/*.index", "position": 3}
    yield {"delete": "root/trimmed-0/*.log"}
    yield {"flip": "brokers/killed/killed-0/" + f"{0:020}.log", "position": 200}
    yield _topics("list")
    yield _topics("describe")
    yield command("configs", *ROOT)
    yield command("verify", *ROOT)
    yield command("compact", *ROOT, "--min-dirty-ratio", "0", "--dry-run")
    yield command("compact", *ROOT, "--min-dirty-ratio", "0")
    yield command("merge", *ROOT, "--dry-run")
    yield command("merge", *ROOT)
    yield command("retain", *ROOT)
    yield command("vacuum", *ROOT, "--grace", "0s")
    yield command("vacuum", *ROOT, "--grace", "0s", "--execute")
    source = ("--from", f"{BROKERS}/killed", *ABORT)
    yield command("import-log", *ROOT, *source)
    yield command("topics", "describe", "--root", f"{BROKERS}/killed")


def _repairing() -> Iterable[Step]:
    """Yield repairs of lost files: klog 0.2 and later."""
    repaired = ("--root", f"{HERE}/repaired")
    for topic in ("added", "hole", "hole-in-tail", "described", "raised"):
        yield command("history", *repaired, "--topic", topic)
    yield command("topics", "describe", *repaired)
    yield command("repair", *ROOT)
    yield from _losses()
    yield command("verify", *ROOT)
    yield command("repair", *ROOT)
    yield command("repair", *ROOT, "--topic", "named", "--declare-holes")
    yield command("repair", *ROOT, "--topic", "shifted", "--declare-holes")
    yield command("repair", *ROOT, "--topic", "altered", "--discard-lost", "--partitions", "4")
    yield command("repair", *ROOT, "--execute")
    yield command("repair", *ROOT)
    for topic in ("named", "codecs"):
        yield command("history", *ROOT, "--topic", topic)
    yield command("repair", *repaired, "--topic", "hole")
    yield command("repair", *repaired, "--execute")
    yield command("repair", *repaired)
    yield _topics("delete", "--topic", "codecs")
    yield command("vacuum", *ROOT, "--grace", "0s")
    yield command("vacuum", *ROOT, "--grace", "0s", "--execute")
    yield command("vacuum", *ROOT, "--topic", "again", "--grace", "0s", "--discard-lost")
    yield command("vacuum", *ROOT, "--topic", "again", "--discard-lost", "--execute")
    yield {"delete": "root/_klog/format.json"}
    cluster = ("--cluster-id", "AAAAAAAAAAAAAAAAAAAAAA")
    yield command("repair", *ROOT, *cluster)
    yield command("repair", *ROOT, *cluster, "--execute")


def _losses() -> Iterable[Step]:
    """Lose commits whose segments are there, partly there, or lost too; and descriptions."""
    yield _lose("named", 2)
    yield _lose("codecs", 3)
    yield {"delete": "root/codecs-*/*-0000000002-*.log"}
    yield _lose("shifted", 2)
    yield {"delete": f"root/shifted-0/{5:020}-*.log"}
    for version in (1, 5, 6):
        yield _lose("altered", version)
    for version in (3, 4):
        yield _lose("again", version)
    yield {"delete": "root/_klog/topics/trimmed/topic.json"}
    forked = f"root/_klog/topics/many/log/{51:020}.json"
    yield {"copy": [f"root/_klog/topics/many/log/{52:020}.json", forked]}
    yield {"edit": forked, "replace": ['"version": 52', '"version": 51']}
    yield {"delete": f"repaired/_klog/topics/hole/log/{80:020}.json"}
    yield {"link": ["root/codecs-2", "elsewhere/codecs-2"]}


def _lose(topic: str, version: int) -> Step:
    return {"delete": f"root/_klog/topics/{topic}/log/{version:020}.json"}


def scenes_of(version: str) -> list[dict[str, Any]]:
    """Return the scenes that a version can play; directories are relative to the archive."""
    scenes: list[tuple[str, Iterable[Step], list[str]]] = [
        ("reading", _reading(), ["root", "wide", "brokers", "adopting"]),
        ("dumping", _dumping(), ["root", "brokers"]),
        ("changing", _changing(), ["root", "brokers", "adopting"]),
        ("failing", _failing(), ["root", "brokers"]),
    ]
    if version != "0.1.0":
        scenes.append(("repairing", _repairing(), ["root", "repaired"]))
    return [
        {"scene": name, "copies": copies, "steps": list(steps)} for name, steps, copies in scenes
    ]
