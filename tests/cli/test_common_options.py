"""`KLOG_ROOT` in place of `--root`, `-t` for `--topic`, and several topics in one option."""

from __future__ import annotations

from pathlib import Path

import pytest

from klog.jobs.commands.verify_command import COMMAND as VERIFY
from klog.jobs.shared import job_command
from tests.support.command_root import Root
from tests.support.klog_command import Klog
from tests.support.verb_parsers import VERBS


@pytest.fixture
def two_topics(on_root: Root) -> Root:
    for topic in ("a", "b"):
        on_root.does("topics", "create", "-t", topic)
    return on_root


def test_the_environment_has_the_root(
    klog: Klog, two_topics: Root, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("KLOG_ROOT", str(two_topics.path))
    assert klog("topics", "list").out == b"a\nb\n"
    assert klog("merge", "-t", "a").code == 0
    other = klog("topics", "list", "--root", str(tmp_path / "other"))
    assert (other.code, other.out) == (1, b"")  # The option wins.


def test_the_environment_has_several_log_directories(
    klog: Klog, two_topics: Root, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "other").mkdir()
    monkeypatch.setenv("KLOG_ROOT", f"{two_topics.path},{tmp_path}/other")
    assert "is a klog root. Give it alone" in klog("topics", "list").err


@pytest.mark.parametrize("value", [None, ""])
def test_without_a_root(klog: Klog, monkeypatch: pytest.MonkeyPatch, value: str | None) -> None:
    monkeypatch.delenv("KLOG_ROOT", raising=False)
    if value is not None:
        monkeypatch.setenv("KLOG_ROOT", value)
    result = klog("topics", "list")
    assert (result.code, result.out) == (2, b"")
    assert result.err.endswith("required: --root (or set KLOG_ROOT)\n")


def test_a_job_script_without_a_root(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KLOG_ROOT", raising=False)
    with pytest.raises(SystemExit):
        job_command.main(VERIFY, [])
    assert "required: --root (or set KLOG_ROOT)" in capsys.readouterr().err


def test_every_topic_option_is_short_too() -> None:
    for verb, parser in VERBS.items():
        options = parser._option_string_actions
        assert options.get("-t") is options.get("--topic"), verb


@pytest.mark.parametrize(
    "options", [["-t", "a,b"], ["--topic", "a", "-t", "b"], ["-t", " a , b ", "-t", "a"]]
)
def test_several_topics(two_topics: Root, options: list[str]) -> None:
    lines = two_topics.does("vacuum", *options).splitlines()
    assert lines == two_topics.does("vacuum").splitlines()


def test_an_empty_name(two_topics: Root) -> None:
    assert "names with commas between" in two_topics.refuses("vacuum", "-t", "a,,b", code=2)


ADMIN = ["--bootstrap-server", "localhost:9092"]
KAFKA_COMMANDS = {
    "--bootstrap-server": [
        ["topics", "list", *ADMIN],
        ["topics", "describe", *ADMIN],
        ["topics", "alter", "-t", "a", "--partitions", "2", *ADMIN],
        ["topics", "delete", "-t", "a", "--yes", *ADMIN],
        ["topics", "undelete", "-t", "a", *ADMIN],
        ["offsets", *ADMIN],
        ["configs", "--describe", "--entity-type", "topics", "--entity-name", "b", *ADMIN],
        ["delete-records", "-t", "b", "--partition", "0", "--offset", "0", *ADMIN],
    ],
    "--bootstrap-server, --replication-factor": [
        ["topics", "create", "-t", "c", "--replication-factor", "3", *ADMIN],
    ],
    "--bootstrap-server, --group": [["consume", "-t", "b", "--group", "g", *ADMIN]],
    "--command-config": [["offsets", "--command-config", "client.properties"]],
}


def test_options_of_a_brokers_client_are_warned_of(two_topics: Root) -> None:
    for names, commands in KAFKA_COMMANDS.items():
        for command in commands:
            result = two_topics.run(*command)
            warning = f"options without effect, because klog needs no broker: {names}\n"
            assert (result.code, result.err) == (0, f"klog: warning: {warning}")


def test_configs_of_an_entity(two_topics: Root) -> None:
    entity = ["--entity-type", "topics", "--entity-name", "a"]
    two_topics.does("configs", "--alter", *entity, "--add-config", "retention.ms=1000")
    assert "retention.ms=1000" in two_topics.does("configs", "--describe", *entity)
    refused = two_topics.run("configs", "--entity-type", "brokers", "--entity-name", "1")
    assert (refused.code, "choose from topics" in refused.err.replace("'", "")) == (2, True)
