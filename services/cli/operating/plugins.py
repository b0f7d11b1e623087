"""What `deskbus doctor` and `deskbus check` see of plug-ins: each is loaded and asked a sample."""

from collections.abc import Sequence
from datetime import date

from contracts.plugins import BuyQuestion, HeldPosition
from libs.quant.risk.plugins import verdict_of
from libs.runtime.plugin_process import ask
from services.cli.operating.checks import DoctorCheck, ok, problem

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
TODO = "until then every buy is vetoed; docs/plug-ins.md has what a rule takes and returns"


async def plugins_tried(names: Sequence[str]) -> Sequence[DoctorCheck]:
    """Each plug-in of the settings with its answer to a sample buy, or what is wrong with it."""
    return [await _tried(name) for name in names]


async def _tried(name: str) -> DoctorCheck:
    asked = await ask(name, [SAMPLE.model_dump(mode="json")])
    (answer,) = asked.answers
    verdict = verdict_of(name, asked.sha256, SAMPLE, answer.value, answer.problem)
    if verdict.failed:
        return problem("plug-in", f"{name}: {verdict.reason}", TODO)
    bought = f"{verdict.ceiling:f} of a sample of {SAMPLE.quantity} shares of {SAMPLE.ticker}"
    return ok("plug-in", f"{name} allows {bought}: {verdict.reason}")
