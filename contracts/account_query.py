"""Queries about accounts, and their answers. Served by the console, read-only."""

from datetime import date
from decimal import Decimal

from pydantic import Field

from contracts.account import Fill, Portfolio
from contracts.message import MAIN_ACCOUNT, PAGE_MAX, Message
from contracts.types import Foreign, Name, Quantity, Ticker, Value, is_none


class AccountQuery(Message):
    """One account as its books stand, with its newest fills."""

    account: Name = MAIN_ACCOUNT
    fills: int = Field(default=20, ge=0, le=PAGE_MAX)


class NotCounted(Value):
    """Entries of sessions after the close that figures are of: the number of fills, and what the
    owner paid in, negative where more was taken out."""

    fills: int = 0
    paid_in: Decimal = Decimal(0)


class HeldAtClose(Value):
    """A position at a close; price, value and gain (its unrealised P&L) are None where no exchange
    rate was known. `priced_on` is the session of the price where the close itself had none. Amounts
    in the account's currency; `foreign` is the price where it trades."""

    ticker: Ticker
    quantity: Quantity
    cost: Decimal
    price: Decimal | None = None
    value: Decimal | None = None
    gain: Decimal | None = None
    priced_on: date | None = Field(default=None, exclude_if=is_none)
    foreign: Foreign | None = Field(default=None, exclude_if=is_none)


class AccountView(Message):
    """An account; `found` is False if it was never opened.

    Figures are as of `closed_on`, the newest session at whose close the account could be valued, as
    in every other answer; None: it never could, and no figure is known. `held` is what it held
    then, `not_counted` what came after. `portfolio` are its books now, with later fills at their
    price.

    Realised gains (before fees), dividends and fees are since the opening; a loss is negative. All
    in the account's currency. `paid_in` is the starting cash with what the owner has brought in
    since (holdings at their cost) less what was taken out; `equity` less that is the P&L.
    `return_pct` is time-weighted.
    """

    found: bool = True
    portfolio: Portfolio | None = None
    closed_on: date | None = None
    not_counted: NotCounted = NotCounted()
    starting_cash: Decimal = Decimal(0)
    cash: Decimal = Decimal(0)
    equity: Decimal = Decimal(0)
    paid_in: Decimal = Decimal(0)
    return_pct: Decimal = Decimal(0)
    held: tuple[HeldAtClose, ...] = ()
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

    account: Name = MAIN_ACCOUNT
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
    """The points, oldest first: from the opening to the newest close. The max drawdown is of all
    sessions, also of those that have no point."""

    found: bool = True
    points: tuple[EquityPoint, ...] = ()
    max_drawdown_pct: Decimal = Decimal(0)
    max_drawdown_on: date | None = None
