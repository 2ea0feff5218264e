"""The command line of `klog`: the options of Kafka's own tools, over files.

Exit code 0: done; 1: a finding or a refusal; 2: wrong usage; 130: SIGINT. A user's mistake is one
line on stderr, never a traceback. Output goes to stdout as bytes.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NoReturn

from klog import __version__
from klog.cli.flag_names import in_flags
from klog.cli.verb_table import add_verbs
from klog.errors import KlogError, nearest_name
from klog.interrupt_exit import INTERRUPTED
from klog.interrupts import Interrupt, ending_at_once, run_interruptible
from klog.jobs.shared.argument_values import refuse_repeats
from klog.jobs.shared.common_options import Run, set_root
from klog.jobs.shared.exit_codes import DONE, REFUSED
from klog.standard_streams import occupy_closed_streams, standard_output
from klog.text_output import printable
from klog.tools.kafka_options import client_options, warn_of_client_options
from klog.url_secrets import without_passwords

_DESCRIPTION = "Read, write and maintain topics in Kafka-format files, without a broker."
_EPILOG = """\
Every verb that works on topics needs --root, or the environment variable KLOG_ROOT.
`klog VERB --help` describes a verb. docs/command-line.md describes all of them."""
COMPLETION = "_ARGCOMPLETE"
"""The environment variable that argcomplete sets when a shell asks what can follow."""


def run(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code. Raises `SystemExit` (2) for wrong usage."""
    if arguments is None and COMPLETION in os.environ:
        from klog.cli.completion import complete

        complete(command_line())
    occupy_closed_streams()
    typed = sys.argv[1:] if arguments is None else arguments
    args = _parse(typed)
    args.typed = typed
    return run_interruptible(lambda interrupt: _run_and_say_errors(args, interrupt))


def _run_and_say_errors(args: argparse.Namespace, interrupt: Interrupt) -> int:
    """Run the verb; what follows an interrupt is no error of its own."""
    try:
        with _warnings_on_stderr():
            return _run(args)
    except BrokenPipeError:
        _forget_stdout()
        return DONE
    except argparse.ArgumentError as exc:
        parser: Parser = args.parser
        parser.error(str(exc))
    except (KlogError, OSError) as exc:
        if interrupt.is_received:
            return INTERRUPTED
        message = in_flags(str(exc), args.parser, args.typed)
        sys.stderr.write(f"klog: {printable(without_passwords(message))}\n")
        return REFUSED


class Parser(argparse.ArgumentParser):
    """argparse without abbreviations and repeats; for an unknown option it suggests the nearest."""

    def __init__(self, **options: object) -> None:
        """Create a parser with argparse's options."""
        defaults = {"allow_abbrev": False, "formatter_class": argparse.RawDescriptionHelpFormatter}
        super().__init__(**(defaults | options))  # type: ignore[arg-type]
        refuse_repeats(self)

    def error(self, message: str) -> NoReturn:
        """Print usage and the error, without the passwords of URLs, and exit with code 2."""
        super().error(without_passwords(message))

    def refuse(self, unknown: str) -> NoReturn:
        """Print usage and the option that was probably meant, and exit with code 2."""
        options = [name for name in self._option_string_actions if name.startswith("--")]
        nearest = nearest_name(unknown.split("=")[0], options, cutoff=0.5)
        self.error(
            f"unknown argument {unknown}" + (f"; did you mean {nearest}?" if nearest else "")
        )


class Once(logging.Filter):
    """A filter that passes each message once."""

    def __init__(self) -> None:
        """Create a filter that has passed nothing so far."""
        super().__init__()
        self._messages: set[str] = set()

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether a message is new."""
        message = record.getMessage()
        is_new = message not in self._messages
        self._messages.add(message)
        return is_new


def command_line(typed: str = "") -> Parser:
    """Return the parser of the command line.

    Args:
        typed: The first argument; if it is a verb, the parser may know only that one.
    """
    parser = Parser(prog="klog", description=_DESCRIPTION, epilog=_EPILOG)
    parser.add_argument("--version", action="version", version=f"klog {__version__}")
    add_verbs(parser.add_subparsers(title="verbs", required=True, metavar="VERB"), typed)
    _describe_verbs(parser)
    return parser


def _describe_verbs(parser: argparse.ArgumentParser) -> None:
    """Let the help of each verb begin with what the list of verbs says about it."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for choice in action._choices_actions:
                verb: argparse.ArgumentParser = action.choices[choice.dest]
                summary = choice.help or ""
                verb.description = f"{summary[:1].upper()}{summary[1:]}."
                _describe_verbs(verb)


def _parse(typed: Sequence[str]) -> argparse.Namespace:
    args, unknown = command_line(typed[0] if typed else "").parse_known_args(typed)
    if unknown:
        verb: Parser = args.parser
        verb.refuse(unknown[0])
    if "root" in args:
        set_root(args, args.parser, repeatable=True)
    return args


def _run(args: argparse.Namespace) -> int:
    """Run the verb; its output reaches stdout before an error is printed."""
    out = standard_output()
    warn_of_client_options(client_options(args))
    with ending_at_once():
        load: Callable[[], Run] = args.load
        run_verb = load()
    try:
        return run_verb(args, out)
    finally:
        out.flush()


@contextmanager
def _warnings_on_stderr() -> Iterator[None]:
    """Show klog's warnings while a command runs, each once."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("klog: warning: %(message)s"))
    handler.addFilter(Once())
    logger = logging.getLogger("klog")
    logger.addHandler(handler)
    propagated, logger.propagate = logger.propagate, False
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.propagate = propagated


def _forget_stdout() -> None:
    """Drop the output that is still buffered: its reader (such as `| head`) has ended."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
