"""The `proposal` provider: the rules in everything but the trader's picks, which are a proposer's.

It says what was proposed and adds the desk's own facts: a proposer's words are no reason to trade,
and are not even read here. Whoever proposes passes the same risk rules, stops and sizing.
"""

from collections.abc import Iterator

from contracts.account import Portfolio
from contracts.proposal import ProposedPick, TradeProposal
from contracts.reasons import Speaks
from contracts.trader import BuyDraft, PassedDraft, PickDraft, PicksDraft
from libs.facts.desk import ROOM
from libs.llm.errors import ProviderFault
from libs.llm.provider import ModelReply, ModelRequest, ModelSize
from libs.llm.rules.coin import HELD, TRADER
from libs.llm.rules.provider import RulesProvider, played
from libs.llm.rules.rule_set import EvidenceIndex, RuleSet, TaskData, ToolRequest, findings_in
from libs.runtime.model_settings import PROPOSAL

CLOSE = "close"
PROPOSED = "as proposed"
"""All that is answered: what the proposer says itself is shown to people alone."""


class ProposalProvider(RulesProvider):
    """Offline and free. The same proposal on the same facts always has the same reply."""

    name = PROPOSAL

    def model_for(self, stage: str, size: ModelSize) -> str:
        """Its own name: it has no models."""
        del stage, size
        return PROPOSAL

    async def complete(self, request: ModelRequest) -> ModelReply:
        """As the rules, but for the trader's picks. Raises ProviderFault without a proposal."""
        if request.agent != TRADER:
            return await super().complete(request)
        if request.task.get(PROPOSAL) is None:
            raise ProviderFault("the provider proposal answers proposals only")
        return played(RuleSet(answer=answer, ask=ask), request)


def ask(task: TaskData) -> tuple[ToolRequest, ...]:
    """The own account, and the price of everything that is to be traded."""
    held = {one.ticker for one in Portfolio.model_validate(task["portfolio"]).positions}
    known = {*held, *(finding.ticker for finding in findings_in(task))}
    prices = (
        ToolRequest("get_stock_price", {"ticker": pick.ticker})
        for pick in _picks(task)
        if pick.ticker in known
    )
    return (ToolRequest("get_portfolio", {}), *prices)


def answer(task: TaskData, evidence: EvidenceIndex) -> PicksDraft:
    """The proposed picks that the desk has facts of; the others are left out, and it says why."""
    researched = {finding.ticker for finding in findings_in(task)}
    held = {one.ticker for one in Portfolio.model_validate(task["portfolio"]).positions}
    buys, sales, passed = [], [], []
    for pick in _picks(task):
        if pick.action == "buy" and pick.ticker in researched:
            buys.append(
                BuyDraft(
                    ticker=pick.ticker,
                    allocation_pct=pick.allocation_pct,
                    confidence=pick.confidence,
                    # What no rule leaves room for has a price all the same: its rule says why.
                    reasons=evidence.reason(pick.ticker, ROOM, speaks=Speaks.FOR)
                    or evidence.reason(pick.ticker, CLOSE, speaks=Speaks.FOR),
                )
            )
        elif pick.action == "sell" and pick.ticker in held:
            sales.append(
                PickDraft(
                    ticker=pick.ticker,
                    allocation_pct=pick.allocation_pct,
                    confidence=pick.confidence,
                    reasons=evidence.reason(pick.ticker, HELD, speaks=Speaks.FOR),
                )
            )
        else:
            why = "the desk has no finding of it" if pick.action == "buy" else "it is not held"
            passed.append(PassedDraft(ticker=pick.ticker, why=why))
    sure = [pick.confidence for pick in (*buys, *sales)]
    return PicksDraft(
        picks=tuple(buys),
        sell_recommendations=tuple(sales),
        confidence=sum(sure) / len(sure) if sure else 0.0,
        answer=PROPOSED,
        passed=tuple(passed),
    )


def _picks(task: TaskData) -> Iterator[ProposedPick]:
    yield from TradeProposal.model_validate(task[PROPOSAL]).picks
