"""The words for the moment that an account's figures are of, the same on every surface. Pure.

The moment is the newest close at which the account could be valued (libs/quant/standing.py).
"""

from datetime import date

from contracts.account_query import NotCounted
from libs.facts import amounts
from libs.quant.ticks import priced

NO_CLOSE = "no close of this account could be valued yet"


def as_of(closed_on: date | None, currency: str = "") -> str:
    """`as of the close of Wed 2012-10-31, amounts in USD`."""
    if closed_on is None:
        return NO_CLOSE
    text = f"as of the close of {amounts.session(closed_on)}"
    return f"{text}, amounts in {currency}" if currency else text


def not_counted(after: NotCounted, currency: str) -> str:
    """`not counted yet, as it came after this close: 2 fills, 5,000.00 USD paid in`; empty where
    nothing did."""
    moved = "paid in" if after.paid_in > 0 else "taken out"
    parts = (
        fills_after(after.fills),
        f"{amounts.money(priced(abs(after.paid_in), currency))} {moved}" if after.paid_in else "",
    )
    listed = ", ".join(filter(None, parts))
    return f"not counted yet, as it came after this close: {listed}" if listed else ""


def fills_after(fills: int) -> str:
    """`2 fills`; empty where there are none."""
    return amounts.count(fills, "fill") if fills else ""
