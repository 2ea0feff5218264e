"""The jobs as verbs, such as `klog compact`. They run in the command's own process."""

from __future__ import annotations

import argparse
from typing import Any, BinaryIO

from klog.jobs.commands import (
    adopt_command,
    compact_command,
    export_log_command,
    from_delta_command,
    import_files_command,
    import_log_command,
    merge_command,
    repair_command,
    retain_command,
    to_delta_command,
    to_files_command,
    vacuum_command,
    verify_command,
)
from klog.jobs.shared.common_options import Run
from klog.jobs.shared.job_command import Command, add_options, write_report
from klog.tools.root_option import root_parser

COMMANDS: tuple[Command, ...] = (
    compact_command.COMMAND,
    merge_command.COMMAND,
    retain_command.COMMAND,
    vacuum_command.COMMAND,
    verify_command.COMMAND,
    repair_command.COMMAND,
    export_log_command.COMMAND,
    adopt_command.COMMAND,
    import_log_command.COMMAND,
    to_delta_command.COMMAND,
    from_delta_command.COMMAND,
    to_files_command.COMMAND,
    import_files_command.COMMAND,
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

        def load(command: Command = command) -> Run:
            return _load(command)

        parser.set_defaults(load=load, parser=parser)


def _load(command: Command) -> Run:
    from klog.tools.root_arguments import single_directory

    run_job = command.load()

    def run(args: argparse.Namespace, out: BinaryIO) -> int:
        args.root = single_directory(args.root)
        return write_report(run_job(None, args), out, as_json=args.json)

    return run
