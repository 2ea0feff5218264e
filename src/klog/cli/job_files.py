"""`klog jobs`: the jobs that are Spark programs too, and where their files are.

The rule: who has only the wheel has no folder `jobs`, so `--path` prints the file that spark-submit
takes: `spark-submit $(klog jobs --path compact) --root R`.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any, BinaryIO

from klog.cli.job_verbs import COMMANDS
from klog.errors import OptionError
from klog.text_output import write_lines

if TYPE_CHECKING:
    from pathlib import Path

_HELP = """\
A verb such as `klog compact` runs a job in this process. To run the job as a Spark program:
  spark-submit $(klog jobs --path compact) --root R
  python -m klog.jobs.compact --root R"""


def add_verb(verbs: argparse._SubParsersAction[Any]) -> None:
    """Add `jobs` to a command line."""
    parser = verbs.add_parser(
        "jobs",
        help="list the jobs, or print the path of a job's file for spark-submit",
        epilog=_HELP,
    )
    parser.set_defaults(load=lambda: jobs, parser=parser)
    names = [command.verb for command in COMMANDS]
    parser.add_argument(
        "--path", choices=names, metavar="JOB", help="print the path of the file of this job"
    )


def jobs(args: argparse.Namespace, out: BinaryIO) -> int:
    """Print the file of one job, or the names of all with what they do."""
    if args.path:
        write_lines(out, [str(_file(args.path))])
    else:
        width = max(len(command.verb) for command in COMMANDS)
        write_lines(out, (f"{command.verb:{width}}  {command.help}" for command in COMMANDS))
    return 0


def _file(verb: str) -> Path:
    from importlib.util import find_spec
    from pathlib import Path

    module = f"klog.jobs.{verb.replace('-', '_')}"
    spec = find_spec(module)
    file = Path(spec.origin) if spec is not None and spec.origin else None
    if file is None or not file.is_file():
        raise OptionError(
            f"{module} is in an archive, and spark-submit takes only a file. Install klog with "
            f"pip, or run python -m {module} where the archive is on PYTHONPATH"
        )
    return file.resolve()
