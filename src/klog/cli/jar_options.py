"""`klog jar`: the path of klog's jar, with which Spark's JVM reads."""

from __future__ import annotations

import argparse
import sys
from typing import Any, BinaryIO

from klog.text_output import write_lines

_HELP = """\
If this installation of klog has no jar, klog compiles it once.
  spark-submit --jars $(klog jar) job.py
  spark-shell --jars $(klog jar)"""


def add_verb(verbs: argparse._SubParsersAction[Any]) -> None:
    """Add `jar` to a command line."""
    parser = verbs.add_parser("jar", help="print the path of klog's jar for Spark", epilog=_HELP)
    parser.set_defaults(load=lambda: jar, parser=parser)


def jar(_args: argparse.Namespace, out: BinaryIO) -> int:
    """Print the path of the jar; compile it first if there is none."""
    from klog.spark_jar.jar_compiler import find_jar

    path = find_jar(lambda text: write_lines(sys.stderr.buffer, [text]))
    write_lines(out, [str(path)])
    return 0
