"""The `coin` provider: the rules in everything but the trader's verdict, which is drawn by lot.

It is the control that a study holds other arms against. It buys as many tickers as the rules would
have bought, for the same shares of the budget with the same confidence, and sells as many: only
which, the lot decides. So it passes the same risk rules, stops, exits and sizing.
"""

from collections.abc import Collection, Iterator, Sequence
from decimal import Decimal
from random import Random
from typing import TypeVar

from contracts.not_bought import Cause, NotBought
from contracts.reasons import Speaks
from contracts.trader import BuyDraft, PickDraft, PicksDraft
from libs.facts.desk import BEING_SOLD, ROOM
from libs.llm.provider import ModelReply, ModelRequest
from libs.llm.rules import trader
from libs.llm.rules.provider import RulesProvider, played
from libs.llm.rules.rule_set import (
    EvidenceIndex,
    RuleSet,
    TaskData,
    ToolRequest,
    account_and_prices,
    findings_in,
)

COIN = "coin"
"""The provider's name, which stands wherever a pipeline's is shown."""
BY_LOT = "drawn by lot"
"""Its reason, and all that it has to say."""
LOT = "the lot"
"""What decides against a ticker, where a rule has its name."""
NOT_DRAWN = "not drawn"
TRADER = "trader"
HELD = "held"
T = TypeVar("T")


class CoinProvider(RulesProvider):
    """Offline and free. The same request always has the same reply; another seed has another."""

    name = COIN

    async def complete(self, request: ModelRequest) -> ModelReply:
        """As the rules, but for the trader's picks."""
        if request.agent != TRADER:
            return await super().complete(request)

        def answer(task: TaskData, evidence: EvidenceIndex) -> PicksDraft:
            return drawn(task, evidence, request.seed)

        return played(RuleSet(answer=answer, ask=ask), request)


def ask(task: TaskData) -> tuple[ToolRequest, ...]:
    """The own account, and the price of everything that was researched: each may be drawn."""
    return account_and_prices(item.ticker for item in findings_in(task))


def drawn(task: TaskData, evidence: EvidenceIndex, seed: int) -> PicksDraft:
    """The rules' picks with other tickers. A draw goes by the place of a ticker among the findings,
    never by its name."""
    ruled = trader.answer(task, evidence)
    lot = Random(seed)  # noqa: S311 - a draw, no secret
    names = [finding.ticker for finding in findings_in(task)]
    to_buy = [name for name in names if _may_be_bought(name, evidence)]
    to_sell = [name for name in names if _may_be_sold(name, evidence)]
    buys = zip(_shuffled(lot, ruled.picks), _shuffled(lot, to_buy), strict=False)
    sales = zip(_shuffled(lot, ruled.sell_recommendations), _shuffled(lot, to_sell), strict=False)
    picks = tuple(_buy(pick, name, evidence) for pick, name in buys)
    return PicksDraft(
        picks=picks,
        sell_recommendations=tuple(_sale(pick, name, evidence) for pick, name in sales),
        confidence=ruled.confidence,
        answer=BY_LOT,
    )


def passed(task: TaskData, evidence: EvidenceIndex, bought: Collection[str]) -> Iterator[NotBought]:
    """Of each finding that could have been bought and was not, how many were drawn of how many."""
    names = [finding.ticker for finding in findings_in(task)]
    to_buy = [name for name in names if _may_be_bought(name, evidence)]
    limit = f"one of {len(bought)} drawn of {len(to_buy)}"
    for name in to_buy:
        if name not in bought:
            yield NotBought(
                ticker=name,
                cause=Cause.THRESHOLD,
                name=LOT,
                value=NOT_DRAWN if bought else "none drawn, as the rules would buy none",
                limit=limit if bought else "a draw",
            )


def _shuffled(lot: Random, items: Sequence[T]) -> list[T]:
    return lot.sample(items, len(items))


def _may_be_bought(name: str, evidence: EvidenceIndex) -> bool:
    return trader.may_be_bought(name, evidence) and evidence.has(name, ROOM)


def _may_be_sold(name: str, evidence: EvidenceIndex) -> bool:
    return (
        evidence.has(name, HELD)
        and trader.is_verified(name, evidence)
        and not evidence.has(name, BEING_SOLD)
    )


def _buy(pick: BuyDraft, name: str, evidence: EvidenceIndex) -> BuyDraft:
    """The rules' buy of another ticker, as far as the rules of risk have room for that one."""
    room = Decimal(str(evidence.number(name, ROOM)))
    return BuyDraft(
        ticker=name,
        allocation_pct=min(pick.allocation_pct, room),
        confidence=pick.confidence,
        reasons=evidence.reason(name, ROOM, speaks=Speaks.FOR, why=BY_LOT),
        horizon_sessions=pick.horizon_sessions,
        stop_atr=pick.stop_atr,
    )


def _sale(pick: PickDraft, name: str, evidence: EvidenceIndex) -> PickDraft:
    reasons = evidence.reason(name, HELD, speaks=Speaks.FOR, why=BY_LOT)
    return pick.model_copy(update={"ticker": name, "reasons": reasons})
