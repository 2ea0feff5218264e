"""Jobs as commands: `spark-submit jobs/<name>.py` and a verb of `klog` with the same options.

The rule: what a job takes is said once, in its module's `COMMAND`. On Spark it runs as a Spark job;
as a verb it runs in the command's own process. Exit 0 done, 1 a finding or a refusal, 2 wrong
usage; a user's mistake is one line on standard error, never a traceback.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol

from klog.errors import KlogError, without_passwords
from klog.interrupts import INTERRUPTED
from klog.jobs.printing import printable, write_json, write_lines

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DONE, REFUSED = 0, 1


class Report(Protocol):
    """What a job did, or would do."""

    @property
    def exit_code(self) -> int:
        """Give 0, or 1 where something was found or refused."""

    def lines(self) -> Iterator[str]:
        """Give the table, a line each, the last one of all."""

    def as_json(self) -> dict[str, Any]:
        """Give the report for machines, in camelCase."""


@dataclass(frozen=True, slots=True)
class Command:
    """A job's verb, its help, its own options, and how it is run with them.

    `run` gets what was parsed: `root`, `topic` (a list of names, or None), `dry_run` besides.
    """

    verb: str
    help: str
    epilog: str
    add_options: Callable[[argparse.ArgumentParser], None]
    run: Callable[[SparkSession | None, argparse.Namespace], Report]
    dry_run_help: str = "only tell what would be done; write nothing"


def no_options(parser: argparse.ArgumentParser) -> None:
    """Take no options but those of all jobs."""


def add_options(parser: argparse.ArgumentParser, command: Command) -> None:
    """Add the options that all jobs take, but for the root, and the job's own."""
    parser.add_argument(
        "--topic", action="append", metavar="T", help="its whole name, repeatable; else every topic"
    )
    command.add_options(parser)
    parser.add_argument("--dry-run", action="store_true", help=command.dry_run_help)
    parser.add_argument("--json", action="store_true", help="one JSON object")


def name_and_value(text: str) -> tuple[str, str]:
    """Split `name=value`; `argparse.ArgumentTypeError` for what is none."""
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE")
    return name.strip(), value


def write_report(report: Report, out: BinaryIO, *, as_json: bool) -> int:
    """Print a report and give the exit code."""
    if as_json:
        write_json(out, report.as_json())
    else:
        write_lines(out, report.lines())
    return report.exit_code


def main(command: Command, arguments: Sequence[str] | None = None) -> int:
    """Run a job on Spark, as `spark-submit` starts it, and give the exit code."""
    try:
        return _main(command, arguments)
    except KeyboardInterrupt:
        return INTERRUPTED


def _main(command: Command, arguments: Sequence[str] | None) -> int:
    parser = argparse.ArgumentParser(
        prog=f"jobs/{command.verb.replace('-', '_')}.py",
        description=command.help,
        epilog=command.epilog,
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--root", required=True, metavar="R", help="a klog root")
    add_options(parser, command)
    given = parser.parse_args(arguments)
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.appName(f"klog {command.verb}").getOrCreate()
    try:
        return write_report(command.run(spark, given), sys.stdout.buffer, as_json=given.json)
    except argparse.ArgumentError as exc:
        parser.error(str(exc))
    except (KlogError, OSError) as exc:
        sys.stderr.write(f"klog: {printable(without_passwords(str(exc)))}\n")
        return REFUSED
    finally:
        sys.stdout.buffer.flush()
        spark.stop()
