"""A real Postgres with the shipped migrations, and a small market whose prices a test writes."""

from collections.abc import AsyncIterator, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from decimal import ROUND_CEILING, Decimal
from typing import TYPE_CHECKING
from uuid import UUID, uuid4

import polars as pl
import pytest

from contracts.account import AccountLimits, ExitAct, OpenBooks, Portfolio, Side
from contracts.cycle import Budgets, CycleRequest
from contracts.execution import ExecuteDecisions, ExecutionResult
from contracts.message import Pipeline
from contracts.risk import (
    DecisionAction,
    DecisionValidation,
    Evidence,
    ExitPlan,
    PortfolioDecision,
)
from contracts.trader import PickPlan, StockPick
from contracts.types import ExchangeRate, Money
from libs.broker.paper import PaperBroker
from libs.market.calendar import ExchangeCalendar, exchange_calendar
from libs.market.errors import NoHistory, NothingTraded
from libs.market.filings.reported import Filing
from libs.market.source import (
    CorporateAction,
    EarningsReport,
    FillPrice,
    Listing,
    NewsItem,
    SourceLabel,
)
from libs.postgres.pool import (
    CONSOLE_ROLE,
    EXECUTION_ROLE,
    ORCHESTRATOR_ROLE,
    OWNER_ROLE,
    Pool,
    open_pool,
)
from libs.quant.exchange import inverse
from libs.quant.risk.evaluation import proposal_hash
from libs.quant.ticks import PRICE_STEP
from libs.runtime import ids
from libs.servers.embedded import Servers
from services.execution.handler import Trading, execute_decisions, open_books
from services.execution.reads import ExecutionReads
from tests.fakes.alpaca_trading import PaperHost, paper_host
from tests.fakes.on_record import put_on_record
from tests.fakes.reasons import settled
from tests.integration.conftest import ServersIn, migrated_servers
from tests.integration.own_servers import OwnServers

if TYPE_CHECKING:
    from tests.integration.execution.at_broker import BoundDesk

D = Decimal
NUMBERS = iter(range(1, 10_000))
"""Of accounts at the broker."""
TEN = D(10)
WIDE = AccountLimits(
    risk_per_trade_pct_max=D(100),
    volatility_pct_max=D(100),
    cluster_pct_max=D(100),
    position_shares_min=0,
    position_value_min=D(0),
    exits_veto_buys=False,
)
"""Of an account that is about the ledger, and not about what a trade may risk."""
FRIDAY = date(2012, 6, 29)
MONDAY = date(2012, 7, 2)
TUESDAY = date(2012, 7, 3)
THURSDAY = date(2012, 7, 5)  # the 4th is a holiday


@pytest.fixture(scope="session")
def servers(servers_in: ServersIn) -> Iterator[OwnServers]:
    """One pair of servers for all tests here; each test uses accounts of its own."""
    with migrated_servers(servers_in) as held:
        yield held


@pytest.fixture
async def pool(servers: Servers) -> AsyncIterator[Pool]:
    """Connections as execution's own role."""
    async with open_pool(servers.postgres_dsn(EXECUTION_ROLE)) as opened:
        yield opened


