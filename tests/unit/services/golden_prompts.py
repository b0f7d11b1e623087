"""What each agent is sent, from fixtures, laid out for a reader.

`python -m tests.unit.services.golden_prompts tests/data/prompts` (`make prompts`) writes the copies
that a test compares, so that a change of a prompt, of what an agent is told or of a contract in it
shows in review as it will reach the model.
"""

import asyncio
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date
from decimal import Decimal
from itertools import dropwhile, zip_longest
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import orjson

from contracts.account import Portfolio, Position
from contracts.assessment import Memorize
from contracts.cycle import Budgets, CycleRequest, CycleStatus
from contracts.memory import AgentMemory
from contracts.message import Pipeline
from contracts.probe import ProbeInputs
from contracts.research import AnswerQuestion, MakePlan, ResearchTickers
from contracts.risk import ReviewPicks
from contracts.sentiment import BuildDigest, ScoreSentiment, SignalDigest
from contracts.strategy_cycle import AssessStrategy, DesignStrategy
from contracts.trader import PickTrades
from contracts.types import Money
from libs.llm.prompt import render_errors
from libs.llm.provider import ModelReply, ModelRequest
from libs.llm.rules.provider import RulesProvider
from libs.market.replay.market import ReplayMarket, ReplayStore
from libs.runtime.settings import Settings
from tests.unit.services.conftest import FIXTURE_AS_OF, FIXTURE_MARKET, Desk
from tests.unit.services.strategy_results import backtest, design, past_strategies, training

SERVICES = Path(__file__).parents[3] / "services"
EVIDENCE_CHARS_MAX = 200
"""Of an evidence line: what the market says is no part of a prompt."""
HEAD = "<!-- Made by `make prompts`: what this agent is sent, from fixtures. Do not edit. -->"
MEMORY = {
    "short_term_summary": "Bought ALFA at 2024-03-01; CHRL was vetoed by sector_allocation.",
    "active_hypotheses": ("2024-03-01: ALFA stays above its SMA50; refuted by a close below it",),
    "next_steps": ("does ALFA still have the reason it was bought for?",),
    "track_record": ("2024-02-23, 5 sessions later: ALFA +1.20%, all candidates +0.40%",),
}


class Listening(RulesProvider):
    """The rules, which keep what they were asked."""

    def __init__(self) -> None:
        super().__init__()
        self.requests: list[ModelRequest] = []

    async def complete(self, request: ModelRequest) -> ModelReply:
        self.requests.append(request)
        return await super().complete(request)


class Nobody(Listening):
    """A model that recognises nobody."""

    name = "model"

    async def complete(self, request: ModelRequest) -> ModelReply:
        self.requests.append(request)
        return ModelReply(text='{"guesses": []}')


def prompt_files() -> Mapping[str, Path]:
    """Every prompt by its agent."""
    return {path.stem: path for path in sorted(SERVICES.glob("*/prompts/*.md"))}


async def asked() -> tuple[Desk, Sequence[ModelRequest]]:
    """A cycle on the committed market with a position, a memory and a plan refused before."""
    provider = Listening()
    request = CycleRequest(
        idempotency_key="prompts",
        universe=("ALFA", "CHRL"),
        constraints={"style": "no share below 5 USD"},
        budgets=Budgets(money=Money(amount=Decimal(10_000))),
    )
    desk = Desk(
        market=ReplayMarket(ReplayStore(FIXTURE_MARKET)),
        providers={"rules": provider},
        as_of=FIXTURE_AS_OF,
        request=request,
    )
    with TemporaryDirectory() as folder:
        desk.settings = Settings(strategies_dir=Path(folder) / "strategies")
        digest = await _run(desk)
        asked_who = Nobody()
        probed = replace(
            desk,
            providers={"model": asked_who},
            pipeline=Pipeline(name="blind", provider="model", account="study-0", masked=True),
        )
        await probed.do(ProbeInputs, request=request, signal_digest=digest)
    return desk, [*provider.requests, *asked_who.requests]


