"""`klog topics` against what the broker itself reported."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.connector.log_dirs import many, write_log
from tests.corpus import SCENES, scene
from tests.support.klog_command import Klog

INTERNAL = {"__cluster_metadata", "__consumer_offsets", "__transaction_state"}


def topic_id(partition_dir: Path) -> str:
    lines = (partition_dir / "partition.metadata").read_text().splitlines()
    return dict(line.split(": ") for line in lines)["topic_id"]


@pytest.mark.parametrize("name", SCENES)
def test_list_names_the_topics(on_scene: Klog, name: str) -> None:
    topics = sorted({topic for topic, _ in scene(name).partitions()})
    result = on_scene(name, "topics", "list", "--exclude-internal")
    assert (result.code, result.err) == (0, "")
    assert result.out.decode().splitlines() == topics
    everything = set(on_scene(name, "topics", "list").out.decode().splitlines())
    assert everything - set(topics) <= INTERNAL
    assert "__consumer_offsets" in everything


def test_a_pattern_has_to_match_the_whole_name(on_scene: Klog) -> None:
    result = on_scene("records", "topics", "list", "--topic", r"time\..*e, x")
    assert result.code == 0
    assert result.out.decode().splitlines() == []
    result = on_scene("records", "topics", "list", "--topic", r"time\.s.*,x,codecs")
    assert result.out.decode().splitlines() == ["codecs", "time.switched", "x"]


def test_list_as_json(on_scene: Klog) -> None:
    result = on_scene("records", "topics", "list", "--topic", "codecs,__cluster_metadata", "--json")
    codecs, internal = sorted(json.loads(result.out), key=lambda topic: bool(topic["internal"]))
    assert codecs == {
        "topic": "codecs",
        "topicId": topic_id(scene("records").partition_dir("codecs", 0)),
        "partitions": [0, 1, 2, 3, 4],
        "internal": False,
    }
    assert internal["topic"] == "__cluster_metadata"


@pytest.mark.parametrize("name", SCENES)
def test_describe_gives_the_offsets_the_broker_gave(on_scene: Klog, name: str) -> None:
    result = on_scene(name, "topics", "describe", "--exclude-internal", "--json")
    assert result.code == 0
    described = {
        (topic["topic"], facts["partition"]): (topic["topicId"], facts)
        for topic in json.loads(result.out)
        for facts in topic["partitions"]
    }
    bounds = scene(name).partitions()
    assert described.keys() == bounds.keys()
    for (topic, partition), (identity, facts) in described.items():
        expected, folder = bounds[topic, partition], scene(name).partition_dir(topic, partition)
        logs = [path.stat().st_size for path in folder.glob("*.log") if path.stat().st_size]
        assert identity == topic_id(folder)
        assert facts["logStartOffset"] == expected.earliest
        assert facts["logEndOffset"] == expected.high_watermark
        assert facts["lastStableOffset"] == expected.last_stable_offset
        assert facts["segments"] == len(logs)
        if topic == "killed.preallocated":  # the zeros after the records do not count
            assert 0 < facts["bytes"] < sum(logs)
        else:
            assert facts["bytes"] == sum(logs)


def test_describe_ends_before_a_torn_tail(klog: Klog, tmp_path: Path) -> None:
    """A broker that was killed just after a roll recovers its log to the same end."""
    batches = many(10)
    torn = b"".join(batches)[:-1]
    write_log(tmp_path, {0: [torn], 10: [b""]}, clean=False)
    result = klog("topics", "describe", "--root", str(tmp_path), "--json")
    assert result.code == 0
    (topic,) = json.loads(result.out)
    assert topic["partitions"] == [
        {
            "partition": 0,
            "logStartOffset": 0,
            "logEndOffset": 9,
            "lastStableOffset": 9,
            "segments": 1,
            "bytes": 9 * len(batches[0]),
        }
    ]


def test_describe_as_a_table(on_scene: Klog) -> None:
    result = on_scene("transactions", "topics", "describe", "--topic", "txn.open")
    folder = scene("transactions").partition_dir("txn.open", 0)
    size = sum(path.stat().st_size for path in folder.glob("*.log"))
    segments = sum(1 for path in folder.glob("*.log") if path.stat().st_size)
    assert result.out.decode() == (
        f"Topic: txn.open\tTopicId: {topic_id(folder)}\tPartitionCount: 1\n"
        "\tPartition: 0\tLogStartOffset: 0\tLogEndOffset: 53\tLastStableOffset: 2"
        f"\tSegments: {segments}\tBytes: {size}\n"
    )


def test_a_topic_that_is_not_there_is_refused(on_scene: Klog) -> None:
    result = on_scene("jbod", "topics", "describe", "--topic", "spraed.*")
    assert (result.code, result.out) == (1, b"")
    assert result.err.startswith("klog: --topic: no topic matches spraed.*; the topics here are ")
    assert "spread" in result.err


def test_a_pattern_that_is_none_is_wrong_usage(on_scene: Klog) -> None:
    result = on_scene("jbod", "topics", "list", "--topic", "(")
    assert (result.code, result.out) == (2, b"")
    assert "must be a regular expression, got '('" in result.err


def test_a_partition_that_cannot_be_read_leaves_the_others(klog: Klog, tmp_path: Path) -> None:
    for topic, partition in (("codecs", 0), ("codecs", 1), ("x", 0)):
        source = scene("records").partition_dir(topic, partition)
        shutil.copytree(source, tmp_path / source.name)
    log = tmp_path / "codecs-1" / "00000000000000000000.log"
    data = bytearray(log.read_bytes())
    data[16] = 9  # the magic of the first batch, which its CRC does not cover
    log.write_bytes(data)
    (tmp_path / "codecs-1" / "00000000000000000000.index").unlink()

    result = klog("topics", "describe", "--root", str(tmp_path))
    assert result.code == 1
    topic, good, bad, other, row = result.out.decode().splitlines()
    assert topic.startswith("Topic: codecs\t")
    assert "LogEndOffset: 60" in good
    assert bad.startswith("\tPartition: 1\tError: ")
    assert other.startswith("Topic: x\t")
    assert "LogEndOffset: 1" in row

    result = klog("topics", "describe", "--root", str(tmp_path), "--json")
    assert result.code == 1
    (codecs, _) = json.loads(result.out)
    assert [sorted(facts) == ["error", "partition"] for facts in codecs["partitions"]] == [
        False,
        True,
    ]
