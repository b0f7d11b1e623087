"""The desk's thinking services in one process, each operation with a journal in memory."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from contracts.account import AccountLimits, Portfolio
from contracts.assessment import Memorize
from contracts.cycle import CycleRequest, CycleStatus
from contracts.message import Command, Contract, Pipeline
from contracts.operation import JournalEntry
from contracts.research import (
    AnswerQuestion,
    MakePlan,
    ResearchTickers,
)
from contracts.risk import ReviewPicks
from contracts.sentiment import BuildDigest, ScoreSentiment
from contracts.subjects.commands import REVIEW_PICKS
from contracts.trader import PickTrades
from contracts.types import Money
from libs.bus.route import Route, on_command
from libs.llm.provider import Provider
from libs.llm.rules.provider import RulesProvider
from libs.market.replay.market import ReplayMarket, ReplayStore
from libs.market.source import MarketData
from libs.runtime.ids import cycle_id, operation_id
from libs.runtime.journal import Journal
from libs.runtime.settings import Settings
from services.assessment import app as assessment
from services.research import app as research
from services.risk.review import review_picks, review_role
from services.sentiment import app as sentiment
from services.strategy import app as strategy
from services.trader import app as trader

AS_OF = date(2012, 6, 29)
FIXTURE_MARKET = Path(__file__).parents[2] / "data" / "fixture_market"
FIXTURE_AS_OF = date(2024, 3, 15)


@dataclass
class Desk:
    """Runs commands through the services' own routes; `journals` holds what each has recorded."""

    market: MarketData
    providers: Mapping[str, Provider]
    as_of: date = AS_OF
    request: CycleRequest = CycleRequest(idempotency_key="test")
    pipeline: Pipeline = Pipeline(name="rules")
    portfolio: Portfolio | None = None
    journals: dict[str, list[JournalEntry]] = field(default_factory=dict)
    errors: tuple[str, ...] = ()
    batches: list[int] = field(default_factory=list)
    settings: Settings | None = None

    async def do(self, message: type[Command], **parts: Any) -> Any:
        """The contract that answers a command; what was on record of it is used again."""
        step = message.__name__.lower()
        recorded = self.journals.setdefault(step, [])

        async def record(entries: Sequence[JournalEntry], *_: object) -> None:
            self.batches.append(len(entries))
            # Through JSON and back, as every real transport does.
            recorded.extend(
                JournalEntry.model_validate_json(entry.model_dump_json()) for entry in entries
            )

        journal = Journal(list(recorded), record)
        answer = await self._route(message).handle(self.command(message, **parts), journal)
        await journal.flush()
        return type(answer).model_validate_json(answer.model_dump_json())

    def command(self, message: type[Command], **parts: Any) -> Command:
        """A command of this cycle."""
        step = message.__name__.lower()
        cycle = cycle_id("test", self.request.idempotency_key)
        return message.model_validate(
            {
                "cycle_id": cycle,
                "op_id": operation_id(cycle, self.pipeline.name, "state", step, 1),
                "as_of": self.as_of,
                "now": datetime(2026, 1, 2, tzinfo=UTC),
                "pipeline": self.pipeline,
                "state": "state",
                "step": step,
                "workflow_version": 1,
                "seed": 1,
                "errors": self.errors,
                **parts,
            }
        )

    def command_ids(self) -> tuple[UUID, UUID]:
        """A cycle's id and one of its operations'."""
        cycle = cycle_id("test", self.request.idempotency_key)
        return cycle, operation_id(cycle, "rules", "books", "books", 1)

    async def cycle(self) -> dict[str, Contract]:
        """Every agent in its order."""
        digest = await self.do(BuildDigest, request=self.request)
        report = await self.do(ScoreSentiment, signal_digest=digest)
        portfolio = self.portfolio or self.empty_account()
        seen = {"signal_digest": digest, "sentiment_report": report}
        plan = await self.do(MakePlan, request=self.request, portfolio=portfolio, **seen)
        quant = await self.do(AnswerQuestion, plan=plan)
        found = await self.do(ResearchTickers, plan=plan, **seen)
        facts = {"quant_report": quant, "research_report": found, "portfolio": portfolio}
        asked = {"request": self.request, "plan": plan}
        picks = await self.do(PickTrades, **asked, **seen, **facts)
        review = await self.do(ReviewPicks, daily_picks=picks, **asked, **facts)
        facts.pop("portfolio")
        memory = await self.do(
            Memorize,
            outcome=CycleStatus.COMPLETED,
            plan=plan,
            daily_picks=picks,
            pick_review=review,
            **facts,
        )
        return {
            "digest": digest,
            "sentiment": report,
            "plan": plan,
            "quant": quant,
            "research": found,
            "picks": picks,
            "review": review,
            "memory": memory,
        }

    def empty_account(self) -> Portfolio:
        """An account with cash only."""
        cycle, operation = self.command_ids()
        cash = Money(amount=Decimal(100_000))
        return Portfolio(
            cycle_id=cycle,
            op_id=operation,
            as_of=self.as_of,
            account="main",
            cash=cash,
            equity=cash,
            # AS_OF's last month is AAPL's worst of four: its exit rules would veto every buy of it.
            limits=AccountLimits(exits_veto_buys=False),
        )

    def _route(self, message: type[Command]) -> Route:
        settings = self.settings or Settings()
        wired = [
            sentiment.routes(self.market, self.providers, settings),
            research.routes(self.market, self.providers, settings),
            trader.routes(self.market, self.providers, settings),
            assessment.routes(self.market, self.providers, settings),
        ]
        design = strategy.designing(self.market, self.providers, settings)
        for route in (design, *(route for routes in wired for route in routes.commands)):
            if route.hears.message is message:
                return route
        role = review_role(self.providers, settings, self.market.calendar)
        return on_command(REVIEW_PICKS, review_picks, role=role)