@dataclass
class Prices:
    """What execution reads: `MarketData`, `FillPrices` and `ExchangeRates` over small tables.

    Each ticker has a sector of its own, unless `sectors` has another; "" is none.
    `euros` are tickers that trade in EUR; a rate of `eurusd` is known at the close of its session.
    From `ends` on there are no prices of anything; those `gone` have none at all.
    """

    opens: dict[tuple[str, date], Decimal | None] = field(default_factory=dict)
    closes: dict[tuple[str, date], Decimal] = field(default_factory=dict)
    lows: dict[tuple[str, date], Decimal] = field(default_factory=dict)
    volumes: dict[tuple[str, date], float] = field(default_factory=dict)
    events: list[CorporateAction] = field(default_factory=list)
    default: Decimal | None = D(10)
    euros: set[str] = field(default_factory=set)
    eurusd: dict[date, Decimal] = field(default_factory=dict)
    last: date = date(2012, 12, 31)
    ends: date = date.max
    gone: set[str] = field(default_factory=set)
    sectors: dict[str, str] = field(default_factory=dict)
    lots: dict[str, int] = field(default_factory=dict)
    label: SourceLabel = SourceLabel("test", "prices that a test writes", synthetic=True)
    calendar: ExchangeCalendar = field(default_factory=exchange_calendar)
    reads: list[str] = field(default_factory=list)

    async def bars(self, ticker: str, as_of: date, sessions: int) -> pl.DataFrame:
        self.reads.append(f"close {ticker}")
        close = self.closes.get((ticker, as_of), self.default)
        if as_of >= self.ends:
            raise NothingTraded(f"{ticker} has no close on {as_of}: the data ends")
        if close is None or ticker in self.gone:
            raise NoHistory(f"{ticker} has no close on {as_of}")
        opened = self.opens.get((ticker, as_of)) or close
        low = self.lows.get((ticker, as_of), min(opened, close))
        prices = {"open": opened, "high": max(opened, close), "low": low, "close": close}
        prices["volume"] = self.volumes.get((ticker, as_of), 1e6)
        days = [as_of]
        while len(days) < sessions:  # it has never moved before
            days.append(self.calendar.previous_session(days[-1]))
        return pl.DataFrame(
            {"date": days[::-1], **{n: [float(p)] * len(days) for n, p in prices.items()}}
        )

    async def news(self, *_: object) -> tuple[NewsItem, ...]:
        return ()

    async def earnings(self, *_: object) -> tuple[EarningsReport, ...]:
        return ()

    async def filings(self, *_: object) -> tuple[Filing, ...]:
        return ()

    async def next_open(self, ticker: str, after: date) -> FillPrice:
        self.reads.append(f"open {ticker}")
        session = self.calendar.next_session(after)
        price = self.opens.get((ticker, session), self.default)
        if price is None or session > self.last or ticker in self.gone:
            raise NoHistory(f"{ticker} did not trade at the open of {session}")
        action = next((e for e in self.events if e.ticker == ticker and e.session == session), None)
        opens_at, currency = self.calendar.open(session), self.currency(ticker)
        return FillPrice(
            ticker, session, opens_at, price, currency, action, self.volumes.get((ticker, session))
        )

    def currency(self, ticker: str) -> str:
        return "EUR" if ticker in self.euros else "USD"

    async def universe(
        self, as_of: date, tickers: Collection[str] | None = None
    ) -> tuple[Listing, ...]:
        return tuple(
            Listing(
                t,
                t,
                self.sectors.get(t, f"of {t}"),
                "",
                self.currency(t),
                "",
                lot=self.lots.get(t, 1),
            )
            for t in tickers or ()
        )

    async def into(self, currency: str, at: datetime) -> Mapping[str, ExchangeRate]:
        known = [day for day in self.eurusd if self.calendar.close(day) <= at]
        if not known:
            return {}
        rate = self.eurusd[max(known)]
        told = ExchangeRate(currency="EUR", into="USD", rate=rate, on=max(known))
        return {"EUR": told} if currency == "USD" else {"USD": inverse(told)}

    async def actions(self, ticker: str, after: date, through: date) -> tuple[CorporateAction, ...]:
        return tuple(e for e in self.events if e.ticker == ticker and after < e.session <= through)


@dataclass
class Desk:
    """One account and the orders a test gives it."""

    trading: Trading
    prices: Prices
    orchestrator: Pool
    account: str = field(default_factory=lambda: f"a{uuid4().hex[:12]}")
    currency: str = "USD"

    async def open(self, as_of: date = FRIDAY, cycle: UUID | None = None) -> Portfolio:
        command = OpenBooks.model_validate(
            {
                **self._envelope(as_of, cycle or uuid4(), "books"),
                "request": CycleRequest(idempotency_key="k", budgets=Budgets()),
            }
        )
        journal = await put_on_record(self.orchestrator, command)
        return await open_books(command, journal, trading=self.trading)

    async def execute(self, command: ExecuteDecisions) -> ExecutionResult:
        journal = await put_on_record(self.orchestrator, command)
        return await execute_decisions(command, journal, trading=self.trading)

    def another(self) -> "Desk":
        """Another account on the same market."""
        return Desk(self.trading, self.prices, self.orchestrator, currency=self.currency)

    def without_cooling_off(self) -> "Desk":
        """This account, which may buy again what it has just sold."""
        limits = WIDE.model_copy(update={"cooling_off_sessions": 0})
        return replace(self, trading=replace(self.trading, limits_of=lambda _: limits))

    async def buy(self, ticker: str, quantity: int, as_of: date = FRIDAY) -> ExecutionResult:
        return await self.execute(self.command({ticker: quantity}, as_of))

    async def enter(self, ticker: str, quantity: int, as_of: date = FRIDAY) -> ExecutionResult:
        """A buy with a plan: its stop is 1% away, as nothing has ever moved."""
        command = self.command({ticker: quantity}, as_of)
        validation = command.decision_validation
        (pick,) = validation.proposals
        planned = pick.model_copy(update={"plan": PickPlan(review_by=date(2012, 9, 25))})
        update = {"proposals": (planned,)}
        return await self.execute(
            command.model_copy(update={"decision_validation": validation.model_copy(update=update)})
        )

    async def sell(
        self, ticker: str, quantity: Decimal | int, as_of: date = FRIDAY
    ) -> ExecutionResult:
        return await self.execute(self.command({ticker: -quantity}, as_of))

    async def exit(
        self,
        ticker: str,
        quantity: int,
        stop: str | None = None,
        as_of: date = FRIDAY,
        acts: ExitAct | None = None,
    ) -> ExecutionResult:
        return await self.execute(self.exit_command(ticker, quantity, stop, as_of, acts))

    def exit_command(
        self,
        ticker: str,
        quantity: int,
        stop: str | None = None,
        as_of: date = FRIDAY,
        acts: ExitAct | None = None,
    ) -> ExecuteDecisions:
        """A sale that an exit check proposed, the price of the stop that follows it, and what it
        acts on."""
        command = self.command({ticker: -quantity}, as_of)
        price = (
            None if stop is None else Money(amount=D(stop), currency=self.prices.currency(ticker))
        )
        plan = ExitPlan(stop_price=price, acts=acts)
        validation = command.decision_validation
        decisions = tuple(d.model_copy(update={"exit": plan}) for d in validation.decisions)
        update = {"decisions": decisions, "proposal_hash": proposal_hash(decisions)}
        return command.model_copy(
            update={"decision_validation": validation.model_copy(update=update)}
        )

    def command(
        self,
        legs: Mapping[str, Decimal | int],
        as_of: date = FRIDAY,
        cycle: UUID | None = None,
        price: Decimal = TEN,
        **prices: Decimal,
    ) -> ExecuteDecisions:
        """Legs are shares: positive to buy, negative to sell; the budget is 10,000.

        `price` in the account's currency is what was decided at, `prices` by ticker where it
        differs.
        """
        cycle = cycle or uuid4()
        envelope = self._envelope(as_of, cycle, "execute")
        at = {ticker: prices.get(ticker, price).quantize(PRICE_STEP) for ticker in legs}
        decisions = tuple(
            decision(ticker, n, Money(amount=at[ticker], currency=self.currency))
            for ticker, n in sorted(legs.items())
        )
        validation = DecisionValidation(
            cycle_id=cycle,
            op_id=uuid4(),
            as_of=as_of,
            passed=bool(decisions),
            decisions=decisions,
            proposal_hash=proposal_hash(decisions),
            proposals=tuple(
                StockPick(
                    ticker=each.asset,
                    action=Side(each.action.value),
                    allocation_pct=each.allocation_pct,
                    confidence=each.confidence,
                    reasons=(settled(each.asset),),
                    reasoning=each.reasoning,
                )
                for each in decisions
            ),
            evidence=tuple(
                Evidence(
                    ticker=ticker,
                    sector=f"of {ticker}",
                    risk_score=1.0,
                    measured_risk=1.0,
                    price=at[ticker],
                )
                for ticker in sorted(legs)
            ),
            limits={},
            budget=Money(amount=D(10_000), currency=self.currency),
        )
        return ExecuteDecisions.model_validate({**envelope, "decision_validation": validation})

    def _envelope(self, as_of: date, cycle: UUID, step: str) -> dict[str, object]:
        return {
            "cycle_id": cycle,
            "op_id": ids.operation_id(cycle, "rules", step, step, 1),
            "as_of": as_of,
            "now": datetime(2026, 11, 22, 1, tzinfo=UTC),
            "pipeline": Pipeline(name="rules", account=self.account),
            "state": "executing",
            "step": step,
            "workflow_version": 1,
            "seed": 0,
        }


