"""Examples of every command, as its --help ends with them. A test parses each."""

from collections.abc import Mapping, Sequence
from typing import Any

GROUP_EXAMPLES_MAX = 3
"""In the help of a group: each of its commands has more."""

EXAMPLES: Mapping[str, Sequence[str]] = {
    "run": (
        "deskbus run",
        "deskbus run --as-of 2012-06-29 --universe AAPL,MSFT",
        "deskbus run --provider claude --max-cost 0.50",
    ),
    "init": ("deskbus init my-desk",),
    "new exit": ("deskbus new exit tired_money",),
    "new rule": ("deskbus new rule penny_stock", "deskbus new rule penny_stock --in my-desk"),
    "new tool": ("deskbus new tool drawdown",),
    "up": ("deskbus up --detach", "deskbus up --port 8080", "deskbus up --processes"),
    "down": ("deskbus down",),
    "status": ("deskbus status", "deskbus status --json"),
    "open": ("deskbus open", "deskbus open portfolio"),
    "logs": ("deskbus logs -f", "deskbus logs risk -n 200", "deskbus logs postgres"),
    "demo": ("deskbus demo",),
    "cycle request": (
        "deskbus cycle request --as-of 2012-06-29 --wait",
        "deskbus cycle request --kind exit --as-of 2012-10-31 --wait",
        "deskbus cycle request --provider rules --provider claude --max-cost 0.50",
    ),
    "cycle show": (
        "deskbus cycle show",
        "deskbus cycle show 28f4da97 --evidence AAPL",
        "deskbus cycle show --stage quant",
    ),
    "cycle list": (
        "deskbus cycle list",
        "deskbus cycle list --status failed --limit 50",
        "deskbus cycle list --account main --since 2012-06-01 --until 2012-06-29",
        "deskbus cycle list --text 'vetoed AAPL'",
        "deskbus cycle list --sort took",
    ),
    "cycle cancel": ("deskbus cycle cancel 28f4da97",),
    "cycle replay": ("deskbus cycle replay 28f4da97",),
    "agent trigger": (
        "deskbus agent trigger --wait",
        "deskbus agent trigger --spec strategies/trend-and-calm.yaml --wait",
    ),
    "agent status": ("deskbus agent status",),
    "agent cancel": ("deskbus agent cancel --reason 'wrong universe'",),
    "strategies list": ("deskbus strategies list",),
    "strategies show": ("deskbus strategies show trend-and-calm",),
    "strategies compare": ("deskbus strategies compare trend-and-calm trend-and-calm-2",),
    "approvals list": ("deskbus approvals list",),
    "approvals approve": (
        "deskbus approvals approve 28f4da97",
        "deskbus approvals approve 28f4da97 --drop MSFT --quantity AAPL=10",
    ),
    "approvals reject": ("deskbus approvals reject 28f4da97 --reason 'too much IT'",),
    "account bind": (
        "deskbus account bind main",
        "deskbus account bind main --number PA3XXXXXXXXX",
    ),
    "account reconcile": (
        "deskbus account reconcile main",
        "deskbus account reconcile main --hash 811975e37974 --reason 'sold by hand'",
    ),
    "orders list": ("deskbus orders list", "deskbus orders list --open"),
    "orders show": ("deskbus orders show 375f6148-caa7-53e0-89b6-c0f43c1292a5",),
    "orders cancel": ("deskbus orders cancel 375f6148-caa7-53e0-89b6-c0f43c1292a5",),
    "operations list": (
        "deskbus operations list",
        "deskbus operations list --status failed",
        "deskbus operations list --type validate --text AAPL",
    ),
    "operations show": ("deskbus operations show 3f0c7a11",),
    "operations status": ("deskbus operations status 28f4da97",),
    "operations tree": ("deskbus operations tree", "deskbus operations tree 28f4da97"),
    "tail": (
        "deskbus tail",
        "deskbus tail 'order_*'",
        "deskbus tail --cycle last",
        "deskbus tail --errors",
    ),
    "accounts": ("deskbus accounts",),
    "trades": ("deskbus trades", "deskbus trades main --ticker AAPL --limit 100"),
    "portfolio show": ("deskbus portfolio", "deskbus portfolio mine"),
    "portfolio import": (
        "deskbus portfolio import schwab.csv --opened-on 2024-03-15",
        "deskbus portfolio import holdings.csv --account mine --cash 2500 --yes",
        "deskbus portfolio import own.csv --columns ticker=Symbol,quantity=Units,cost=Avg --cash 0",
    ),
    "portfolio deposit": ("deskbus portfolio deposit 1000 --account mine",),
    "portfolio withdraw": ("deskbus portfolio withdraw 250.50 --account mine",),
    "performance": (
        "deskbus performance",
        "deskbus performance mine --benchmark AAPL --trips 200",
    ),
    "report": ("deskbus report", "deskbus report 2012-06-29 --account main"),
    "exit-signals check": (
        "deskbus exit-signals check AAPL",
        "deskbus exit-signals check AAPL --format full --as-of 2012-10-31",
    ),
    "exit-signals distances": ("deskbus exit-signals distances",),
    "exit now": (
        "deskbus exit now AAPL",
        "deskbus exit now AAPL --share 50 --account mine",
        "deskbus exit now --all",
    ),
    "leaderboard": (
        "deskbus leaderboard",
        "deskbus leaderboard --since 2012-03-01",
        "deskbus leaderboard --row rules@main --json",
    ),
    "risk": ("deskbus risk", "deskbus risk lab --days 90"),
    "budget": ("deskbus budget", "deskbus budget --days 7"),
    "mcp": ("deskbus mcp", "deskbus mcp --http --port 8765"),
    "check": ("deskbus check", "deskbus check my-data"),
    "market sources": ("deskbus market sources",),
    "market show": ("deskbus market show AAPL", "deskbus market show AAPL --as-of 2012-06-29"),
    "market import": (
        "deskbus market import prices.csv",
        "deskbus market import HistoricalData.csv --from nasdaq --ticker ACME --yes",
        "deskbus market import own.csv --columns date=Day,close=Last --ticker ACME --adjusted none",
    ),
    "market record": ("deskbus market record my-data --universe AAPL,MSFT",),
    "study plan": ("deskbus study plan study.yaml",),
    "study run": (
        "deskbus study run study.yaml",
        "deskbus study run study.yaml --no-wait",
    ),
    "study status": ("deskbus study status rules-or-coin",),
    "study stop": ("deskbus study stop rules-or-coin --reason 'too dear'",),
    "study list": ("deskbus study list", "deskbus study list --json"),
    "study score": (
        "deskbus study score rules-or-coin",
        "deskbus study score rules-or-coin --horizon 20 --cost-bps 25 --benchmark cash",
    ),
    "study cells": ("deskbus study cells rules-or-coin --arm rules",),
    "study report": ("deskbus study report rules-or-coin -o rules.html",),
    "study score-decisions": (
        "deskbus study score-decisions decisions.csv --prices my-data",
        "deskbus study score-decisions trading_memory.md --prices my-data --html score.html",
        "deskbus study score-decisions trades.csv --prices yahoo --zone America/New_York",
    ),
    "schedule list": ("deskbus schedule list",),
    "schedule pause": ("deskbus schedule pause decide --reason 'earnings season'",),
    "schedule resume": ("deskbus schedule resume decide",),
    "schedule run": ("deskbus schedule run decide --at 2012-06-29T16:40 --wait",),
    "schedule replay": ("deskbus schedule replay --since 2012-03-01 --until 2012-06-29",),
    "notify test": ("deskbus notify test", "deskbus notify test phone"),
    "notify list": ("deskbus notify list",),
    "notify history": ("deskbus notify history --channel phone",),
    "halt": (
        "deskbus halt --reason 'prices look wrong'",
        "deskbus halt --account beta",
        "deskbus halt --status",
    ),
    "resume": ("deskbus resume", "deskbus resume --account beta"),
    "doctor": ("deskbus doctor",),
    "config": ("deskbus config", "deskbus config --json"),
    "config set": (
        "deskbus config set limits.position_pct_max 20",
        "deskbus config set accounts.growth.limits.daily_loss_pct_max 3 --yes",
    ),
    "dlq list": ("deskbus dlq list",),
    "dlq show": ("deskbus dlq show 3",),
    "dlq retry": ("deskbus dlq retry 3",),
    "dlq discard": ("deskbus dlq discard 3 --reason 'a test of mine'",),
    "export": (
        "deskbus export my-export --since 2026-11-01",
        "deskbus export one-cycle --cycle 28f4da97",
    ),
    "db migrate": ("deskbus db migrate",),
    "db backup": ("deskbus db backup desk.dump",),
    "db restore": ("deskbus db restore desk.dump",),
    "db retain": ("deskbus db retain --months 3 --dry-run",),
    "proposer add": ("deskbus proposer add research-bot --account bot",),
    "proposer list": ("deskbus proposer list",),
    "proposer revoke": ("deskbus proposer revoke research-bot",),
    "secrets init": ("deskbus secrets init deploy/secrets --tls",),
}
"""By what is typed after `deskbus`."""


def with_examples(command: Any, path: str) -> Any:
    """The command with its examples below its help, and those below it with theirs; an option's
    value has the option's name in place of a type's."""
    below = getattr(command, "commands", {})
    for name, inner in below.items():
        with_examples(inner, f"{path} {name}")
    for param in command.params:
        is_open = param.param_type_name == "option" and not param.is_flag
        if is_open and param.metavar is None and not param.type_descriptor.is_choice:
            param.metavar = max(param.opts, key=len).strip("-").replace("-", "_").upper()
    firsts = [example for name in below for example in EXAMPLES[f"{path} {name}"][:1]]
    examples = EXAMPLES.get(path, firsts[:GROUP_EXAMPLES_MAX])
    command.epilog = "\n".join(("\b", "Examples:", *(f"  {example}" for example in examples)))
    return command
