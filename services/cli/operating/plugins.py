"""What `deskbus doctor` and `deskbus check` see of plug-ins: each is loaded and asked a sample."""

from collections.abc import Sequence
from datetime import date

import orjson

from contracts.own_tool import DayBar, ToolQuestion
from contracts.plugins import BuyQuestion, ExitQuestion, HeldPosition
from libs.quant.exits.plugins import answer_of
from libs.quant.risk.plugins import verdict_of
from libs.quant.words import one_line
from libs.runtime.plugin_process import ask
from libs.runtime.settings import Settings
from services.cli.operating.checks import DoctorCheck, ok, problem

SAID_CHARS_MAX = 120
SAMPLE = BuyQuestion(
    as_of=date(2012, 6, 29),
    account="main",
    currency="USD",
    equity=100_000.0,
    cash=90_000.0,
    ticker="MSFT",
    quantity=100,
    price=30.59,
    sector="technology",
    risk_score=3.0,
    confidence=0.6,
    positions=(HeldPosition(ticker="IBM", quantity=50, price=200.0, value=10_000.0),),
)
HELD_SAMPLE = ExitQuestion(
    as_of=date(2012, 6, 29),
    account="main",
    currency="USD",
    equity=100_000.0,
    ticker="MSFT",
    quantity=100.0,
    price=30.59,
    average_cost=31.0,
    value=3_059.0,
    sector="technology",
    opened_on=date(2012, 3, 1),
    sessions_held=84,
    close=30.59,
    months=(0.02, 0.09, 0.07, 0.02, -0.01, -0.08, 0.05),
)
ASKED_SAMPLE = ToolQuestion(
    as_of=date(2012, 6, 29),
    ticker="MSFT",
    name="Microsoft",
    currency="USD",
    sector="technology",
    price=30.59,
    measured_risk=3.0,
    atr=0.55,
    report_on=date(2012, 7, 19),
    bars=tuple(
        DayBar(session=on, open=29.9, high=30.7, low=29.8, close=close, volume=5e7)
        for on, close in ((date(2012, 6, 28), 29.91), (date(2012, 6, 29), 30.59))
    ),
)
TODO = "until then every buy is vetoed; see docs/plug-ins.md for arguments and result"
TOOL_TODO = "until then models do not have it; see docs/plug-ins.md for arguments and result"
EXIT_TODO = "until then only the built-in exit rules are used; see docs/plug-ins.md for the result"


async def plugins_tried(settings: Settings) -> Sequence[DoctorCheck]:
    """`plugin_rows` without the names, which stand in what is said."""
    return [check for _, check in await plugin_rows(settings)]


async def plugin_rows(settings: Settings) -> Sequence[tuple[str, DoctorCheck]]:
    """The name of each plug-in of the settings with its answer to a sample buy, position or ticker,
    or what is wrong with it."""
    kinds = (
        (settings.plugins, _tried),
        (settings.exit_plugins, _exit_tried),
        (settings.tool_plugins, _tool_tried),
    )
    return [(name, await tried(name)) for names, tried in kinds for name in names]


async def _tried(name: str) -> DoctorCheck:
    asked = await ask(name, [SAMPLE.model_dump(mode="json")])
    (answer,) = asked.answers
    verdict = verdict_of(name, asked.sha256, SAMPLE, answer.value, answer.problem)
    if verdict.failed:
        return problem("plug-in", f"{name}: {verdict.reason}", TODO)
    bought = f"{verdict.ceiling:f} of a sample of {SAMPLE.quantity} shares of {SAMPLE.ticker}"
    return ok("plug-in", f"{name} allows {bought}: {verdict.reason}")


async def _exit_tried(name: str) -> DoctorCheck:
    asked = await ask(name, [HELD_SAMPLE.model_dump(mode="json")])
    (answer,) = asked.answers
    said = answer_of(answer.value, answer.problem)
    if said.failed:
        return problem("plug-in", f"{name}: {said.reason}", EXIT_TODO)
    sold = f"{said.sell_pct.normalize():f}% of a sample of {HELD_SAMPLE.quantity:g} shares"
    return ok("plug-in", f"{name} sells {sold} of {HELD_SAMPLE.ticker}: {said.reason}")


async def _tool_tried(name: str) -> DoctorCheck:
    from libs.market.tools.own import answered, tool_of  # noqa: PLC0415 - loads polars

    if problem_found := tool_of(name).problem:
        return problem("plug-in", f"{name}: {problem_found}", TOOL_TODO)
    asked = await ask(name, [ASKED_SAMPLE.model_dump(mode="json")])
    values = answered(asked.answers[0])
    if isinstance(values, str):
        return problem("plug-in", f"{name}: {values}", TOOL_TODO)
    said = one_line(orjson.dumps(values).decode(), SAID_CHARS_MAX)
    return ok("plug-in", f"{name} returns for a sample of {ASKED_SAMPLE.ticker}: {said}")
