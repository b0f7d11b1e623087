"""A made-up market whose prices can be reckoned in one's head, and decisions made in it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from contracts.account import Side
from contracts.assessment import Memorize
from contracts.cycle import CycleStatus
from contracts.memory import AgentMemory, AwaitedDecision, PastDecision, PastPick, PickFate
from contracts.types import Money
from libs.llm.rules.provider import RulesProvider
from libs.market.calendar import exchange_calendar
from libs.market.replay.market import ReplayMarket, ReplayStore
from tests.unit.services.conftest import Desk

DAY = date(2012, 6, 1)
SESSIONS = exchange_calendar().sessions(DAY, date(2012, 7, 31))
"""The decision's session first: `SESSIONS[5]` is the fifth after it."""


@dataclass
class Market:
    """Writes prices by session; `desk` opens a desk on them."""

    path: Path

    def share(
        self,
        ticker: str,
        closes: Mapping[int, float],
        *,
        opens: Mapping[int, float] | None = None,
        split: tuple[int, float] = (0, 1),
        dividend: tuple[int, float] = (0, 0),
        last: int = len(SESSIONS) - 1,
    ) -> None:
        """A ticker from DAY to the session numbered `last`; a close holds until the next one."""
        rows, close = [], closes[0]
        for number, session in enumerate(SESSIONS[: last + 1]):
            close = closes.get(number, close)
            opened = (opens or {}).get(number, close)
            high, low = max(close, opened), min(close, opened)
            paid = dividend[1] if number and number == dividend[0] else 0
            factor = split[1] if number and number == split[0] else 1
            rows.append(f"{session},{opened},{high},{low},{close},1000,{paid},{factor}")
        head = "date,open,high,low,close,volume,dividend,split_factor"
        (self.path / f"{ticker}.csv").write_text("\n".join([head, *rows]) + "\n")

    def desk(self, **changes: Any) -> Desk:
        """A desk on what was written."""
        market = ReplayMarket(ReplayStore(self.path))
        return Desk(market=market, providers={"rules": RulesProvider()}, **changes)


@pytest.fixture
def market(tmp_path: Path) -> Market:
    return Market(tmp_path)


def pick(ticker: str, **fields: Any) -> PastPick:
    """A pick that was filled nowhere, unless the fields say so."""
    known = {"action": Side.BUY, "allocation_pct": Decimal(20), "fate": PickFate.NOT_ORDERED}
    return PastPick.model_validate({"ticker": ticker, **known, **fields})


def filled(ticker: str, price: str, session: int = 1) -> PastPick:
    """A pick that was bought at a price."""
    bought = {"fill_price": Money(amount=Decimal(price)), "filled_on": SESSIONS[session]}
    return pick(ticker, fate=PickFate.FILLED, **bought)


@dataclass
class Past:
    """A decision of DAY that a later cycle looks at again."""

    picks: Sequence[PastPick] = ()
    universe: Sequence[str] = ()
    told: Sequence[int] = ()
    number: int = 1
    as_of: date = DAY
    pipeline: str = "rules"
    provider: str | None = None
    extra: dict[str, Any] = field(default_factory=dict)

    def awaited(self) -> AwaitedDecision:
        decision = PastDecision(
            cycle_id=UUID(int=self.number),
            pipeline=self.pipeline,
            as_of=self.as_of,
            picks=tuple(self.picks),
            universe=tuple(self.universe),
            provider=self.provider,
        )
        return AwaitedDecision(decision=decision, told=tuple(self.told))


async def remembered(desk: Desk, after: int, *past: Past, **parts: Any) -> AgentMemory:
    """The memory of a cycle that many sessions after DAY."""
    desk.as_of = SESSIONS[after]
    awaited = [each.awaited() for each in past]
    memory = await desk.do(Memorize, outcome=CycleStatus.COMPLETED, past_decisions=awaited, **parts)
    assert isinstance(memory, AgentMemory)
    return memory