@pytest.fixture(scope="session")
def bundled() -> ReplayMarket:
    """The real prices that come with the desk."""
    return ReplayMarket(ReplayStore())


@pytest.fixture
def desk(bundled: ReplayMarket) -> Desk:
    """The desk on the bundled prices with the rules provider."""
    return Desk(market=bundled, providers={"rules": RulesProvider()})


@pytest.fixture(scope="session")
def found(bundled: ReplayMarket) -> Mapping[str, Contract]:
    """What each agent of `desk` found at AS_OF, by the rules: made once, as it never changes."""
    with asyncio.Runner(loop_factory=asyncio.new_event_loop) as runner:
        return runner.run(Desk(market=bundled, providers={"rules": RulesProvider()}).cycle())


HEADER = "known_at,ticker,title,summary,publisher,url"


@pytest.fixture
def directory(tmp_path: Path) -> "Directory":
    """A replay directory that a test fills with made-up prices, to open a desk on."""
    return Directory(tmp_path)


@pytest.fixture
def fixture_desk() -> Desk:
    """The desk on the committed made-up market, which has news, fundamentals and earnings."""
    market = ReplayMarket(ReplayStore(FIXTURE_MARKET))
    return Desk(market=market, providers={"rules": RulesProvider()}, as_of=FIXTURE_AS_OF)


@dataclass
class Directory:
    """Writes a replay directory, then opens a desk on it."""

    path: Path

    def prices(self, ticker: str, closes: Sequence[float], last: date = AS_OF) -> None:
        """Daily bars of a ticker that end at `last`, on the sessions of New York."""
        calendar = ReplayMarket(ReplayStore()).calendar
        days = [last]
        while len(days) < len(closes):
            days.append(calendar.previous_session(days[-1]))
        rows = [
            f"{day},{close},{close * 1.01},{close * 0.99},{close},1000000"
            for day, close in zip(reversed(days), closes, strict=True)
        ]
        text = "\n".join(["date,open,high,low,close,volume", *rows])
        (self.path / f"{ticker}.csv").write_text(f"{text}\n")

    def news(self, *rows: tuple[str, str, str]) -> None:
        """Headlines (ticker, title, publisher), all known at noon of AS_OF."""
        known = datetime.combine(AS_OF, time(12), UTC).isoformat().replace("+00:00", "Z")
        lines = [f'{known},{ticker},"{title}",,{publisher},' for ticker, title, publisher in rows]
        (self.path / "news.csv").write_text("\n".join([HEADER, *lines]) + "\n")

    def desk(self, **changes: Any) -> Desk:
        """The desk on what was written."""
        market = ReplayMarket(ReplayStore(self.path))
        return Desk(market=market, providers={"rules": RulesProvider()}, **changes)
