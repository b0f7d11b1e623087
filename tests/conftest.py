"""What holds for all tests: the option `--containers`, which tests may be skipped, which run first,
when garbage is collected, and the seconds of each folder under the summary.

With DESKBUS_CI=1 a skip is a failure, but for what only Docker, a live account, root, or the
repository's history can give.
"""

import gc
import os
from collections import Counter
from collections.abc import Generator, Iterator
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar

import pytest
from hypothesis import settings

from libs.runtime import ports
from tests.open_folder import open_folder

# How long an example takes says how busy the machine is; benchmarks measure, tests do not.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

ALLOWED = ("docker:", "live:", "root:", "history:")
"""How the reason of an allowed skip begins."""

CONTAINERS = (
    "run the integration tests of execution, console and desk on NATS and Postgres in containers "
    "(needs a Docker engine on this machine) instead of embedded servers"
)

Report = TypeVar("Report", pytest.TestReport, pytest.CollectReport)


def _own_ports() -> None:
    """A range of ports for each worker: a port that one has chosen and not yet taken, another one
    would take."""
    number = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    each = (ports.PORT_LAST - ports.PORT_FIRST + 1) // workers
    ports.PORT_FIRST += number * each
    ports.PORT_LAST = ports.PORT_FIRST + each - 1


_own_ports()

# What is loaded and listed before the first test lives to the end: looking through it for garbage,
# while it grows and in each full collection after it, takes a tenth of the time of pure tests.
gc.disable()


LONGEST = ("browser/test_pages.py", "integration/upgrade/")
"""They begin first: begun last, they would run on one worker while the others have no work left."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest files first, the others in their order."""
    items.sort(key=lambda item: not any(part in item.nodeid for part in LONGEST))


def pytest_collection_finish() -> None:
    """From here on garbage is collected, of what the tests make."""
    gc.freeze()
    gc.enable()


@pytest.fixture
def open_dir() -> Iterator[Path]:
    """A folder that every user may enter."""
    with open_folder() as folder:
        yield folder


@pytest.fixture(scope="module")
def module_dir() -> Iterator[Path]:
    """Like `open_dir`, for all tests of a file."""
    with open_folder() as folder:
        yield folder


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare `--containers`; tests/integration/conftest.py acts on it."""
    parser.addoption("--containers", action="store_true", help=CONTAINERS)


def _judged(report: Report) -> Report:
    """The report, failed where it is a skip that nobody allowed."""
    if os.environ.get("DESKBUS_CI") != "1" or not report.skipped or hasattr(report, "wasxfail"):
        return report
    reason = _reason(report.longrepr)
    if reason.startswith(ALLOWED):
        return report
    report.outcome = "failed"
    report.longrepr = (
        f"skipped: {reason}\nWith DESKBUS_CI=1 nothing may be skipped: install what is missing in "
        f".ci/run, or begin the reason with one of {', '.join(ALLOWED)}."
    )
    return report


def _reason(longrepr: Any) -> str:
    """The skip's own words; pytest gives a (path, line, words) triple or one text."""
    words = longrepr[2] if isinstance(longrepr, tuple) else str(longrepr)
    return str(words).removeprefix("Skipped: ").strip()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Judge a test's skip."""
    return _judged((yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Judge the skip of a whole file."""
    return _judged((yield))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Write the seconds of each folder; of two workers, they add up to twice the wall's."""
    seconds: Counter[str] = Counter()
    for reports in terminalreporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport):
                folder = PurePosixPath(report.nodeid.split("::")[0]).parent
                seconds["/".join(folder.parts[:3])] += report.duration
    if len(seconds) > 1:
        rows = (f"{spent:6.0f} s  {folder}" for folder, spent in seconds.most_common())
        terminalreporter.write_line("\n".join(["seconds by folder", *rows]))
