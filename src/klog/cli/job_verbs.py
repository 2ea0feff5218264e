"""The jobs as verbs, such as `klog compact`. They run in the command's own process."""

from __future__ import annotations

import argparse
from typing import Any, BinaryIO

from klog.jobs import adopt, compact, export_log, import_log, merge, repair, retain, vacuum, verify
from klog.jobs.shared.job_command import Command, add_options, write_report
from klog.tools.root_arguments import root_parser, single_directory

COMMANDS: tuple[Command, ...] = (
    compact.COMMAND,
    merge.COMMAND,
    retain.COMMAND,
    vacuum.COMMAND,
    verify.COMMAND,
    repair.COMMAND,
    export_log.COMMAND,
    adopt.COMMAND,
    import_log.COMMAND,
)


def add_verbs(verbs: argparse._SubParsersAction[Any]) -> None:
    """Add each job to a command line."""
    for command in COMMANDS:
        parser = verbs.add_parser(
            command.verb,
            parents=[root_parser(command.root_help)],
            help=command.help,
            epilog=command.epilog,
        )
        add_options(parser, command)

        def run(args: argparse.Namespace, out: BinaryIO, command: Command = command) -> int:
            args.root = single_directory(args.root)
            return write_report(command.run(None, args), out, as_json=args.json)

        parser.set_defaults(run=run, parser=parser)
