"""Two buys that were proposed, and the hash by which a person approves them."""

from decimal import Decimal
from typing import Any

from contracts.risk import DecisionAction, PortfolioDecision
from contracts.types import Money
from libs.quant.risk.evaluation import proposal_hash


def decision(asset: str, quantity: int, **fields: Any) -> PortfolioDecision:
    """A buy at 10.00, with other fields as given."""
    body = {
        "action": DecisionAction.BUY,
        "asset": asset,
        "quantity": Decimal(quantity),
        "price": Money(amount=Decimal(10)),
        "allocation_pct": Decimal(10),
        "confidence": 0.5,
        "reasoning": "because",
        "strategy_used": "rules",
    }
    return PortfolioDecision.model_validate({**body, **fields})


DECISIONS = (decision("AAPL", 40), decision("IBM", 20))
HASH = proposal_hash(DECISIONS)
