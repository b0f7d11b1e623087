"""Positions, findings and results that a test can reckon in its head."""

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from contracts.account import Position
from contracts.types import Money
from libs.quant.exits.rules import ExitFacts
from libs.quant.exits.terms import ExitTerms
from services.exit_signal.files import ResultFiles
from services.exit_signal.logic import SellablePart, assess
from services.exit_signal.report import Json, result_of

AS_OF = date(2012, 6, 29)
NAMED = {"ticker": "AAPL", "account": "main", "as_of": "2012-06-29"}
RISING = (0.01, 0.02, 0.03, 0.04)
FALLING = (0.03, 0.02, 0.01, -0.01)
"""The last month is 3 percentage points below the mean of those before it, 3 spreads."""
CRASHING = (0.03, 0.02, 0.01, -0.08)
GOOD, BAD = {"SPY": (0.01, 0.01, 0.01, 0.01)}, {"SPY": (0.0, -0.01, -0.01, -0.01)}


def position(shares: str = "53", price: str = "100", cost: str = "80") -> Position:
    return Position(
        ticker="AAPL",
        quantity=Decimal(shares),
        average_cost=Money(amount=Decimal(cost)),
        price=Money(amount=Decimal(price)),
        opened_on=date(2012, 1, 3),
    )


def facts(months: Any = RISING, basket: Any = GOOD, **other: Any) -> ExitFacts:
    return ExitFacts(
        **{
            "months": months,
            "month": "2012-06",
            "basket": basket,
            "price": 100.0,
            "average_cost": 80.0,
            **other,
        }
    )


def result(
    months: Any = RISING, basket: Any = GOOD, shares: str = "53", seen: Any = None, **terms: Any
) -> Json:
    """A whole check, from facts (and what else is `seen`) to the full result."""
    held = SellablePart(position(shares))
    found = assess(facts(months, basket, **(seen or {})), ExitTerms.model_validate(terms), held)
    return result_of(NAMED, held, (), found)


@pytest.fixture
def files(tmp_path: Path) -> ResultFiles:
    """Where results are saved; its clock stands still."""
    return ResultFiles(tmp_path / "exit_signals", lambda: datetime(2012, 6, 29, 20, tzinfo=UTC))
