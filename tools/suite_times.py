"""A pytest plugin (`-p tools.suite_times`): say how long each suite took, before the closing line.

The rule: a test's time, its fixtures' included, goes to one suite: the first of its markers in
the order of SUITES, else `unit`. A shared session or broker is paid for by the suite that first
asks for it.
"""

from __future__ import annotations

from collections import defaultdict

import pytest

SUITES = ("package", "kafka", "stores", "spark", "slow")


class SuiteTimes:
    """Adds up what pytest reports of each phase of each test."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        self.tests: dict[str, int] = defaultdict(int)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count set-up, call and tear-down of one test."""
        suite = next((name for name in SUITES if name in report.keywords), "unit")
        self.seconds[suite] += report.duration
        self.tests[suite] += report.when == "setup"

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print a line for each suite that ran."""
        terminalreporter.section("suites")
        for suite in ("unit", *reversed(SUITES)):
            if suite in self.tests:
                terminalreporter.write_line(
                    f"{suite:8} {self.tests[suite]:6} tests {self.seconds[suite]:8.1f} s"
                )


def pytest_configure(config: pytest.Config) -> None:
    """Install the plugin."""
    config.pluginmanager.register(SuiteTimes(), "suite-times")
