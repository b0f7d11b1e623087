"""Whoever only reads waits for no library that computes, serves or asks a model."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from services.cli.main import ENTRIES

ROOT = Path(__file__).parents[2]

READING = (
    "accounts",
    "approvals",
    "budget",
    "config",
    "cycle",
    "dlq",
    "exit-signals",
    "halt",
    "leaderboard",
    "logs",
    "notify",
    "operations",
    "performance",
    "portfolio",
    "report",
    "schedule",
    "status",
    "strategies",
    "study",
    "tail",
    "trades",
)
HEAVY = (
    "anthropic",
    "apprise",
    "asyncpg",
    "contracts.subjects.commands",
    "contracts.subjects.table",
    "curl_cffi",
    "exchange_calendars",
    "faststream",
    "httpx",
    "jinja2",
    "mcp",
    "numpy",
    "openai",
    "opentelemetry",
    "pandas",
    "polars",
    "prometheus_client",
    "scipy",
    "services.launcher",
    "sklearn",
    "starlette",
    "talib",
    "uvicorn",
    "uvloop",
    "yfinance",
)

LISTING = (
    "accounts",
    "budget",
    "config",
    "cycle",
    "dlq",
    "exit-signals",
    "leaderboard",
    "logs",
    "notify",
    "operations",
    "performance",
    "schedule",
    "trades",
)
"""Commands that ask about one thing each, and about no decision."""
DECIDING = (
    "contracts.approval",
    "contracts.execution",
    "contracts.research",
    "contracts.risk",
    "contracts.sentiment",
    "contracts.strategy_result",
    "contracts.study",
    "contracts.trader",
)
"""Contracts of decisions, the most and the largest that there are."""

LOADED = """
import sys
from importlib import import_module

for module in sys.argv[1].split(","):
    import_module(f"services.cli.{module}")
print(*sorted(set(sys.argv[2].split(",")) & set(sys.modules)))
print(import_module("contracts.performance").PerformanceView.__pydantic_complete__)
"""


def _loaded(commands: Sequence[str], among: Sequence[str]) -> tuple[str, str]:
    """Those of the modules that the commands load, and whether a validator was built meanwhile."""
    modules = ",".join(ENTRIES[name].module for name in commands)
    done = subprocess.run(
        [sys.executable, "-c", LOADED, modules, ",".join(among)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    heavy, complete = done.stdout.splitlines()
    return heavy, complete


def test_a_reading_command_loads_nothing_heavy_and_builds_no_validator_before_it_needs_one() -> (
    None
):
    heavy, complete = _loaded(READING, HEAVY)

    assert heavy == ""
    assert complete == "False"


def test_who_asks_about_one_thing_loads_no_contracts_of_decisions() -> None:
    assert _loaded(LISTING, DECIDING)[0] == ""
