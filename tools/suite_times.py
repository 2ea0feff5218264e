"""A pytest plugin (`-p tools.suite_times`): count the tests and seconds of each suite.

The rule: a test's time, its fixtures' included, goes to one suite: the first of its markers in the
order of `SUITES`, else `unit`. A shared session or broker counts for the suite that asks for it
first. The counts are printed before pytest's closing line, and written as JSON where
`--suite-times FILE` names a file (tools/run_suites.py adds up several).
"""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path

import pytest

SUITES = ("package", "kafka", "stores", "delta", "spark", "slow")
UNIT = "unit"


class SuiteTimes:
    """Adds up what pytest reports of each phase of each test."""

    def __init__(self, path: Path | None) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        self.tests: dict[str, int] = defaultdict(int)
        self._path = path

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count set-up, call and tear-down of one test."""
        suite = next((name for name in SUITES if name in report.keywords), UNIT)
        self.seconds[suite] += report.duration
        self.tests[suite] += report.when == "setup"

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print a line for each suite that ran."""
        terminalreporter.section("suites")
        for suite, tests in self.tests.items():
            terminalreporter.write_line(line_of(suite, tests, self.seconds[suite]))
        if self._path is not None:
            times = {suite: [self.tests[suite], self.seconds[suite]] for suite in self.tests}
            self._path.write_text(json.dumps(times))


def line_of(suite: str, tests: int, seconds: float) -> str:
    """Return the line of a suite in the table."""
    return f"{suite:12} {tests:6} tests {seconds:8.1f} s"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that names the file."""
    parser.addoption("--suite-times", type=Path, help="write the seconds of each suite as JSON")


def pytest_configure(config: pytest.Config) -> None:
    """Install the plugin."""
    config.pluginmanager.register(SuiteTimes(config.getoption("--suite-times")), "suite-times")
