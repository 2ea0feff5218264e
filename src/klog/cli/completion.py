"""Completion of the command line by a shell, through argcomplete.

The rule: the shell runs `klog` itself with what is typed so far (docs/command-line.md says how).
Verbs, options and values come from the parser that runs the command. The names of topics come from
the root that is typed, or from `KLOG_ROOT`; a root that cannot be read has none.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator

import argcomplete

from klog.errors import KlogError
from klog.jobs.shared.common_options import KLOG_ROOT

TOPIC = "topic"


def complete(parser: argparse.ArgumentParser) -> None:
    """Write what can follow the words that the shell has passed on, and end the process.

    Args:
        parser: The parser of the whole command line.
    """
    for action in _actions(parser):
        if action.dest == TOPIC:
            action.completer = _topics  # type: ignore[attr-defined]
    argcomplete.autocomplete(parser, always_complete_options="long")


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    for action in parser._actions:
        yield action
        if isinstance(action, argparse._SubParsersAction):
            for inner in action.choices.values():
                yield from _actions(inner)


def _topics(prefix: str, parsed_args: argparse.Namespace, **_: object) -> list[str]:
    """Return the topics that a word can become; the names before its last comma stay."""
    from klog.cli.topics import topic_rows

    before, comma, _last = prefix.rpartition(",")
    root = getattr(parsed_args, "root", None) or [os.environ.get(KLOG_ROOT, "")]
    every_topic = argparse.Namespace(root=root, topic=None, exclude_internal=False, json=False)
    try:
        rows, _code = topic_rows(every_topic)
    except (KlogError, OSError):
        return []
    return [f"{before}{comma}{row['topic']}" for row in rows]
