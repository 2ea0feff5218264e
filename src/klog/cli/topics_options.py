"""The options of `klog topics`, those of kafka-topics."""

from __future__ import annotations

import argparse
from typing import Any

from klog.jobs.shared.argument_values import topic_pattern, whole_number
from klog.jobs.shared.common_options import (
    Run,
    add_config_option,
    add_topic_option,
    add_topics_option,
)
from klog.logformat.topic_partition import MAX_PARTITIONS
from klog.tools.kafka_options import ADMIN_OPTIONS, add_client_options

_COLUMNS = """\
For each partition:
  LogStartOffset     the first offset in the log
  LogEndOffset       the offset after the last record; while a broker runs, the high watermark
  LastStableOffset   the offset before which read_committed reads: the start of the first open
                     transaction, or LogEndOffset if no transaction is open
  Segments, Bytes    the number of .log files with records, and their readable bytes
In a klog root, Configs are the configs that were set. `klog configs --all` shows the defaults
too."""
_DELETE_HELP = """\
On a terminal, klog shows how much data the topics have and asks. It deletes the topics only if the
answer is y or yes. With --yes, or if standard input is not a terminal, klog does not ask.

`klog topics undelete` restores a deleted topic until vacuum deletes its files."""
_UNDELETE_HELP = """\
The topic has the id, records, offsets, configs and writers again that it had when it was deleted.

This fails if another topic was created with the name, or if vacuum has deleted one of the files.
The error names the file. Vacuum keeps the files of a deleted topic for the grace period, 24 hours
by default. See docs/restore.md."""


def add_verbs(
    verbs: argparse._SubParsersAction[Any],
    with_klog_root: argparse.ArgumentParser,
    with_any_root: argparse.ArgumentParser,
) -> None:
    """Add `topics` to a command line: actions that change a klog root, and those that only read."""
    topics = verbs.add_parser(
        "topics", help="list, describe, create, alter, delete or undelete topics"
    )
    actions = topics.add_subparsers(required=True, metavar="ACTION")
    _add_changes(actions, with_klog_root)
    listing = actions.add_parser(
        "list", parents=[with_any_root], help="list the names of the topics"
    )
    listing.set_defaults(load=_load_list, parser=listing)
    describing = actions.add_parser(
        "describe",
        parents=[with_any_root],
        help="show partitions, offsets, segments and bytes of each topic",
        epilog=_COLUMNS,
    )
    describing.set_defaults(load=_load_describe, parser=describing)
    for action in (listing, describing):
        action.add_argument(
            "-t",
            "--topic",
            action="append",
            type=topic_pattern,
            metavar="REGEX",
            help="only topics whose full name matches the pattern; repeat the option or separate "
            "patterns with commas",
        )
        action.add_argument(
            "--exclude-internal", action="store_true", help="leave out Kafka's internal topics"
        )
        action.add_argument("--json", action="store_true", help="print one JSON array")
        add_client_options(action, ADMIN_OPTIONS)


def _add_changes(actions: argparse._SubParsersAction[Any], common: argparse.ArgumentParser) -> None:
    """Add `create`, `alter`, `delete` and `undelete` to the actions of `klog topics`."""
    create = _action(
        actions, common, "create", "create a topic, and the klog root if it does not exist"
    )
    create.set_defaults(load=_load_create, parser=create)
    create.add_argument(
        "--partitions",
        type=whole_number("a number of partitions", 1, MAX_PARTITIONS),
        metavar="N",
        help="the number of partitions; default: the root's num.partitions, which is 1 in a new "
        "root",
    )
    add_client_options(create, ["--replication-factor"])
    add_config_option(
        create, "a config of the topic, as in kafka-topics; repeat the option for more configs"
    )
    create.add_argument(
        "--if-not-exists",
        action="store_true",
        help="if the topic exists, succeed and change nothing",
    )
    alter = _action(actions, common, "alter", "add partitions to a topic")
    alter.set_defaults(load=_load_alter, parser=alter)
    alter.add_argument(
        "--partitions",
        type=whole_number("a number of partitions", 1, MAX_PARTITIONS),
        required=True,
        metavar="N",
        help="the new number of partitions; new records of a key can go to another partition than "
        "old ones",
    )
    delete: argparse.ArgumentParser = actions.add_parser(
        "delete",
        parents=[common],
        help="delete topics; `klog vacuum` frees their space",
        epilog=_DELETE_HELP,
    )
    delete.set_defaults(load=_load_delete, parser=delete)
    add_topics_option(
        delete,
        "the full names of the topics; repeat the option or separate names with commas",
        required=True,
    )
    delete.add_argument("--yes", action="store_true", help="delete without asking")
    delete.add_argument("--json", action="store_true", help="print one JSON object for each topic")
    undelete = _action(actions, common, "undelete", "restore a deleted topic", _UNDELETE_HELP)
    undelete.set_defaults(load=_load_undelete, parser=undelete)
    for action in (create, alter, delete, undelete):
        add_client_options(action, ADMIN_OPTIONS)
    for action in (alter, delete):
        action.add_argument(
            "--if-exists",
            action="store_true",
            help="if the topic does not exist, succeed and change nothing",
        )


def _action(
    actions: argparse._SubParsersAction[Any],
    common: argparse.ArgumentParser,
    name: str,
    help_text: str,
    epilog: str | None = None,
) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = actions.add_parser(
        name, parents=[common], help=help_text, epilog=epilog
    )
    add_topic_option(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    return parser


def _load_create() -> Run:
    from klog.cli.alter_topics import create_topic

    return create_topic


def _load_alter() -> Run:
    from klog.cli.alter_topics import alter_topic

    return alter_topic


def _load_delete() -> Run:
    from klog.cli.delete_topics import delete_topics

    return delete_topics


def _load_undelete() -> Run:
    from klog.cli.delete_topics import undelete_topic

    return undelete_topic


def _load_list() -> Run:
    from klog.cli.topics import list_topics

    return list_topics


def _load_describe() -> Run:
    from klog.cli.topics import describe_topics

    return describe_topics
