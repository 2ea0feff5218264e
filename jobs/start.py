"""Start a job's file as a program: `spark-submit jobs/<name>.py`.

The rule: the file asks for this before it imports anything else, so that SIGINT finds no import
under way in it; the job's own module is then the one that users import, and its classes exist once.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import NoReturn

from klog.interrupts import ending_at_once


def start(name: str) -> NoReturn:
    """Run the job of a module of `klog.jobs` on Spark, and end with its exit code."""
    with ending_at_once():
        command = import_module("klog.jobs.command")
        job = import_module(f"klog.jobs.{name}")
    sys.exit(command.main(job.COMMAND))
