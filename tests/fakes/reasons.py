"""Reasons as a model gives them, and as code has settled them."""

from typing import Any

from contracts.reasons import Reason, Speaks


def drafted(ticker: str, quantity: str = "technical_score", speaks: str = "for") -> dict[str, Any]:
    """A reason of a draft that names a fact of this ticker."""
    return {"fact": f"{ticker}.{quantity}", "speaks": speaks}


def settled(ticker: str, about: str | None = None, speaks: Speaks = Speaks.FOR) -> Reason:
    """A reason on record that names a fact of this ticker."""
    return Reason(fact=f"{ticker}.close", speaks=speaks, about=about or ticker)
