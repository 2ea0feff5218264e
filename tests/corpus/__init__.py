"""What real brokers wrote, and what the real consumer read back from them.

The rule: nothing here was computed by klog. `broker-4.2.0/<scene>/<log dir>` is a broker's own
log dir, copied after it stopped; `broker-4.2.0/truth/<scene>.*` is librdkafka's account of it,
taken from the running broker. `python -m tests.corpus.make_corpus` makes all of it again.
"""

from __future__ import annotations

import gzip
import json
from base64 import b64decode
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent / "broker-4.2.0"
LONGEST_VALUE_KEPT_BYTES = 4096

SCENES = (
    "records",
    "transactions",
    "compacted-before",
    "compacted-after",
    "compacted-again",
    "jbod",
    "killed",
)


@dataclass(frozen=True, slots=True)
class Digest:
    """Stands for a value over 4 KiB."""

    sha256: str
    size: int

    @staticmethod
    def of(value: bytes) -> Digest:
        """Return the digest of a value."""
        return Digest(sha256(value).hexdigest(), len(value))


@dataclass(frozen=True, slots=True)
class Record:
    """One record as the real consumer gave it."""

    topic: str
    partition: int
    offset: int
    timestamp: int  # milliseconds since 1970, may be negative
    timestamp_type: int  # 0 CreateTime, 1 LogAppendTime, -1 none (v0)
    key: bytes | None
    value: bytes | Digest | None
    headers: tuple[tuple[str, bytes | None], ...]
    read_committed: bool  # every record is given to read_uncommitted


@dataclass(frozen=True, slots=True)
class Bounds:
    """The offsets the broker reported for a partition."""

    earliest: int
    high_watermark: int  # latest, read_uncommitted
    last_stable_offset: int  # latest, read_committed


@dataclass(frozen=True, slots=True)
class Scene:
    """One broker's log dirs at one moment, and the truth about them."""

    name: str
    log_dirs: list[Path]
    kafka: str  # the version that wrote it
    stop: str  # "clean" or "killed"
    notes: dict[str, str]  # topic -> what it shows
    configs: dict[str, dict[str, str]]  # topic -> what was set at creation
    root: Path  # where `truth` lies

    def records(self) -> list[Record]:
        """Return all records, by topic, partition and offset."""
        return list(_records(self.root, self.name))

    def partitions(self) -> dict[tuple[str, int], Bounds]:
        """Return the bounds of every (topic, partition) but those of Kafka's internal topics."""
        partitions = _facts(self.root, self.name)["partitions"]
        return {
            (bounds["topic"], bounds["partition"]): Bounds(
                bounds["earliest"], bounds["high_watermark"], bounds["last_stable_offset"]
            )
            for bounds in partitions
        }

    def partition_dir(self, topic: str, partition: int) -> Path:
        """Return the one directory of a partition; FileNotFoundError if no log dir has it."""
        for log_dir in self.log_dirs:
            directory = log_dir / f"{topic}-{partition}"
            if directory.is_dir():
                return directory
        raise FileNotFoundError(f"scene {self.name} has no {topic}-{partition}")


def scene(name: str, root: Path = ROOT) -> Scene:
    """Return a scene by its name, one of SCENES if it lies below ROOT."""
    facts = _facts(root, name)
    return Scene(
        name=name,
        log_dirs=[root / name / folder for folder in facts["log_dirs"]],
        kafka=facts["kafka"],
        stop=facts["stop"],
        notes=dict(facts["notes"]),
        configs={topic: dict(config) for topic, config in facts["configs"].items()},
        root=root,
    )


@cache
def _facts(root: Path, name: str) -> dict[str, Any]:
    facts: dict[str, Any] = json.loads((root / "truth" / f"{name}.json").read_text())
    return facts


@cache
def _records(root: Path, name: str) -> tuple[Record, ...]:
    with gzip.open(root / "truth" / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
        return tuple(_record(json.loads(line)) for line in lines)


def _record(fields: dict[str, Any]) -> Record:
    value = fields["value"]
    return Record(
        topic=fields["topic"],
        partition=fields["partition"],
        offset=fields["offset"],
        timestamp=fields["timestamp"],
        timestamp_type=fields["timestampType"],
        key=_bytes(fields["key"]),
        value=Digest(**value) if isinstance(value, dict) else _bytes(value),
        headers=tuple((name, _bytes(content)) for name, content in fields["headers"] or ()),
        read_committed="c" in fields["levels"],
    )


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else b64decode(text)
