"""Start a job's file as a program: `spark-submit jobs/<name>.py`.

The rule: the file calls this before it imports anything else, so no import is under way in it when
SIGINT comes. Then the job's own module is imported under its full name, so its classes exist once.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import NoReturn

from klog.interrupt_exit import end_on_sigint


def start(name: str) -> NoReturn:
    """Run the job of the module `klog.jobs.<name>` on Spark, and end with its exit code.

    Args:
        name: The name of the module.
    """
    end_on_sigint()
    job_command = import_module("klog.jobs.shared.job_command")
    command = import_module(f"klog.jobs.commands.{name}_command").COMMAND
    sys.exit(job_command.main(command))
