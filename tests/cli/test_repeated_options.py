"""An option that takes one value is refused when it is repeated, by every verb."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from klog.jobs.commands.verify_command import COMMAND as VERIFY
from klog.jobs.shared import job_command
from klog.jobs.shared.argument_values import StoreOnce
from tests.support.klog_command import Klog
from tests.support.verb_parsers import VERBS

VALUES = (
    "1",
    "x",
    "0:1",
    "/x.log",
    "%s",
    "earliest",
    "2026-01-01T00:00:00Z",
    "7 days",
    "7d",
    "consume",
)
"""Each option takes one of them, or one of its choices."""
WITH_SEVERAL_ROOTS = {"topics list", "topics describe", "consume", "offsets", "count"}

OTHERS = {
    "delete-records": ["--topic", "x", "--partition", "0", "--offset", "0"],
}
"""What a verb needs besides its required options."""


SINGLE_VALUES = [
    (verb, action.option_strings[-1])
    for verb, parser in VERBS.items()
    for action in parser._actions
    if action.option_strings and isinstance(action, argparse._StoreAction)
]


def test_the_table_has_every_verb() -> None:
    assert {"topics create", "restore", "consume", "produce", "dump", "repair", "vacuum"} <= {
        verb for verb, _ in SINGLE_VALUES
    }


@pytest.mark.parametrize(("verb", "option"), SINGLE_VALUES)
def test_a_repeated_value_is_wrong_usage(
    capsys: pytest.CaptureFixture[str], verb: str, option: str
) -> None:
    parser = VERBS[verb]
    action = parser._option_string_actions[option]
    assert isinstance(action, StoreOnce)
    for value in (*(action.choices or ()), *VALUES):
        with pytest.raises(SystemExit):
            parser.parse_args([option, value, option, value])
    message = f"argument {'/'.join(action.option_strings)}: takes one value. Give the option"
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    "verb", [verb for verb, parser in VERBS.items() if "--root" in parser._option_string_actions]
)
@pytest.mark.parametrize("roots", [["--root", "{0}", "--root", "{1}"], ["--root", "{0},{1}"]])
def test_a_verb_takes_one_root(klog: Klog, tmp_path: Path, verb: str, roots: list[str]) -> None:
    paths = [str(tmp_path / name) for name in "ab"]
    for path in paths:
        Path(path).mkdir()
    required = {
        "--topic": "x",
        "--partitions": "1",
        "--offset-json-file": "x",
        "--to": "/x",
        "--table": "/x",
    }
    required |= {"--from": "/x", "--config": "a=b", "--version": "1"}
    arguments = [
        part
        for action in VERBS[verb]._actions
        if action.required and action.option_strings[-1] != "--root"
        for part in (action.option_strings[-1], required[action.option_strings[-1]])
    ]
    arguments += OTHERS.get(verb, [])
    result = klog(*verb.split(), *arguments, *(part.format(*paths) for part in roots))
    assert ("--root: must name one directory" in result.err) != (verb in WITH_SEVERAL_ROOTS)
    if verb not in WITH_SEVERAL_ROOTS:
        assert (result.code, result.out) == (1, b"")


def test_a_job_script_takes_one_root(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        job_command.main(VERIFY, ["--root", "a", "--root", "b"])
    assert "argument --root: takes one value" in capsys.readouterr().err