def decision(ticker: str, shares: Decimal | int, price: Money) -> PortfolioDecision:
    asked = (shares * price.amount / 100).quantize(D("0.0001"), ROUND_CEILING)
    return PortfolioDecision(
        action=DecisionAction.BUY if shares > 0 else DecisionAction.SELL,
        asset=ticker,
        quantity=D(abs(shares)),
        price=price,
        allocation_pct=min(D(100), asked) if shares > 0 else D(100),
        confidence=0.5,
        reasoning="because",
        strategy_used="rules",
    )


@pytest.fixture
def desk(pool: Pool, orchestrator: Pool) -> Desk:
    prices = Prices()
    broker = PaperBroker(fee_bps=D(10), slippage_bps=D(0))
    reads = ExecutionReads(prices, prices, prices)  # type: ignore[arg-type]
    trading = Trading(pool, reads, broker, starting_cash=D(10_000), limits_of=lambda _: WIDE)
    return Desk(trading, prices, orchestrator)


@pytest.fixture
def host() -> Iterator[PaperHost]:
    """A stand-in of the broker that fills orders whole, with an account of its own number."""
    with paper_host(PaperHost(number=f"PA{next(NUMBERS):09}T", partly=0)) as running:
        yield running


@pytest.fixture
async def bound(
    pool: Pool, orchestrator: Pool, host: PaperHost, desk: Desk
) -> AsyncIterator["BoundDesk"]:
    """An account that is bound to the one at the broker."""
    from tests.integration.execution.at_broker import bound_desk  # noqa: PLC0415 - builds on this

    async with bound_desk(pool, orchestrator, host, desk) as made:
        await made.bind()
        yield made


@pytest.fixture
async def orchestrator(servers: Servers) -> AsyncIterator[Pool]:
    """Connections of whoever has commands on record."""
    async with open_pool(servers.postgres_dsn(ORCHESTRATOR_ROLE)) as opened:
        yield opened


@pytest.fixture
async def postgres(servers: Servers) -> AsyncIterator[Pool]:
    """Connections that may read everything."""
    async with open_pool(servers.postgres_dsn(CONSOLE_ROLE)) as opened:
        yield opened


@pytest.fixture
async def owner(servers: Servers) -> AsyncIterator[Pool]:
    """Connections as the tables' owner."""
    async with open_pool(servers.postgres_dsn(OWNER_ROLE)) as opened:
        yield opened
