"""Every import rule is seen to fail: a copy of the tree is given one offence for each clause.

The linter then runs once over the copy, and must name each of the offences under its own rule.
"""

import configparser
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

PACKAGES = ("contracts", "libs", "services")


class Offence(NamedTuple):
    """A module of the tree, what it must not import, and the rule that says so."""

    rule: str
    module: str
    imports: str


IMPURE = (
    "anthropic",
    "asyncio",
    "asyncpg",
    "faststream",
    "nats",
    "openai",
    "os",
    "structlog",
    "yfinance",
)
THINKERS = (
    "assessment",
    "mcp_server",
    "notifier",
    "research",
    "risk",
    "sentiment",
    "strategy",
    "trader",
)
HOMES = {
    "home-of-nats": ("nats",),
    "home-of-faststream": ("faststream",),
    "home-of-asyncpg": ("asyncpg",),
    "home-of-model-sdks": ("anthropic", "openai"),
    "home-of-market-vendors": ("exchange_calendars", "pandas", "yfinance"),
    "home-of-talib": ("talib",),
    "home-of-scikit-learn": ("joblib", "scipy", "sklearn", "threadpoolctl"),
    "home-of-the-terminal": ("typer", "rich"),
    "home-of-the-web": ("fastapi", "mcp", "mcp_types", "starlette", "uvicorn"),
    "home-of-apprise": ("apprise", "requests"),
    "home-of-nkeys": ("nkeys",),
    "home-of-prometheus": ("prometheus_client",),
    "home-of-opentelemetry": ("opentelemetry",),
}

OFFENCES = (
    Offence("layers", "contracts.types", "libs.quant.sizing"),
    Offence("layers", "contracts.types", "services.risk.logic"),
    Offence("layers", "libs.quant.sizing", "services.risk.logic"),
    Offence("services-apart", "services.risk.handler", "services.trader.handler"),
    Offence("services-apart", "services.cli.shell.problem", "services.orchestrator.machine.logic"),
    Offence("services-apart", "services.risk.app", "services.launcher"),
    Offence("inside-a-service", "services.risk.logic", "services.risk.handler"),
    Offence("inside-a-service", "services.execution.store", "services.execution.handler"),
    Offence("inside-a-service", "services.trader.tools", "services.trader.handler"),
    Offence("inside-a-service", "services.trader.handler", "services.trader.app"),
    Offence("inside-a-service", "services.console.logic", "services.console.store"),
    Offence("libs-apart", "libs.bus.codec", "libs.market.errors"),
    Offence("libs-apart", "libs.llm.prompt", "libs.postgres.pool"),
    Offence("libs-apart", "libs.report.strategies.chart", "libs.llm.prompt"),
    Offence("libs-apart", "libs.quant.sizing", "libs.runtime.ids"),
    Offence("libs-apart", "libs.runtime.ids", "libs.quant.sizing"),
    Offence("libs-apart", "libs.runtime.ids", "libs.bus.codec"),
    Offence("studies-apart", "services.trader.handler", "libs.study.cells"),
    Offence("studies-apart", "services.console.app", "libs.study.report.compose"),
    Offence("studies-apart", "services.orchestrator.handler", "contracts.study"),
    Offence("masking", "services.trader.handler", "libs.llm.masking.reader"),
    *(
        Offence("orders-at-a-broker", module, home)
        for module in ("contracts.account", "libs.broker.broker", "services.trader.app")
        for home in ("libs.broker.alpaca", "libs.broker.venue")
    ),
    *(
        Offence("pure", module, vendor)
        for module in ("contracts.cycle", "libs.quant.risk.evaluation", "services.risk.logic")
        for vendor in IMPURE
    ),
    *(
        Offence("models-without-database", f"services.{name}.app", database)
        for name in THINKERS
        for database in ("asyncpg", "libs.postgres.pool")
    ),
    *(
        Offence("orders-without-models", f"services.{name}.handler", model)
        for name in ("execution", "orchestrator")
        for model in ("anthropic", "openai", "libs.llm.provider")
    ),
    *(
        Offence(rule, module, vendor)
        for rule, vendors in HOMES.items()
        for vendor in vendors
        for module in ("contracts.account", "libs.broker.broker", "services.trader.app")
    ),
)


def _copy(root: Path, to: Path) -> None:
    for package in PACKAGES:
        shutil.copytree(root / package, to / package, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(root / ".importlinter", to)


def _lint(tree: Path) -> subprocess.CompletedProcess[str]:
    program = "from importlinter.cli import lint_imports_command as lint; lint()"
    return subprocess.run(
        [sys.executable, "-c", program, "--no-cache"],
        cwd=tree,
        env={**os.environ, "PYTHONPATH": str(tree), "COLUMNS": "400"},
        capture_output=True,
        text=True,
        check=False,
    )


def _rules(root: Path) -> Mapping[str, str]:
    """Name by id of every rule in the configuration."""
    config = configparser.ConfigParser()
    config.read(root / ".importlinter")
    prefix = "importlinter:contract:"
    return {
        section.removeprefix(prefix): config[section]["name"]
        for section in config.sections()
        if section.startswith(prefix)
    }


@pytest.fixture(scope="module")
def told(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    """What the linter says of the copy with all the offences, by rule."""
    tree = tmp_path_factory.mktemp("tree")
    _copy(root, tree)
    for offence in OFFENCES:
        file = tree / (offence.module.replace(".", "/") + ".py")
        assert file.is_file(), f"{offence.module} is not there any more: choose another module"
        with file.open("a") as out:
            out.write(f"import {offence.imports}\n")
    with (tree / "libs/quant/ta.py").open("a") as out:
        out.write("import libs.quant.indicators\n")
    newcomer = tree / "libs" / "newcomer"
    newcomer.mkdir()
    (newcomer / "__init__.py").write_text('"""A library that no rule knows."""\n')
    output = _lint(tree).stdout
    broken = output[output.index("Broken contracts") :]
    rules = _rules(root)
    starts = sorted((broken.index(f"\n{name}\n"), rule) for rule, name in rules.items())
    ends = [start for start, _ in starts[1:]] + [len(broken)]
    return {rule: broken[at:end] for (at, rule), end in zip(starts, ends, strict=True)}


def test_the_tree_as_it_is_keeps_every_rule(root: Path, tmp_path: Path) -> None:
    _copy(root, tmp_path)

    result = _lint(tmp_path)

    assert result.returncode == 0, result.stdout


@pytest.mark.parametrize("offence", OFFENCES, ids=lambda o: f"{o.rule}: {o.module} <- {o.imports}")
def test_an_offence_is_named_under_its_rule(offence: Offence, told: Mapping[str, str]) -> None:
    assert f"{offence.module} -> {offence.imports} " in told[offence.rule]


def test_a_cycle_is_named(told: Mapping[str, str]) -> None:
    assert "No cycles are allowed in libs.quant." in told["no-cycles"]
    assert ".ta -> .indicators" in told["no-cycles"]


def test_a_library_that_no_rule_knows_is_named(told: Mapping[str, str]) -> None:
    assert "newcomer" in told["libs-apart"]


def test_every_rule_has_an_offence(root: Path) -> None:
    assert set(_rules(root)) == {offence.rule for offence in OFFENCES} | {"no-cycles"}


def test_only_the_adapter_names_the_trading_host(root: Path) -> None:
    named = [
        str(path.relative_to(root))
        for package in ("contracts", "libs", "services", "deploy")
        for path in sorted((root / package).rglob("*.py"))
        if "paper-api.alpaca" in path.read_text()
    ]
    assert named == ["libs/broker/alpaca.py"]
