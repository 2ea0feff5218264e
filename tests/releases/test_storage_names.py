"""Names on storage do not change: every name that the current code writes is in these lists.

The rule: a name in these lists stays. To add a name, add it here on purpose, and raise the format
if a reader that does not know it would misread the rest (docs/commit-protocol.md, Versions).
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import klog
from tests.releases.command import done
from tests.releases.conftest import WrittenRoots
from tests.releases.large import write_large
from tests.releases.names import (
    columns_of,
    files_of,
    json_keys,
    metadata_keys,
    values_of,
)
from tests.releases.release_topics import numbered, table, wait_for_checkpoint

FILES = {
    "_klog/format.json",
    "_klog/topics/topic/topic.json",
    "_klog/topics/topic/log/00000000000000000000.json",
    "_klog/topics/topic/checkpoints/00000000000000000000-000000000000-xxxxxxxx.parquet",
    "_klog/topics/topic/gc/00000000000000000000",
    "topic-0/00000000000000000000-0000000000-xxxxxxxxxxxxxxxx.log",
    "topic-0/00000000000000000000-0000000000-xxxxxxxxxxxxxxxx.index",
    "topic-0/00000000000000000000-0000000000-xxxxxxxxxxxxxxxx.timeindex",
}
LARGE_FILES = {
    "_klog/topics/topic/parts/00000000000000000000-000000000000-xxxxxxxx.parquet",
    "_klog/topics/topic/sidecars/"
    "00000000000000000000-xxxxxxxxxxxxxxxx-000000000000-xxxxxxxx.parquet",
}
DESCRIPTION = {"format": 1, "since": "0.1.0", "writerFormat": 1, "writerSince": "0.1.0"}
COMMIT = {
    "format", "since", "version", "writeId", "previousWriteId", "timestampMs", "operation",
    "engine",
    "createTopic", "createTopic.topicId", "createTopic.partitions",
    "deleteTopic",
    "setPartitions",
    "setConfig", "setConfig.*",
    "setLogStart", "setLogStart.*",
    "setLogEnd", "setLogEnd.*",
    "setCleanedTo", "setCleanedTo.*",
    "setHorizon",
    "setProducer", "setProducer.transactionalId", "setProducer.batchId", "setProducer.queryId",
    "setProducer.runId", "setProducer.superseded",
    "add", "add.file", "add.partition", "add.baseOffset", "add.nextOffset", "add.offsetShift",
    "add.sizeBytes", "add.indexBytes", "add.timeIndexBytes", "add.crc32c", "add.recordCount",
    "add.batchCount", "add.minTimestampMs", "add.maxTimestampMs", "add.leaderEpoch", "add.codec",
    "add.producerIds", "add.origin", "add.tornBytes", "add.aborted",
    "remove",
    "removed", "removed.records", "removed.bytes",
    "forget",
    "addHoles", "addHoles.partition", "addHoles.baseOffset", "addHoles.nextOffset",
    "restore", "restore.version", "restore.logStart", "restore.logStart.*", "restore.logEnd",
    "restore.logEnd.*", "restore.cleanedTo", "restore.cleanedTo.*", "restore.holes",
    "restore.holes.partition", "restore.holes.baseOffset", "restore.holes.nextOffset",
    "post", "post.*", "post.*.logEnd",
}  # fmt: skip
"""`sidecar` is in commits of the large topic alone."""
OPERATIONS = {
    "append", "create-topic", "delete-topic", "alter-config", "add-partitions", "compact", "merge",
    "retain", "delete-records", "vacuum", "adopt", "repair",
    "restore",
}  # fmt: skip
FORMATS = {(1, "0.1.0"), (2, "0.1.0"), (3, "0.2.0"), (4, "0.3.0")}
CODECS = {"none", "gzip", "snappy", "lz4", "zstd"}
ORIGINS = {"append", "adopt", "merge", "compact"}
SEGMENT_COLUMNS = {
    ("partition", "int32"), ("file", "string"), ("base_offset", "int64"), ("next_offset", "int64"),
    ("offset_shift", "int64"), ("size_bytes", "int64"), ("index_bytes", "int64"),
    ("time_index_bytes", "int64"), ("crc32c", "int64"), ("record_count", "int64"),
    ("batch_count", "int64"), ("min_timestamp_ms", "int64"), ("max_timestamp_ms", "int64"),
    ("leader_epoch", "int32"), ("codec", "string"), ("producer_ids", "list<element: int64>"),
    ("origin", "string"), ("torn_bytes", "int64"), ("aborted", "list<element: int64>"),
}  # fmt: skip
PART_COLUMNS = SEGMENT_COLUMNS | {("version", "int64")}
CHECKPOINT_COLUMNS = PART_COLUMNS | {
    ("removed_version", "int64"), ("removed_timestamp_ms", "int64"), ("write_id", "string"),
    ("written_version", "int64"),
}  # fmt: skip
SIDECAR_COLUMNS = SEGMENT_COLUMNS | {("action", "string")}
CHECKPOINT = {
    "format", "since", "version", "timestamp_ms", "topic_id", "log_start", "log_end", "horizon",
    "config", "config.*", "cleaned_to", "parts",
    "progress", "progress.name", "progress.batch_id", "progress.query_id", "progress.run_id",
    "progress.superseded",
    "holes", "holes.partition", "holes.baseOffset", "holes.nextOffset",
    "restores", "restores.version", "restores.restored_version", "restores.log_end",
}  # fmt: skip
PARTS = {"parts.file", "parts.first", "parts.end", "parts.rows"}


def test_files(written_roots: WrittenRoots) -> None:
    assert files_of(written_roots.root) | files_of(written_roots.repaired) == FILES


def test_descriptions(written_roots: WrittenRoots) -> None:
    for root in written_roots.all:
        for path in root.glob("_klog/topics/*/topic.json"):
            assert json.loads(path.read_text()) == DESCRIPTION
        fields = json.loads((root / "_klog" / "format.json").read_text())
        cluster_id, config = fields.pop("clusterId"), fields.pop("config")
        assert (fields, config, type(cluster_id)) == (DESCRIPTION, {"num.partitions": "1"}, str)
    adopting = json.loads((written_roots.adopting / "_klog" / "adopting.json").read_text())
    assert adopting.keys() == {"clusterId"}


def test_commits(written_roots: WrittenRoots) -> None:
    paths = _paths(written_roots.all, "log/*.json")
    assert json_keys(paths) == COMMIT
    assert values_of(paths, "operation") == OPERATIONS
    commits = [json.loads(path.read_text()) for path in paths]
    assert {(commit["format"], commit["since"]) for commit in commits} == FORMATS
    entries = [entry for commit in commits for entry in commit.get("add", [])]
    assert {entry["codec"] for entry in entries} == CODECS
    assert {entry["origin"] for entry in entries} == ORIGINS
    assert {type(commit["deleteTopic"]) for commit in commits if "deleteTopic" in commit} == {dict}


def test_topics_without_newer_features_have_the_formats_of_0_1(written_roots: WrittenRoots) -> None:
    """Formats 3 and 4 are for repaired and restored topics alone, 2 for what a broker left."""
    formats = {
        name: values_of(_paths([root], "log/*.json"), "format")
        for name, root in (
            ("root", written_roots.root),
            ("adopted", written_roots.adopted),
            ("repaired", written_roots.repaired),
            ("restored", written_roots.restored),
        )
    }
    assert formats == {
        "root": {1, 2},
        "adopted": {1, 2},
        "repaired": {1, 3},
        "restored": {1, 4},
    }
    topics = {
        path.parts[-3]
        for path in _paths([written_roots.root], "log/*.json")
        if json.loads(path.read_text())["format"] == 2
    }
    assert topics == {"txn.interleaved"}


def test_checkpoints(written_roots: WrittenRoots) -> None:
    paths = _paths(written_roots.all, "checkpoints/*.parquet")
    assert columns_of(paths) == CHECKPOINT_COLUMNS
    assert metadata_keys(paths) == CHECKPOINT


def test_the_last_expired_version_names_its_checkpoint(written_roots: WrittenRoots) -> None:
    (last_expired,) = _paths([written_roots.root], "gc/*")
    assert (last_expired.parents[1] / "checkpoints" / last_expired.read_text()).exists()


@pytest.mark.slow
def test_parts_and_sidecars(tmp_path: Path) -> None:
    """A commit removes all segments of a topic with more than 100,000 of them."""
    write_large(tmp_path, "large")
    log = klog.open(tmp_path)
    for number in range(100):
        log.append("large", table(numbered(number, 1)))
    wait_for_checkpoint(tmp_path, "large")
    done("retain", "--root", str(tmp_path), "--topic", "large")
    assert files_of(tmp_path) - LARGE_FILES < FILES
    parts, sidecars = (
        _paths([tmp_path], f"{folder}/*.parquet") for folder in ("parts", "sidecars")
    )
    assert (columns_of(parts), metadata_keys(parts)) == (PART_COLUMNS, {"format", "since"})
    assert columns_of(sidecars) == SIDECAR_COLUMNS
    assert metadata_keys(sidecars) == {"format", "since"}
    actions = [pc.unique(pq.read_table(path)["action"]).to_pylist() for path in sidecars]
    assert actions == [["remove"]]
    checkpoints = _paths([tmp_path], "checkpoints/*.parquet")
    assert metadata_keys(checkpoints) >= PARTS
    newest = max(_paths([tmp_path], "log/*.json"))
    assert json.loads(newest.read_text())["sidecar"] == sidecars[0].name


def _paths(roots: Iterable[Path], pattern: str) -> list[Path]:
    paths = [path for root in roots for path in root.glob(f"_klog/topics/*/{pattern}")]
    assert paths, pattern
    return paths
