"""The daily report: what an account's session brought, and what needs a person."""

from datetime import date, datetime
from decimal import Decimal
from typing import Literal

from pydantic import Field

from contracts.account import OrderStatus, OrderType, Portfolio, Side
from contracts.account_query import HeldAtClose, NotCounted
from contracts.cycle import CycleStatus
from contracts.message import MAIN_ACCOUNT, Command, Contract, Message
from contracts.not_bought import NotBought
from contracts.risk import DecisionAction
from contracts.stages import Substitute
from contracts.types import (
    Currency,
    CycleId,
    Day,
    Name,
    Quantity,
    ShortText,
    Text,
    Ticker,
    Usage,
    Value,
    is_none,
)
from contracts.venue import BoundTo

LINES_MAX = 200
"""Of each sort in one report: fills, orders, positions, cycles."""
MARKDOWN_CHARS_MAX = 200_000


class Gains(Value):
    """Parts of a gain, in the account's currency: in all it is their sum, less the fees."""

    realised: Decimal
    unrealised: Decimal
    dividends: Decimal
    fees: Decimal

    @property
    def whole(self) -> Decimal:
        """The gain in all."""
        return self.realised + self.unrealised + self.dividends - self.fees


class Worth(Value):
    """The account at the session's close. `earned` is since `previous`, the session before, or
    since the opening where there is none; `ever` is since the opening. `paid_in` is what came in
    since `previous`, less what was taken out, which is no gain."""

    cash: Decimal
    positions: Decimal
    equity: Decimal
    previous: date | None = None
    paid_in: Decimal = Decimal(0)
    earned: Gains
    ever: Gains


class StopLine(Value):
    """A stop order that was open at the close, decided at `as_of`; its price is in the currency
    that the asset trades in."""

    ticker: Ticker
    quantity: Quantity
    stop_price: Decimal
    currency: Currency
    as_of: date


class FillLine(Value):
    """A fill on the session; price and fee in the account's currency."""

    asset: Ticker
    side: Side
    type: OrderType
    quantity: Quantity
    price: Decimal
    fee: Decimal


class OrderLine(Value):
    """An order of the session's cycles in its current state. A stop's price is in `currency`, in
    which the asset trades."""

    asset: Ticker
    side: Side
    type: OrderType
    quantity: Quantity
    status: OrderStatus
    reason: Text = ""
    stop_price: Decimal | None = None
    currency: Currency | None = None


class DecisionLine(Value):
    """A decision as the rules left it."""

    action: DecisionAction
    asset: Ticker
    quantity: Quantity


class CycleLine(Value):
    """One cycle's pipeline that traded the account, by what it decided and used. `not_bought` are
    its candidates that it did not buy, with their causes."""

    cycle_id: CycleId
    kind: Name
    pipeline: Name
    requester: ShortText
    status: CycleStatus
    reason: Text = ""
    decisions: tuple[DecisionLine, ...] = ()
    vetoed: tuple[Ticker, ...] = ()
    substitutes: tuple[Substitute, ...] = ()
    not_bought: tuple[NotBought, ...] = ()
    usage: Usage = Usage()


class Attention(Value):
    """Something that needs a person: what it is, and what to do about it."""

    what: Literal[
        "approval",
        "failed",
        "expired",
        "not_checked",
        "halt",
        "no_price",
        "no_close",
        "slot",
        "dead_letters",
        "left_out",
    ]
    text: Text
    todo: ShortText


class DayReport(Value):
    """One session of one account. `worth` is None where its close is not on record, or could not be
    valued. `attention` is as of `made_at`, the rest of the session; `not_counted` came after it.
    `venue` is the broker that fills the account's orders; None: the simulated one."""

    account: Name
    session: date
    currency: Currency
    made_at: datetime
    worth: Worth | None = None
    not_counted: NotCounted = NotCounted()
    attention: tuple[Attention, ...] = ()
    cycles: tuple[CycleLine, ...] = Field(default=(), max_length=LINES_MAX)
    fills: tuple[FillLine, ...] = Field(default=(), max_length=LINES_MAX)
    orders: tuple[OrderLine, ...] = Field(default=(), max_length=LINES_MAX)
    held: tuple[HeldAtClose, ...] = Field(default=(), max_length=LINES_MAX)
    stops: tuple[StopLine, ...] = Field(default=(), max_length=LINES_MAX)
    usage: Usage = Usage()
    venue: BoundTo | None = Field(default=None, exclude_if=is_none)


class ReportQuery(Message):
    """Ask for the report of one session of one account; None means the account's newest."""

    account: Name = MAIN_ACCOUNT
    session: Day | None = None


class ReportView(Message):
    """The report, and the same as Markdown; `found` is False where no such account was opened."""

    found: bool = True
    message: Text = ""
    report: DayReport | None = None
    markdown: str = Field(default="", max_length=MARKDOWN_CHARS_MAX)


class WriteReport(Command):
    """Write the report of the account's session as a file, once its books are there."""

    portfolio: Portfolio


class DailyReport(Contract):
    """The report as it was written, and where: an absolute path on the reporter's machine."""

    report: DayReport
    file_path: ShortText
