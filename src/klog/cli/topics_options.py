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
  LogEndOffset       the offset after the last record; the high watermark while a broker runs
  LastStableOffset   where read_committed stops: the first open transaction, else LogEndOffset
  Segments, Bytes    the number of .log files with records, and their readable bytes
In a klog root, Configs are those that are set; `klog configs --all` shows the defaults too."""
_DELETE_HELP = """\
On a terminal it shows what the topics hold and asks; only y or yes deletes them, and --yes does not
ask. In a script, where standard input is not a terminal, it does not ask."""
_UNDELETE_HELP = """\
The topic has the id, records, offsets, configs and writers that it had when it was deleted. It is
refused if another topic was created under its name, and if vacuum has deleted a file of it, which
the error names. Vacuum keeps the files of a deleted topic for its grace period, 24 hours by
default. docs/restore.md says more."""


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
            help="only topics whose full name matches; repeat it, or separate several patterns "
            "with commas",
        )
        action.add_argument(
            "--exclude-internal", action="store_true", help="leave out Kafka's internal topics"
        )
        action.add_argument("--json", action="store_true", help="one JSON array")
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
    add_config_option(create, "a config of the topic, as in kafka-topics; repeatable")
    create.add_argument(
        "--if-not-exists",
        action="store_true",
        help="succeed without a change if the topic exists",
    )
    alter = _action(actions, common, "alter", "add partitions to a topic")
    alter.set_defaults(load=_load_alter, parser=alter)
    alter.add_argument(
        "--partitions",
        type=whole_number("a number of partitions", 1, MAX_PARTITIONS),
        required=True,
        metavar="N",
        help="the new number of partitions; new records of a key may go to another partition",
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
        "a topic's full name; repeat it, or separate several with commas",
        required=True,
    )
    delete.add_argument("--yes", action="store_true", help="do not ask")
    delete.add_argument("--json", action="store_true", help="one JSON object for each topic")
    undelete = _action(actions, common, "undelete", "bring a deleted topic back", _UNDELETE_HELP)
    undelete.set_defaults(load=_load_undelete, parser=undelete)
    for action in (create, alter, delete, undelete):
        add_client_options(action, ADMIN_OPTIONS)
    for action in (alter, delete):
        action.add_argument(
            "--if-exists",
            action="store_true",
            help="succeed without a change if the topic does not exist",
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
    parser.add_argument("--json", action="store_true", help="one JSON object")
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
