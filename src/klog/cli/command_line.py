"""The command line of `klog`: the words of Kafka's own tools, over files.

Exit 0 done, 1 a finding or a refusal, 2 wrong usage. A user's mistake is one line on stderr, never
a traceback; what is printed goes to stdout as bytes.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NoReturn

from klog import __version__
from klog.cli import configs, consume, delete_records, history, job_verbs, produce, topics
from klog.errors import KlogError, nearest_name, without_passwords
from klog.jobs.shared.text_output import printable
from klog.tools import dump, verifiable_consumer, verifiable_producer

DONE, REFUSED = 0, 1


def run(arguments: Sequence[str] | None = None) -> int:
    """Run one command and give its exit code. Raises `SystemExit` (2) for wrong usage."""
    args = _parse(arguments)
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
        sys.stderr.write(f"klog: {printable(without_passwords(str(exc)))}\n")
        return REFUSED


class Parser(argparse.ArgumentParser):
    """argparse without guesses: an abbreviation is a misspelling, and the nearest is named."""

    def __init__(self, **options: object) -> None:
        """Take argparse's options."""
        kept = {"allow_abbrev": False, "formatter_class": argparse.RawDescriptionHelpFormatter}
        super().__init__(**(kept | options))  # type: ignore[arg-type]

    def error(self, message: str) -> NoReturn:
        """End with usage, exit code 2 and what is wrong, without the passwords of URLs."""
        super().error(without_passwords(message))

    def refuse(self, unknown: str) -> NoReturn:
        """End with usage, exit code 2 and the option that was probably meant."""
        options = [name for name in self._option_string_actions if name.startswith("--")]
        nearest = nearest_name(unknown.split("=")[0], options, cutoff=0.5)
        self.error(
            f"{unknown} is not known here" + (f"; did you mean {nearest}?" if nearest else "")
        )


class Once(logging.Filter):
    """Passes each message once."""

    def __init__(self) -> None:
        """Nothing was said so far."""
        super().__init__()
        self._said: set[str] = set()

    def filter(self, record: logging.LogRecord) -> bool:
        """Tell whether a message is new."""
        message = record.getMessage()
        new = message not in self._said
        self._said.add(message)
        return new


def command_line() -> Parser:
    """Return the parser of the whole command line."""
    parser = Parser(prog="klog", description="Kafka's log without the brokers.")
    parser.add_argument("--version", action="version", version=f"klog {__version__}")
    verbs = parser.add_subparsers(required=True, metavar="VERB")
    common = Parser(add_help=False)
    common.add_argument(
        "--root",
        action="append",
        required=True,
        metavar="R",
        help="a klog root, or a broker's log directory; of the latter several, or one with commas, "
        "are one broker's log.dirs",
    )
    topics.add_verbs(verbs, common)
    configs.add_verb(verbs, common)
    consume.add_verb(verbs, common)
    produce.add_verb(verbs, common)
    history.add_verb(verbs, common)
    delete_records.add_verb(verbs, common)
    job_verbs.add_verbs(verbs, common)
    verifiable_producer.add_verb(verbs, common)
    verifiable_consumer.add_verb(verbs, common)
    dump.add_verb(verbs)
    return parser


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    args, unknown = command_line().parse_known_args(arguments)
    if unknown:
        verb: Parser = args.parser
        verb.refuse(unknown[0])
    return args


def _run(args: argparse.Namespace) -> int:
    """Run the verb; what it printed reaches stdout before an error is told."""
    out = sys.stdout.buffer
    try:
        code: int = args.run(args, out)
        return code
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
    """Send what is still buffered nowhere: the reader (`| head`) has left."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
