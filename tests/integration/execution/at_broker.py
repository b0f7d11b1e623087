"""A bound account on a strict stand-in of the broker, by the stand-in's clock."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from decimal import Decimal
from uuid import UUID

from pydantic import SecretStr

from contracts.account import AccountLimits, Side
from contracts.execution import ExecuteDecisions, ExecutionResult
from contracts.risk import DecisionAction
from contracts.trader import PickPlan
from contracts.types import Money
from contracts.venue import BindAccount, Binding, BoundTo
from libs.broker.alpaca import AlpacaPaper
from libs.market.source import SourceLabel
from libs.postgres.pool import Pool
from libs.quant.risk.evaluation import proposal_hash, venue_terms
from libs.quant.sizing import limit_price
from libs.runtime.key_pair import KeyPair
from services.execution.handler import Trading
from services.execution.venue import store
from services.execution.venue.binding import Terms, bind_account
from services.execution.venue.desk import VenueDesk
from services.execution.venue.logic import VenueRow
from services.execution.venue.looks import Looker
from services.execution.venue.sender import OrderSender
from services.execution.venue.store import BoundAccount, Look
from tests.fakes.alpaca_trading import KEY_ID, SECRET, PaperHost
from tests.integration.execution.conftest import WIDE, Desk, Prices

D = Decimal
LIVE = SourceLabel("test", "prices that a test writes", synthetic=False)
FRIDAY = date(2026, 11, 27)  # the day after Thanksgiving: it closes at 18:00 UTC
MONDAY = date(2026, 11, 30)
TUESDAY = date(2026, 12, 1)


@dataclass
class BoundDesk(Desk):
    """A desk's account at the broker."""

    host: PaperHost = field(default_factory=PaperHost)
    venue_desk: VenueDesk = field(default=None)  # type: ignore[assignment]
    pool: Pool = field(default=None)

    @property
    def sender(self) -> OrderSender:
        assert self.venue_desk.sender is not None
        return self.venue_desk.sender

    @property
    def looker(self) -> Looker:
        assert self.venue_desk.looker is not None
        return self.venue_desk.looker

    async def bind(self) -> Binding:
        terms = Terms(self.venue_desk, self._latest, self._limits, lambda _: "USD")
        return await bind_account(
            "cli", BindAccount(account=self.account, number=self.host.number), terms=terms
        )

    async def _latest(self) -> date:
        return self.host.calendar.last_closed(self.host.time())

    def _limits(self, _: str) -> AccountLimits:
        return self.trading.limits_of(self.account)

    async def bound(self) -> BoundAccount:
        found = await self.venue_desk.bound(self.account)
        assert found is not None
        return found

    async def look(self) -> Look:
        look, _ = await self.looker.look(await self.bound())
        return look

    async def rounds(self, count: int = 1) -> None:
        """Rounds of the loop, each as if a minute had passed since the last look."""
        for _ in range(count):
            self.sender.looked.clear()
            await self.sender.round_of(await self.bound())

    async def row(self, order_id: UUID) -> VenueRow:
        async with self.pool.acquire() as db:
            return (await store.by_id(db, [order_id]))[str(order_id)]

    def decided(
        self, legs: Mapping[str, Decimal | int], as_of: date | None = None
    ) -> ExecuteDecisions:
        """A decision of the account's newest session, with what the broker is sent."""
        as_of = as_of or self.host.calendar.last_closed(self.host.time())
        return self.with_terms(self.command(legs, as_of))

    def planned(self, ticker: str, quantity: int) -> ExecuteDecisions:
        """A buy with a plan: its stop is 1% away, as nothing has ever moved."""
        command = self.decided({ticker: quantity})
        validation = command.decision_validation
        (pick,) = validation.proposals
        plan = pick.model_copy(update={"plan": PickPlan(review_by=date(2027, 3, 1))})
        planned = validation.model_copy(update={"proposals": (plan,)})
        return command.model_copy(update={"decision_validation": planned})

    def with_terms(self, command: ExecuteDecisions) -> ExecuteDecisions:
        bound = BoundTo(venue="alpaca-paper", account_number=self.host.number)
        limits = self.trading.limits_of(self.account)
        decisions = tuple(
            decision.model_copy(
                update={
                    "venue": venue_terms(
                        bound,
                        Side.BUY if decision.action is DecisionAction.BUY else Side.SELL,
                        limit_price(decision.price.amount, limits.price_move_pct_max),
                        "USD",
                    )
                }
            )
            for decision in command.decision_validation.decisions
        )
        validation = command.decision_validation.model_copy(
            update={
                "decisions": decisions,
                "proposal_hash": proposal_hash(decisions),
                "budget": Money(amount=D(1_000_000), currency="USD"),
            }
        )
        return command.model_copy(update={"decision_validation": validation})

    async def order(self, ticker: str, quantity: int) -> ExecutionResult:
        """Buy, or sell below zero, as of the newest session."""
        return await self.execute(self.decided({ticker: quantity}))


@asynccontextmanager
async def bound_desk(
    pool: Pool, orchestrator: Pool, host: PaperHost, desk: Desk, cooling_off: int = 10
) -> AsyncIterator[BoundDesk]:
    """The desk's account at the host; not bound yet. It does not buy for `cooling_off` sessions
    what it has sold."""
    prices: Prices = desk.prices
    prices.label = LIVE
    prices.last = date(2027, 12, 31)
    limits = WIDE.model_copy(update={"cooling_off_sessions": cooling_off})
    venue = AlpacaPaper(KeyPair(SecretStr(KEY_ID), SecretStr(SECRET)), host.url, answer_s_max=1.0)
    reads = desk.trading.reads
    looker = Looker(pool, venue, reads, host.time, settle_s=0.05)
    sender = OrderSender(pool, venue, looker, host.time, lease_s=0.2, tick_s=0.05, idle_s=0.1)
    side = VenueDesk(
        pool, reads, host.time, is_live=True, venue=venue, looker=looker, sender=sender, wait_s=1.0
    )
    trading: Trading = replace(desk.trading, venue_desk=side, limits_of=lambda _: limits)
    made = BoundDesk(trading, prices, orchestrator, host=host, venue_desk=side, pool=pool)
    try:
        yield made
    finally:
        await venue.close()


def at(text: str) -> datetime:
    """A moment in UTC, as `2026-11-30 14:31`."""
    return datetime.fromisoformat(f"{text}+00:00")


async def running(desk: BoundDesk, seconds: float) -> None:
    """Let the loop run for so long."""
    task = asyncio.create_task(desk.sender.run())
    await asyncio.sleep(seconds)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
