"""The verbs of the command line. The options of a verb are imported when it is typed.

The rule: `klog --help` shows every verb, and so imports the options of all. A command that begins
with a verb imports the options of that one, which takes a third of the time.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

from klog.tools.root_option import root_parser


class Roots(NamedTuple):
    """The parents of the parsers of verbs, each with `--root`."""

    klog: argparse.ArgumentParser
    any: argparse.ArgumentParser


Verbs: TypeAlias = "argparse._SubParsersAction[Any]"
AddVerb: TypeAlias = Callable[[Verbs, Roots], None]


def _topics(verbs: Verbs, roots: Roots) -> None:
    from klog.cli import topics_options

    topics_options.add_verbs(verbs, roots.klog, roots.any)


def _configs(verbs: Verbs, roots: Roots) -> None:
    from klog.cli import configs_options

    configs_options.add_verb(verbs, roots.klog)


def _consume(verbs: Verbs, roots: Roots) -> None:
    from klog.cli import consume_options

    consume_options.add_verb(verbs, roots.any)


def _offsets(verbs: Verbs, roots: Roots) -> None:
    from klog.cli import offsets_options

    offsets_options.add_verb(verbs, roots.any)


def _count(verbs: Verbs, roots: Roots) -> None:
    from klog.cli import count_options

    count_options.add_verb(verbs, roots.any)


def _produce(verbs: Verbs, roots: Roots) -> None:
    from klog.cli import produce_options

    produce_options.add_verb(verbs, roots.klog)


def _history(verbs: Verbs, roots: Roots) -> None:
    from klog.cli import history_options

    history_options.add_verb(verbs, roots.klog)


def _delete_records(verbs: Verbs, roots: Roots) -> None:
    from klog.cli import delete_records_options

    delete_records_options.add_verb(verbs, roots.klog)


def _restore(verbs: Verbs, roots: Roots) -> None:
    from klog.cli import restore_options

    restore_options.add_verb(verbs, roots.klog)


def _checkpoint(verbs: Verbs, _roots: Roots) -> None:
    from klog.cli import checkpoint_options

    checkpoint_options.add_verbs(verbs)


def _all_jobs(verbs: Verbs, _roots: Roots) -> None:
    from klog.cli import job_verbs

    job_verbs.add_verbs(verbs)


def _job_files(verbs: Verbs, _roots: Roots) -> None:
    from klog.cli import job_files

    job_files.add_verb(verbs)


def _jar(verbs: Verbs, _roots: Roots) -> None:
    from klog.cli import jar_options

    jar_options.add_verb(verbs)


def _verifiable_producer(verbs: Verbs, roots: Roots) -> None:
    from klog.tools import verifiable_producer_options

    verifiable_producer_options.add_verb(verbs, roots.klog)


def _verifiable_consumer(verbs: Verbs, roots: Roots) -> None:
    from klog.tools import verifiable_consumer_options

    verifiable_consumer_options.add_verb(verbs, roots.any)


def _dump(verbs: Verbs, _roots: Roots) -> None:
    from klog.tools import dump_options

    dump_options.add_verb(verbs)


VERBS: dict[str, AddVerb] = {
    "topics": _topics,
    "configs": _configs,
    "consume": _consume,
    "offsets": _offsets,
    "count": _count,
    "produce": _produce,
    "history": _history,
    "delete-records": _delete_records,
    "restore": _restore,
    "checkpoint": _checkpoint,
    "compact": _all_jobs,
    "merge": _all_jobs,
    "retain": _all_jobs,
    "vacuum": _all_jobs,
    "verify": _all_jobs,
    "repair": _all_jobs,
    "export-log": _all_jobs,
    "adopt": _all_jobs,
    "import-log": _all_jobs,
    "to-delta": _all_jobs,
    "from-delta": _all_jobs,
    "to-files": _all_jobs,
    "import-files": _all_jobs,
    "jobs": _job_files,
    "jar": _jar,
    "verifiable-producer": _verifiable_producer,
    "verifiable-consumer": _verifiable_consumer,
    "dump": _dump,
}


def add_verbs(verbs: Verbs, typed: str) -> None:
    """Add the verbs to a command line, in the order of its help.

    Args:
        verbs: The verbs of the command line.
        typed: The first argument; if it is a verb, others may be left out.
    """
    roots = Roots(
        root_parser("the klog root: a path or a URL"),
        root_parser(
            "the klog root or a broker's log directory: a path or a URL; if the broker has several "
            "log.dirs, repeat the option or separate them with commas"
        ),
    )
    for add in [VERBS[typed]] if typed in VERBS else dict.fromkeys(VERBS.values()):
        add(verbs, roots)
