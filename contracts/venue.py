"""A broker beyond the desk: what an account is bound to, and what becomes of the orders sent there.

An account without one is filled by the simulated paper broker.
"""

import operator
from datetime import date, datetime
from decimal import Decimal
from enum import StrEnum
from typing import Annotated, Literal
from uuid import UUID

from pydantic import Field

from contracts.message import Limit, Message, Request
from contracts.types import (
    Money,
    Name,
    OfAccount,
    Quantity,
    ShortText,
    Text,
    Ticker,
    Value,
    is_none,
)

DIFFERENCES_MAX = 200
LIFE_MAX = 200
"""Changes of one order that are shown."""
DESK_STOPS = "stops are the desk's: reached at a close, sold at the next open"
"""Of an account that is bound to a broker, wherever a stop is shown."""

AccountNumber = Annotated[str, Field(pattern=r"^[A-Za-z0-9-]{1,40}$")]
Sha256Hex = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class VenueOrderType(StrEnum):
    """How a broker is to fill an order: at any price, or at `limit_price` or better."""

    LIMIT = "limit"
    MARKET = "market"


class VenueTerms(Value):
    """What a broker receives besides ticker, side and quantity; part of the approval.

    A buy is a limit order, a sale a market order; both are good for the next session only.
    """

    venue: Name
    account_number: AccountNumber
    type: VenueOrderType
    time_in_force: Literal["day"] = "day"
    limit_price: Money | None = Field(default=None, exclude_if=is_none)


class BoundTo(Value):
    """The broker and the account number there that an account is bound to for ever."""

    venue: Name
    account_number: AccountNumber


class VenueState(StrEnum):
    """The life of an order that is for a broker. It only moves down this list.

    `intent`: committed, not sent yet. `sent`: it may be at the broker. `known`: the broker has
    it. `over`: it ended there, or was refused. `never`: it is certain that it never got there.
    """

    INTENT = "intent"
    SENT = "sent"
    KNOWN = "known"
    OVER = "over"
    NEVER = "never"


class LookVerdict(StrEnum):
    """The outcome of a look at the broker's books. `unknown`: there was no complete answer."""

    AGREES = "agrees"
    DIFFERS = "differs"
    UNKNOWN = "unknown"


class DifferenceKind(StrEnum):
    """What differs. `split` and `dividend` do not block the account: a split blocks its ticker."""

    CASH = "cash"
    SHARES = "shares"
    ORDER = "order"
    FOREIGN_ORDER = "foreign_order"
    ACCOUNT = "account"
    SPLIT = "split"
    DIVIDEND = "dividend"


NOT_BLOCKING = frozenset({DifferenceKind.SPLIT, DifferenceKind.DIVIDEND})


class Difference(Value):
    """One difference between both books: `desk` and `broker` as each has it, in words or numbers.

    `about` is a ticker, an order's id, or empty for the account.
    """

    kind: DifferenceKind
    about: ShortText = ""
    desk: ShortText
    broker: ShortText


class BindAccount(Request):
    """Open a new account that is bound to the broker's account of the trading key.

    Without `number` it is shown and nothing changes; with the broker's account number it is bound.
    """

    account: Name
    number: AccountNumber | None = None


class Binding(Message):
    """The broker's account that would be bound, or (`bound`) is. It is not while there are
    `findings`. `to_set` is what the account may do there and binding ends."""

    account: Name
    venue: Name
    number: AccountNumber
    status: ShortText
    cash: Money
    opened_on: date
    findings: tuple[Text, ...] = ()
    to_set: tuple[ShortText, ...] = ()
    bound: bool = False
    changed: bool = False


class ReconcileAccount(Request):
    """Compare both books now. With `confirmed`, the hash of what was shown, the account's books
    take over the broker's shares and cash, for this reason.
    """

    account: Name
    reason: ShortText = ""
    confirmed: Sha256Hex | None = None


class LookView(Value):
    """One look at the broker's books. `note` says why there was no answer, where there was none."""

    at: datetime
    verdict: LookVerdict
    differences: tuple[Difference, ...] = Field(default=(), max_length=DIFFERENCES_MAX)
    note: Text = ""


class Reconciled(Message):
    """Both books as compared. `hash` identifies the differences; None if none can be posted.
    `posted`: they were posted."""

    account: Name
    look: LookView
    hash: Sha256Hex | None = None
    posted: bool = False


class LookEvent(Value):
    """The books of a bound account started to differ from the broker's, agree again, or were
    reconciled `by` a person. The event's `cycle_id` identifies the comparison, not a cycle."""

    account: Name
    verdict: LookVerdict
    differences: tuple[Difference, ...] = Field(default=(), max_length=DIFFERENCES_MAX)
    reason: ShortText = ""
    by: Name


class OrderAlarm(Value):
    """An order at a broker that a person should look at: unresolved for a minute, or filled after
    its end. The event's `cycle_id` is that of the order."""

    account: Name
    order_id: UUID
    asset: Ticker
    state: VenueState
    what: ShortText


class VenueOrdersQuery(Message):
    """Ask for the orders that are or were for a broker, the newest first: all of them, those that
    are not over yet, or one."""

    account: OfAccount = None
    order_id: UUID | None = None
    open_only: bool = Field(default=False, description="Only open orders.")
    limit: Limit = 50


class OrderChange(Value):
    """One step of an order's life, with the broker's status and words as they were then."""

    at: datetime
    state: VenueState
    status: ShortText = ""
    filled: Quantity = Decimal(0)
    words: Text = ""


class VenueOrderView(Value):
    """An order that is or was for a broker. `order_id` is its client order id there. `cancel` is
    the reason of a cancel request, or empty. `life` is only there for a single order."""

    order_id: UUID
    account: Name
    asset: Ticker
    side: Name
    quantity: Quantity
    terms: VenueTerms
    session: date
    send_by: datetime
    state: VenueState
    status: ShortText = ""
    filled: Quantity = Decimal(0)
    words: Text = ""
    cancel: ShortText = ""
    broker_id: ShortText = ""
    tries: int = Field(default=0, ge=0)
    life: tuple[OrderChange, ...] = Field(default=(), max_length=LIFE_MAX, exclude_if=operator.not_)


class VenueOrders(Message):
    """The orders found; `more` where the limit cut the list."""

    orders: tuple[VenueOrderView, ...] = ()
    more: bool = False


class CancelOrder(Request):
    """Ask that an order at the broker be cancelled."""

    order_id: UUID
    reason: ShortText = ""


class CancelAnswer(Message):
    """The state of a cancel. `confirmed`: the order is closed or was never sent; else it is
    pending, and may still fill."""

    order: VenueOrderView
    confirmed: bool


class VenueQuery(Message):
    """Ask for the broker's state: the key, the bound account and its last comparison."""


class VenueFinding(Value):
    """One line about the broker's side; `ok` None: nothing is wrong, it is only not there."""

    name: ShortText
    ok: bool | None
    said: Text
    todo: Text = ""


class VenueStanding(Message):
    """The findings, in the order that they are read. Empty where no trading key is set."""

    findings: tuple[VenueFinding, ...] = Field(default=(), max_length=40)
