"""`repair` of a root that has lost `format.json`, and of a topic that has lost `topic.json`."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from klog.connector.commit_log import checkpoint_writer
from klog.connector.commit_log.root_discovery import find_root
from klog.connector.commit_log.topic_state import TopicState
from klog.connector.root_files import FORMAT_FILE
from klog.errors import KlogError, OptionError
from klog.jobs import repair, verify
from tests.jobs.lost_files import (
    TOPIC,
    append,
    lose_commits,
    lose_description,
    lose_format,
    written,
)
from tests.jobs.written_root import WrittenRoot


@pytest.fixture
def root(tmp_path: Path) -> WrittenRoot:
    return written(tmp_path / "root")


def files(root: WrittenRoot) -> dict[str, bytes]:
    paths = Path(root.location).rglob("*")
    return {str(path): path.read_bytes() for path in paths if path.is_file()}


def test_topic_json_is_put_as_it_was(root: WrittenRoot) -> None:
    before = files(root)
    lose_description(root)
    with pytest.raises(KlogError, match="klog repair"):
        root.state(TOPIC)
    dry = repair.run(None, root.location)
    assert dry.exit_code == 1
    assert f"Put: {root.root.log(TOPIC).paths.description}" in "\n".join(dry.lines())
    assert repair.run(None, root.location, dry_run=False).exit_code == 0
    assert files(root) == before


def is_same(state: TopicState, other: TopicState) -> bool:
    """Return whether only the fence of a repair tells states apart."""
    return state.segments.equals(other.segments) and state.log_end == other.log_end


@pytest.mark.parametrize("lost", ["tail", "checkpoint alone"])
def test_topic_json_is_put_though_commits_are_lost_too(root: WrittenRoot, lost: str) -> None:
    before = root.state(TOPIC)
    checkpoint_writer.write_checkpoint(root.root.log(TOPIC), before)
    lose_commits(root, *(range(6) if lost == "checkpoint alone" else [4, 5]))
    lose_description(root)
    assert repair.run(None, root.location, dry_run=False).exit_code == 0
    assert is_same(root.state(TOPIC), before)
    append(root, 1, 0)
    assert verify.run(None, root.location).findings == ()


def test_a_folder_that_never_was_a_topic_is_left(root: WrittenRoot) -> None:
    (Path(root.location) / "_klog/topics/stray").mkdir()
    assert repair.run(None, root.location, dry_run=False).exit_code == 0
    assert list((Path(root.location) / "_klog/topics/stray").iterdir()) == []


@pytest.mark.parametrize("cluster_id", ["", "AQAAAAAAAAAAAAAAAAAAAA"])
def test_format_json_is_put_with_a_cluster_id(root: WrittenRoot, cluster_id: str) -> None:
    state = root.state(TOPIC)
    lose_format(root)
    with pytest.raises(KlogError, match="klog repair"):
        find_root(root.location)
    before = files(root)
    dry = repair.run(None, root.location, cluster_id=cluster_id)
    assert (dry.exit_code, files(root)) == (1, before)
    report = repair.run(None, root.location, cluster_id=cluster_id, dry_run=False)
    assert (report.exit_code, report.format_file) == (0, f"{root.root.path}/{FORMAT_FILE}")
    klog_root = find_root(root.location)
    assert klog_root is not None
    assert klog_root.cluster_id == cluster_id or (
        not cluster_id and len(klog_root.cluster_id) == 22
    )
    assert root.state(TOPIC) == state


def test_the_cluster_id_of_an_adopted_root_is_its_brokers(root: WrittenRoot) -> None:
    lose_format(root)
    (Path(root.location) / "meta.properties").write_text("version=1\ncluster.id=of-the-broker\n")
    repair.run(None, root.location, dry_run=False)
    klog_root = find_root(root.location)
    assert klog_root is not None
    assert klog_root.cluster_id == "of-the-broker"


def test_all_is_lost_but_a_checkpoint(root: WrittenRoot) -> None:
    """What a lifecycle rule by age leaves of an old root."""
    before = root.state(TOPIC)
    checkpoint_writer.write_checkpoint(root.root.log(TOPIC), before)
    lose_format(root)
    lose_description(root)
    lose_commits(root, *range(6))
    report = repair.run(None, root.location, dry_run=False)
    assert report.exit_code == 0, list(report.lines())
    assert json.loads(json.dumps(report.as_json()))["topics"][TOPIC]["boundary"] == 5
    assert is_same(root.state(TOPIC), before)
    assert verify.run(None, root.location).findings == ()


def test_a_directory_that_is_no_klog_root_is_refused(tmp_path: Path) -> None:
    (tmp_path / "orders-0").mkdir()
    with pytest.raises(OptionError, match="is not a klog root"):
        repair.run(None, str(tmp_path), dry_run=False)
    assert [path.name for path in tmp_path.iterdir()] == ["orders-0"]


def test_a_directory_that_is_being_adopted_is_refused(tmp_path: Path) -> None:
    (tmp_path / "_klog/topics").mkdir(parents=True)
    (tmp_path / "_klog/adopting.json").write_text("{}")
    with pytest.raises(OptionError, match="is not a klog root"):
        repair.run(None, str(tmp_path), dry_run=False)


def test_a_topic_of_whose_log_nothing_is_left_is_told(root: WrittenRoot) -> None:
    shutil.rmtree(root.root.log(TOPIC).paths.directory)
    report = repair.run(None, root.location)
    assert report.exit_code == 1
    problem = report.topics[TOPIC].problem
    assert "there is no commit" in problem
    assert "version -1" not in problem
    assert (
        f"run `klog topics create --topic {TOPIC}`, then "
        f"`klog vacuum --topic {TOPIC} --discard-lost --execute`" in problem
    )
