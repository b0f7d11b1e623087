"""Capital of an account's owner: holdings, deposits, withdrawals.

Each is asked twice: without `confirmed` it is shown and nothing changes; with the hash of what was
shown it is posted. Only the command line of the desk's owner may ask.
"""

from datetime import date
from decimal import Decimal
from typing import Annotated, Literal

from pydantic import Field

from contracts.message import Message, Request
from contracts.types import Currency, Money, Name, Quantity, ShortText, Ticker, Value

HOLDINGS_MAX = 200
"""Positions that one file may open an account with."""
FINDINGS_MAX = 400
SHARES_MAX = 100_000_000
PRICE_MAX = 10_000_000
CASH_MAX = 1_000_000_000_000
"""Beyond them a number is taken for a slip."""

Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Cents = Annotated[Decimal, Field(max_digits=15, decimal_places=2)]


class HeldLine(Value):
    """One position as stated by its owner, at `line` of a file.

    `cost` is that of one of the shares held now, in `currency`: the one that the ticker trades in,
    where it is left out; 0 for what was given. `opened_on` is the session since which some were
    held without a break.
    """

    line: int = Field(ge=1)
    ticker: Ticker
    quantity: Quantity = Field(gt=0, le=SHARES_MAX)
    cost: Decimal = Field(ge=0, le=PRICE_MAX, max_digits=14, decimal_places=6)
    opened_on: date
    currency: Currency | None = None


class ImportHoldings(Request):
    """Open a new account with these holdings and this cash, in the account's currency.

    `as_of` None is the market source's newest session; the account's clock begins there.
    """

    account: Name
    holdings: tuple[HeldLine, ...] = Field(min_length=1, max_length=HOLDINGS_MAX)
    cash: Cents = Field(ge=0, le=CASH_MAX)
    as_of: date | None = None
    confirmed: Sha256 | None = None


class ImportFinding(Value):
    """Why it cannot be opened as stated: what is missing or wrong, and what to do.

    `line` is that of the file; None for the whole of it.
    """

    line: int | None = None
    field: ShortText = ""
    message: ShortText


class OpeningPosition(Value):
    """A position that the account would open with: `cost` of one share and `price` at as_of's close
    as traded, `cost_value` and `value` of all in the account's currency."""

    ticker: Ticker
    quantity: Quantity
    cost: Money
    opened_on: date
    price: Money
    cost_value: Decimal
    value: Decimal


class HoldingsImport(Message):
    """The account that would be opened, or (`opened`) was opened. Nothing is opened while there are
    findings.

    `changed` is False if the account existed before: repeating the request is safe. `equity` is
    cash and positions at as_of's close.
    """

    account: Name
    as_of: date
    hash: Sha256
    opened: bool = False
    changed: bool = False
    cash: Money
    equity: Money
    positions: tuple[OpeningPosition, ...] = ()
    findings: tuple[ImportFinding, ...] = Field(default=(), max_length=FINDINGS_MAX)


class MoveCash(Request):
    """Pay cash into an account or take some out, in the account's currency.

    It counts from the session after the account's own on. No more is taken out than is free: what
    working orders hold back stays.
    """

    account: Name
    kind: Literal["deposit", "withdrawal"]
    amount: Cents = Field(gt=0, le=CASH_MAX)
    confirmed: Sha256 | None = None


class CashMoved(Message):
    """The amount that would be posted, or (`posted`) that was. `changed` is False where it stood
    before.

    `free_before` and `free_after` are the free cash around it.
    """

    account: Name
    kind: Literal["deposit", "withdrawal"]
    amount: Money
    session: date
    hash: Sha256
    posted: bool = False
    changed: bool = False
    free_before: Money
    free_after: Money


class HoldingsEvent(Value):
    """An account was opened with holdings. The event's `cycle_id` identifies the import, not a
    cycle."""

    account: Name
    as_of: date
    cash: Money
    equity: Money
    positions: tuple[OpeningPosition, ...] = ()
    hash: Sha256
    by: Name


class CashEvent(Value):
    """Cash was deposited or withdrawn. The event's `cycle_id` identifies the booking, not a
    cycle."""

    account: Name
    amount: Money
    session: date
    by: Name