async def _run(desk: Desk) -> SignalDigest:
    request, portfolio, memory = desk.request, _holding(desk), _memory(desk)
    digest = await desk.do(BuildDigest, request=request)
    report = await desk.do(ScoreSentiment, signal_digest=digest)
    seen = {"signal_digest": digest, "sentiment_report": report}
    known = {"portfolio": portfolio, "agent_memory": memory}
    desk.errors = ("assets.0: neither in the digest nor held; choose from AAPL, MSFT",)
    plan = await desk.do(MakePlan, request=request, **seen, **known)
    desk.errors = ()
    quant = await desk.do(AnswerQuestion, plan=plan)
    found = await desk.do(ResearchTickers, plan=plan, **seen)
    facts = {"quant_report": quant, "research_report": found}
    asked_for = {"request": request, "plan": plan}
    picks = await desk.do(PickTrades, **asked_for, **seen, **facts, **known)
    review = await desk.do(
        ReviewPicks, daily_picks=picks, portfolio=portfolio, **asked_for, **facts
    )
    end = {"outcome": CycleStatus.COMPLETED, "daily_picks": picks, "pick_review": review}
    await desk.do(Memorize, plan=plan, agent_memory=memory, **end, **facts)
    wanted = CycleRequest(
        idempotency_key="prompts",
        kind="strategy",
        universe=("ALFA", "CHRL"),
        constraints={"style": "long only"},
    )
    await desk.do(DesignStrategy, request=wanted, past_strategies=past_strategies())
    results = {"training_result": training(), "backtest_result": backtest()}
    await desk.do(AssessStrategy, strategy_design=design(), **results)
    return digest


def _holding(desk: Desk) -> Portfolio:
    books = desk.empty_account()
    position = Position(
        ticker="ALFA",
        quantity=Decimal(10),
        average_cost=Money(amount=Decimal("75.50")),
        price=Money(amount=Decimal("81.79")),
        sector="Information Technology",
    )
    equity = Money(amount=books.cash.amount + position.value)
    return books.model_copy(update={"positions": (position,), "equity": equity})


def _memory(desk: Desk) -> AgentMemory:
    cycle, operation = desk.command_ids()
    return AgentMemory(cycle_id=cycle, op_id=operation, as_of=date(2024, 3, 1), **MEMORY)


async def rendered() -> Mapping[str, str]:
    """The golden copies, by file name."""
    _, requests = await asked()
    made = {"repair.md": _page("repair", ["## A repair turn", _readable(_repair())])}
    for agent, path in prompt_files().items():
        of_agent = [request for request in requests if request.agent == agent]
        made[f"{agent}.md"] = _page(agent, _parts(path, of_agent))
    return made


def _repair() -> str:
    return render_errors(
        ("tickers.0: not in the digest; choose from AAPL", "confidence: <1 expected")
    )


def _parts(path: Path, requests: Sequence[ModelRequest]) -> list[str]:
    first, last = requests[0], requests[-1]
    tools = ", ".join(tool.name for tool in first.tools)
    fields = ", ".join((last.output_schema or {}).get("properties", {}))  # type: ignore[arg-type]
    opening = _readable(first.messages[0].text)  # type: ignore[union-attr]
    closing = _readable(last.messages[0].text)  # type: ignore[union-attr]
    parts = [
        f"prompt: {path.relative_to(SERVICES.parent)}, sha256 {first.system_sha256}",
        f"tools: {tools or 'none'}",
        f"answer: {(last.output_schema or {}).get('title')} with {fields}",
        "## System",
        first.system.strip(),
        "## First message",
        opening,
    ]
    if closing != opening:
        parts += ["## What the output pass has besides", _besides(opening, closing)]
    return parts


def _besides(opening: str, closing: str) -> str:
    """The end of the second text, from the first line that the first one does not have there. The
    task itself is the same in both."""
    task, *_ = opening.partition("</task>")
    if not closing.startswith(task):
        raise AssertionError("the output pass does not begin as the tooling pass did")
    lines = zip_longest(opening.splitlines(), closing.splitlines())
    new = dropwhile(lambda pair: pair[0] == pair[1], lines)
    return "\n".join(told for _, told in new if told is not None)


def _page(name: str, parts: Sequence[str]) -> str:
    return "\n\n".join([HEAD, f"# {name}", *parts]) + "\n"


def _readable(text: str) -> str:
    """The message with its JSON lines laid out, evidence by how each line begins."""
    lines: list[str] = []
    in_evidence = False
    for line in text.splitlines():
        in_evidence = line == "<evidence>" or (in_evidence and line != "</evidence>")
        lines.append(_laid_out(line, cut=in_evidence))
    return "\n".join(lines)


def _laid_out(line: str, *, cut: bool) -> str:
    if not line.startswith(("{", '"')):
        return line
    if cut:
        return line if len(line) <= EVIDENCE_CHARS_MAX else f"{line[:EVIDENCE_CHARS_MAX]}…"
    value: Any = orjson.loads(line)
    return orjson.dumps(value, option=orjson.OPT_INDENT_2).decode().replace("<", "\\u003c")


def main() -> None:
    """Write the copies into the folder given."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in asyncio.run(rendered()).items():
        (folder / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
