"""Queries about accounts, and their answers. Served by the console, read-only."""

from datetime import date
from decimal import Decimal

from pydantic import Field

from contracts.account import Fill, Portfolio
from contracts.message import PAGE_MAX, Message
from contracts.types import (
    Name,
    Value,
)


class AccountQuery(Message):
    """One account as its books stand, with its newest fills."""

    account: Name
    fills: int = Field(default=20, ge=0, le=PAGE_MAX)


class AccountView(Message):
    """An account; `found` is False where no such account was ever opened.

    Realised gains (before fees), dividends and fees are since the opening; a loss is negative.
    Unrealised gains and exposure are at the portfolio's prices. All in the account's currency.
    `paid_in` is the starting cash with what the owner has brought in since (holdings at their cost)
    less what was taken out; equity less that is the P&L. `return_pct` is time-weighted.
    """

    found: bool = True
    portfolio: Portfolio | None = None
    starting_cash: Decimal = Decimal(0)
    paid_in: Decimal = Decimal(0)
    return_pct: Decimal = Decimal(0)
    fills: tuple[Fill, ...] = ()
    accounts: tuple[Name, ...] = ()
    realised: Decimal = Decimal(0)
    dividends: Decimal = Decimal(0)
    fees: Decimal = Decimal(0)
    unrealised: Decimal = Decimal(0)
    exposure_gross: Decimal = Decimal(0)
    exposure_net: Decimal = Decimal(0)


class EquityQuery(Message):
    """An account's equity over its sessions, at most `points` of them, evenly picked."""

    account: Name
    points: int = Field(default=60, ge=2, le=PAGE_MAX)


class EquityPoint(Value):
    """The account at the close of a session, in its currency; gains, what the owner has `paid_in`
    and the time-weighted return are since the opening. `drawdown_pct` is the distance from the
    highest point of that return at any session before."""

    session: date
    cash: Decimal
    equity: Decimal
    realised: Decimal
    unrealised: Decimal
    exposure_gross: Decimal
    exposure_net: Decimal
    paid_in: Decimal = Decimal(0)
    return_pct: Decimal = Decimal(0)
    drawdown_pct: Decimal = Decimal(0)


class EquityView(Message):
    """The points, oldest first: from the opening to how the account stands now. The max drawdown
    is of all sessions, also of those that have no point."""

    found: bool = True
    points: tuple[EquityPoint, ...] = ()
    max_drawdown_pct: Decimal = Decimal(0)
    max_drawdown_on: date | None = None
