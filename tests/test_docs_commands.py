"""Commands in the docs and the README: every verb and every option that they name exists.

A command begins with `klog` or `jobs/<name>.py`, in a code block or between backticks. Options on
their own between backticks must belong to a verb or to another tool.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path

import pytest

from klog.cli.command_line import command_line
from klog.cli.job_verbs import COMMANDS
from tests.support.project import PROJECT

PAGES = sorted([PROJECT / "README.md", *(PROJECT / "docs").rglob("*.md")])
OPTIONS_OF_OTHER_TOOLS = {
    "--py-files",
    "--packages",
    "--jars",
    "--conf",
    "--master",
    "--add-modules",
    "--archives",
    "--deploy-mode",
}
"""The options of spark-submit and java."""

_FENCE = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_INDENTED = re.compile(r"^    (klog .*)$", re.MULTILINE)
_INLINE = re.compile(r"`([^`]*)`")
_COMMAND = re.compile(r"(?:^|\s)(?:klog (?!root)|(?:spark-submit )?jobs/(\w+)\.py ?)([^#|]*)")
_OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*(?:\.[a-z]+)?")


def parsers() -> dict[str, argparse.ArgumentParser]:
    """Return the parser of each verb, by its words."""
    parsers_by_verb: dict[str, argparse.ArgumentParser] = {}

    def add(words: str, parser: argparse.ArgumentParser) -> None:
        parsers_by_verb[words] = parser
        for action in parser._actions:
            if isinstance(action, argparse._SubParsersAction):
                for name, inner in action.choices.items():
                    add(f"{words} {name}".strip(), inner)

    add("", command_line())
    return parsers_by_verb


PARSERS = parsers()


def options(words: str) -> set[str]:
    return set(PARSERS[words]._option_string_actions)


def texts(page: Path) -> list[str]:
    """Return the code of a page: the lines of blocks, and the text between backticks."""
    text = page.read_text()
    lines = []
    for language, block in _FENCE.findall(text):
        kind = language.partition(" ")[0]
        if kind in ("", "sh", "console", "text"):
            lines += [
                line for line in block.splitlines() if kind != "text" or line.startswith("klog ")
            ]
    lines += _INDENTED.findall(text)
    return [*lines, *(" ".join(line.split()) for line in _INLINE.findall(_FENCE.sub("", text)))]


def commands(page: Path) -> list[tuple[str, str]]:
    """Return the verb and the rest of each command."""
    result = []
    for text in texts(page):
        for match in _COMMAND.finditer(text):
            words = match[2].replace("...", " ").replace("[", " ").replace("]", " ")
            verb = match[1].replace("_", "-") if match[1] else ""
            result.append((verb, " ".join(words.split())))
    return result


def faults(verb: str, rest: str) -> list[str]:
    """Return the verbs and options of a command that do not exist."""
    words = rest.split()
    while words and f"{verb} {words[0]}".strip() in PARSERS:
        verb = f"{verb} {words.pop(0)}".strip()
    if not verb and words and not words[0].startswith("-"):
        return [f"klog {words[0]}"]
    has_verbs = any(option.startswith(f"{verb} ") for option in PARSERS)
    if verb and has_verbs and words and not words[0].startswith("-"):
        return [f"klog {verb} {words[0]}"]
    if verb and not has_verbs and words and re.fullmatch(r"[a-z]+", words[0]):
        return [f"klog {verb} {words[0]}"]
    return [
        f"klog {verb} {option}" for option in _OPTION.findall(rest) if option not in options(verb)
    ]


def test_there_are_commands() -> None:
    verbs = {command.verb for command in COMMANDS}
    documented = {
        rest.split()[0] for page in PAGES for verb, rest in commands(page) if not verb and rest
    }
    assert verbs <= documented
    assert len(documented) > len(verbs)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(PROJECT)))
def test_commands_exist(page: Path) -> None:
    assert [fault for verb, rest in commands(page) for fault in faults(verb, rest)] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(PROJECT)))
def test_options_exist(page: Path) -> None:
    known = OPTIONS_OF_OTHER_TOOLS.union(*(options(words) for words in PARSERS))
    inline = [text for text in texts(page) if text.startswith("--")]
    assert [
        option for text in inline for option in _OPTION.findall(text) if option not in known
    ] == []


@pytest.mark.parametrize(
    ("command", "missing"),
    [
        ("configs alter", ["klog configs alter"]),
        ("topics make --topic t", ["klog topics make"]),
        ("groups", ["klog groups"]),
        ("vacuum --excute", ["klog vacuum --excute"]),
        ("configs --topic t --config a=b", []),
        ("topics create --topic t", []),
        ("--version", []),
    ],
)
def test_a_missing_command_is_a_fault(command: str, missing: list[str]) -> None:
    assert faults("", command) == missing
