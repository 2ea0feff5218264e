"""Jobs as commands: `spark-submit jobs/<name>.py`, and a verb of `klog` with the same options.

The rule: a job's options stand once, in its `COMMAND` (`jobs/commands`). On Spark it runs as a
Spark job; as a verb it runs in the command's own process. A user's mistake is one line on standard
error, never a traceback.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol, TypeAlias

from klog.errors import KlogError, OptionError
from klog.interrupt_exit import INTERRUPTED
from klog.interrupts import Interrupt, ending_at_once, run_interruptible
from klog.jobs.shared.argument_values import refuse_repeats
from klog.jobs.shared.common_options import add_root_option, add_topics_option, set_root
from klog.jobs.shared.exit_codes import REFUSED
from klog.standard_streams import occupy_closed_streams, standard_output
from klog.text_output import printable, write_json, write_lines
from klog.url_secrets import without_passwords

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Report(Protocol):
    """What a job did, or would do."""

    @property
    def exit_code(self) -> int:
        """Return 0, or 1 if something was found or refused."""

    def lines(self) -> Iterator[str]:
        """Yield the lines of the report, the totals last."""

    def as_json(self) -> dict[str, Any]:
        """Return the report for machines, in camelCase."""


RunJob: TypeAlias = "Callable[[SparkSession | None, argparse.Namespace], Report]"


def plain_session(builder: SparkSession.Builder) -> SparkSession.Builder:
    """Return the builder of a session unchanged: for a job that asks nothing of it.

    Args:
        builder: The builder.
    """
    return builder


@dataclass(frozen=True, slots=True)
class Command:
    """A job's verb, help, own options, and the function that loads the job.

    The loaded job gets the parsed arguments; each job's have `root`, `topic` (a list of names, or
    None) and `dry_run`. `configure` sets what the job needs of the session of spark-submit.
    """

    verb: str
    help: str
    epilog: str
    add_options: Callable[[argparse.ArgumentParser], None]
    load: Callable[[], RunJob]
    dry_run_help: str = "only show what the job would do; write nothing"
    root_help: str = "the klog root: a path or a URL"
    topic_help: str = (
        "the full names of the topics; repeat the option or separate names with commas; default: "
        "every topic"
    )
    configure: Callable[[Any], Any] = plain_session


def no_options(parser: argparse.ArgumentParser) -> None:
    """Add no option: for a job that has only those of all jobs.

    Args:
        parser: The parser, which stays unchanged.
    """


def add_options(parser: argparse.ArgumentParser, command: Command) -> None:
    """Add the options that all jobs have, except `--root`, and the job's own.

    Args:
        parser: The parser of the command.
        command: The job.
    """
    add_topics_option(parser, command.topic_help)
    command.add_options(parser)
    parser.add_argument("--dry-run", action="store_true", help=command.dry_run_help)
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def is_executed(args: argparse.Namespace) -> bool:
    """Return whether `--execute` was given, for a job that is a dry run by default.

    Args:
        args: The parsed arguments of the job.

    Raises:
        argparse.ArgumentError: `--execute` and `--dry-run` were both given.
    """
    executed: bool = args.execute
    if executed and args.dry_run:
        raise argparse.ArgumentError(
            None, "argument --dry-run: not allowed with argument --execute"
        )
    return executed


def write_report(report: Report, out: BinaryIO, *, as_json: bool) -> int:
    """Write a report and return its exit code.

    Args:
        report: The report of a job.
        out: Gets the lines, in UTF-8.
        as_json: Write one JSON object; else lines for people.
    """
    if as_json:
        write_json(out, report.as_json())
    else:
        write_lines(out, report.lines())
    return report.exit_code


def main(command: Command, arguments: Sequence[str] | None = None) -> int:
    """Run a job on Spark, as `spark-submit` starts it, and return the exit code.

    Args:
        command: The job.
        arguments: The command line without the program; by default that of the process.
    """
    occupy_closed_streams()
    parser = argparse.ArgumentParser(
        prog=f"jobs/{command.verb.replace('-', '_')}.py",
        description=command.help,
        epilog=command.epilog,
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    refuse_repeats(parser)
    add_root_option(parser, command.root_help, repeatable=False)
    add_options(parser, command)
    args = parser.parse_args(arguments)
    set_root(args, parser, repeatable=False)
    try:
        out = standard_output()
    except OptionError as exc:
        sys.stderr.write(f"klog: {exc}\n")
        return REFUSED
    return run_interruptible(lambda interrupt: _run_on_spark(command, parser, args, out, interrupt))


def _run_on_spark(
    command: Command,
    parser: argparse.ArgumentParser,
    args: argparse.Namespace,
    out: BinaryIO,
    interrupt: Interrupt,
) -> int:
    """Run the job; what follows an interrupt is no error of its own."""
    with ending_at_once():  # Spark sets a handler of its own, which does not outlive the block.
        from pyspark.sql import SparkSession

        run_job = command.load()
        builder = SparkSession.builder.appName(f"klog {command.verb}")
        spark = command.configure(builder).getOrCreate()
    try:
        return write_report(run_job(spark, args), out, as_json=args.json)
    except argparse.ArgumentError as exc:
        parser.error(str(exc))
    except (KlogError, OSError) as exc:
        if interrupt.is_received:
            return INTERRUPTED
        sys.stderr.write(f"klog: {printable(without_passwords(str(exc)))}\n")
        return REFUSED
    finally:
        out.flush()
        spark.stop()
