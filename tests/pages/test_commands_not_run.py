"""Commands that pages show in `text` blocks: nobody runs them, so each has its reason here.

The rule: klog's own commands among them are at least parsed, with the options that they have.
"""

from __future__ import annotations

import re
import shlex

import pytest

from klog.cli.command_line import command_line
from tests.pages.page_run import DOCS
from tests.support.page_blocks import texts_of

INSTALLS = "installs into the reader's Python; tests/test_package.py installs the wheel and the zip"
CLUSTER = "needs a cluster; tests/spark_faults starts one, and submits jobs and drivers to it"
ENVIRONMENT = "makes the environment in which these tests run"
DOWNLOADS = "downloads Delta's jar; tests/delta has it in its session"
ENDLESS = "runs until it is stopped; tests/delta starts such runs and kills them"
TABLES = "starts a Spark of its own with Delta; tests/delta runs the verb"
NOT_RUN = {
    ("clusters.md", "spark-submit --master spark://host:7077 --py-files"): CLUSTER,
    ("clusters.md", "uv venv --relocatable environment"): INSTALLS,
    ("clusters.md", "spark-submit --master spark://host:7077 --jars"): CLUSTER,
    ("clusters.md", "PYSPARK_PYTHON=./environment/bin/python spark-submit --master yarn"): CLUSTER,
    ("from-delta.md", "klog from-delta --root /data/klog --topic clicks"): ENDLESS,
    ("from-delta.md", "spark-submit --packages"): DOWNLOADS,
    ("install.md", "pip install ."): INSTALLS,
    ("install.md", "pip install '.[s3,avro,registry]'"): INSTALLS,
    ("install.md", "make wheel"): INSTALLS,
    ("install.md", "make env"): ENVIRONMENT,
    ("jobs.md", "spark-submit jobs/compact.py"): CLUSTER,
    ("jobs.md", "klog to-delta"): TABLES,
    ("jobs.md", "klog from-delta"): TABLES,
    ("tables.md", "klog to-delta --root /data/klog --topic-pattern"): TABLES,
    ("tables.md", "klog to-delta --root /data/klog --topic orders"): ENDLESS,
    ("tables.md", "spark-submit --packages"): DOWNLOADS,
    ("tutorial.md", "make env"): ENVIRONMENT,
}
"""Why a block is not run, by its page and how it begins."""
GENERATED = "command-line.md"
"""Its blocks are what the verbs' `--help` says."""
_COMMAND = re.compile(r"(klog|spark-submit|pip|uv|make|python3?|export|[A-Z_]+=\S+) ")
_JOB = re.compile(r"jobs/(\w+)\.py (.*)")


def _blocks() -> list[tuple[str, str]]:
    """Return the pages and texts of all blocks that begin with a command."""
    pages = [path for path in sorted(DOCS.glob("*.md")) if path.name != GENERATED]
    blocks = [(path.name, text) for path in pages for text in texts_of(path.read_text())]
    return [(page, text) for page, text in blocks if _COMMAND.match(text)]


BLOCKS = _blocks()


def _klogs(text: str) -> list[list[str]]:
    """Return the command lines of klog in a block, without `klog`."""
    lines = text.replace("\\\n", "").splitlines()
    verbs = [line.removeprefix("klog ") for line in lines if line.startswith("klog ")]
    jobs = [job for line in lines if (job := _JOB.search(line))]
    verbs += [f"{job[1].replace('_', '-')} {job[2]}" for job in jobs]
    return [shlex.split(verb, comments=True) for verb in verbs]


def test_each_command_that_is_not_run_has_a_reason() -> None:
    reasons = [
        [(at, begin) for at, begin in NOT_RUN if at == page and text.startswith(begin)]
        for page, text in BLOCKS
    ]
    assert [block for block, own in zip(BLOCKS, reasons, strict=True) if not own] == []
    assert {reason for own in reasons for reason in own} == set(NOT_RUN)


@pytest.mark.parametrize(
    "arguments", [words for _, text in BLOCKS for words in _klogs(text)], ids=" ".join
)
def test_klogs_own_commands_are_parsed(arguments: list[str]) -> None:
    args, unknown = command_line(arguments[0]).parse_known_args(arguments)
    assert not unknown
    assert args.parser.prog == f"klog {arguments[0]}"
