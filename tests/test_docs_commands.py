"""Commands in the docs and the README: every verb and every option that they name is there.

A command is what stands in a code block, or between backticks, behind `klog` or `jobs/<name>.py`.
Options that stand alone between backticks have to be of some verb, or of a tool of others.
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
OF_OTHERS = {"--py-files", "--packages", "--jars", "--conf", "--master", "--add-modules"}
"""Of spark-submit and of java."""

_FENCE = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_INDENTED = re.compile(r"^    (klog .*)$", re.MULTILINE)
_INLINE = re.compile(r"`([^`]+)`")
_COMMAND = re.compile(r"(?:^|\s)(?:klog (?!root)|(?:spark-submit )?jobs/(\w+)\.py ?)([^#|]*)")
_OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*")


def parsers() -> dict[str, argparse.ArgumentParser]:
    """Give the parser of each verb, by its words."""
    found: dict[str, argparse.ArgumentParser] = {}

    def add(words: str, parser: argparse.ArgumentParser) -> None:
        found[words] = parser
        for action in parser._actions:
            if isinstance(action, argparse._SubParsersAction):
                for name, inner in action.choices.items():
                    add(f"{words} {name}".strip(), inner)

    add("", command_line())
    return found


PARSERS = parsers()


def options(words: str) -> set[str]:
    return set(PARSERS[words]._option_string_actions)


def texts(page: Path) -> list[str]:
    """Give what of a page is code: lines of blocks, and what stands between backticks."""
    text = page.read_text()
    lines = []
    for language, block in _FENCE.findall(text):
        kind = language.partition(" ")[0]
        if kind in ("", "sh", "console", "text"):
            lines += [
                one for one in block.splitlines() if kind != "text" or one.startswith("klog ")
            ]
    lines += _INDENTED.findall(text)
    return [*lines, *(" ".join(one.split()) for one in _INLINE.findall(_FENCE.sub("", text)))]


def commands(page: Path) -> list[tuple[str, str]]:
    """Give the verb and the rest of each command."""
    found = []
    for text in texts(page):
        for match in _COMMAND.finditer(text):
            words = match[2].replace("...", " ").replace("[", " ").replace("]", " ")
            verb = match[1].replace("_", "-") if match[1] else ""
            found.append((verb, " ".join(words.split())))
    return found


def wrong(verb: str, rest: str) -> list[str]:
    """Say what of a command is not there."""
    words = rest.split()
    while words and f"{verb} {words[0]}".strip() in PARSERS:
        verb = f"{verb} {words.pop(0)}".strip()
    if not verb and words and not words[0].startswith("-"):
        return [f"klog {words[0]}"]
    has_verbs = any(one.startswith(f"{verb} ") for one in PARSERS)
    if verb and has_verbs and words and not words[0].startswith("-"):
        return [f"klog {verb} {words[0]}"]
    if verb and not has_verbs and words and re.fullmatch(r"[a-z]+", words[0]):
        return [f"klog {verb} {words[0]}"]
    return [f"klog {verb} {one}" for one in _OPTION.findall(rest) if one not in options(verb)]


def test_there_are_commands() -> None:
    verbs = {one.verb for one in COMMANDS}
    told = {rest.split()[0] for page in PAGES for verb, rest in commands(page) if not verb and rest}
    assert verbs <= told
    assert len(told) > len(verbs)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(PROJECT)))
def test_every_command_is_there(page: Path) -> None:
    assert [one for verb, rest in commands(page) for one in wrong(verb, rest)] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(PROJECT)))
def test_every_option_is_there(page: Path) -> None:
    known = OF_OTHERS.union(*(options(words) for words in PARSERS))
    inline = [text for text in texts(page) if text.startswith("--")]
    assert [one for text in inline for one in _OPTION.findall(text) if one not in known] == []


@pytest.mark.parametrize(
    ("command", "missing"),
    [
        ("configs alter", ["klog configs alter"]),
        ("topics make --topic t", ["klog topics make"]),
        ("offsets", ["klog offsets"]),
        ("vacuum --excute", ["klog vacuum --excute"]),
        ("configs --topic t --config a=b", []),
        ("topics create --topic t", []),
        ("--version", []),
    ],
)
def test_what_is_not_there_is_found(command: str, missing: list[str]) -> None:
    assert wrong("", command) == missing
