"""Exit signals: whether a position should be sold, how much of it, and why.

A check answers a question about one position. Its answer is plain JSON in the shape that was asked
for, because it is read by people and models; docs/exit-signals.md describes the fields.
"""

import operator
from datetime import date
from decimal import Decimal
from enum import StrEnum
from typing import Literal

from pydantic import Field, JsonValue

from contracts.account import (
    RULES_MAX,
    ActedExit,
    ExitAct,
    OpenOrder,
    Portfolio,
    Position,
)
from contracts.cycle import CycleRequest
from contracts.message import MAIN_ACCOUNT, Command, Contract, Message
from contracts.plugins import ExitPluginNames, PluginSource
from contracts.types import (
    Confidence,
    Day,
    Failure,
    Money,
    Name,
    Percent,
    Quantity,
    ShortText,
    Text,
    Ticker,
    Value,
    is_none,
)
from contracts.venue import BoundTo

SIGNALS_MAX = RULES_MAX
TRIGGERS_MAX = SIGNALS_MAX + 2
"""Its rules, and the orders that wait for a price."""
DISTANCES_MAX = 200
ACCOUNTS_TOLD_MAX = 20
"""Positions told at once, the largest first."""


class ExitFormat(StrEnum):
    """The amount of detail: a summary, everything, or the fields that an agent needs."""

    SUMMARY = "summary"
    FULL = "full"
    AGENT = "agent"


class ExitOutput(StrEnum):
    """Whether the full result is written to a file besides."""

    INLINE = "inline"
    FILE = "file"


class CheckExitSignals(Message):
    """Ask for the exit signals of one position.

    `as_of` None is the session that the account stands at, with what it bought at the open after
    it; a later one is refused.
    """

    ticker: Ticker
    account: Name = Field(default=MAIN_ACCOUNT, description="The account's name.")
    as_of: Day | None = Field(
        default=None,
        description="A session, YYYY-MM-DD; not later than the account's newest session.",
    )
    format: ExitFormat = Field(
        default=ExitFormat.SUMMARY,
        description="A summary, everything, or only the fields that an agent needs.",
    )
    output: ExitOutput = Field(
        default=ExitOutput.INLINE, description="`file` also saves the full result to a file."
    )


class ExitSignals(Message):
    """The answer: an object whose `status` is `success` or `error`."""

    answer: dict[str, JsonValue]


class ExitDistancesQuery(Message):
    """How far is each open position from what would sell it, as of the account's session?"""

    account: Name = Field(default=MAIN_ACCOUNT, description="The account's name.")


class ExitTrigger(Value):
    """One rule, or a stop order that waits (`stop_order`), and how far it is from firing.

    `distance` by `unit`: `price`, the part of the price that it must move, 0.05 for 5%, up for a
    take profit and down for the others, with the price it must reach as `at`; `return`, the gap of
    returns that is left (momentum, regime); `sessions`, those left. 0 where it has fired, and None
    where it could not be evaluated, as `detail` says.
    """

    rule: Name
    primary: bool = True
    triggered: bool = False
    unit: Literal["price", "return", "sessions"]
    distance: float | None = None
    at: Money | None = None
    detail: ShortText = ""


class PositionExits(Value):
    """A position with its triggers, the nearest first; `assessment` as in `ExitCheck`.

    `nearest` is the smallest distance in price or return. `note` says why nothing is sold although
    a primary rule fired: that it has acted, for one. A `failure` is why it could not be checked.
    """

    ticker: Ticker
    quantity: Quantity
    price: Money
    average_cost: Money
    value: Decimal
    assessment: ShortText = ""
    nearest: float | None = None
    triggers: tuple[ExitTrigger, ...] = Field(default=(), max_length=TRIGGERS_MAX)
    note: ShortText = ""
    failure: Failure | None = None


class ExitDistances(Message):
    """The account's open positions, the one nearest to a trigger first, then who has none.

    `as_of` is the session they were checked at, the account's own. `more` where it holds over
    DISTANCES_MAX: the smallest ones are left out. `warnings` name the tickers of exit_signals.toml
    that the market source does not have.
    """

    account: Name
    as_of: date
    positions: tuple[PositionExits, ...] = Field(default=(), max_length=DISTANCES_MAX)
    more: bool = False
    market_source: Text = ""
    warnings: tuple[ShortText, ...] = ()


class HoldingsQuery(Message):
    """Ask for what an account holds at the close of `as_of`.

    None is its clock's session, with what it bought and sold at the open after it, at that price.
    """

    account: Name
    as_of: date | None = None


class Holdings(Message):
    """An account's holdings, and the orders that were open then.

    `sold` are tickers of which something was sold at the open after as_of, and is held no more.
    `exits` are those that acted on what is held, oldest first.
    `accounts` are the names of all that there are; none where they are more than it has room for.
    `venue` is the broker that fills the account's orders; None: the simulated one.
    """

    account: Name
    as_of: date
    positions: tuple[Position, ...] = ()
    open_orders: tuple[OpenOrder, ...] = ()
    sold: tuple[Ticker, ...] = ()
    exits: tuple[ActedExit, ...] = Field(default=(), exclude_if=operator.not_)
    accounts: tuple[Name, ...] = Field(default=(), max_length=ACCOUNTS_TOLD_MAX)
    venue: BoundTo | None = Field(default=None, exclude_if=is_none)


class ExitSignal(Value):
    """One rule's finding: it fired, was quiet, or could not be evaluated (`failed`). `limit` is its
    threshold as exit_signals.toml names it."""

    rule: Name
    primary: bool
    triggered: bool = False
    failed: bool = False
    severity: Confidence = 0.0
    detail: ShortText = ""
    limit: ShortText = ""


class ExitCheck(Value):
    """One position as its rules see it.

    `assessment` begins with STRONG EXIT, EXIT, MONITOR, HOLD or ERROR; of a sale that a person asks
    for with EXIT BY HAND. With a `quantity` a sale of
    that many shares, `sell_pct` percent of the position, is proposed, and then a stop at
    `stop_price` where there is one; `note` says why there is no sale, or no stop. `acts` is what
    the sale acts on. A `failure` is why the position could not be checked at all.
    """

    ticker: Ticker
    assessment: ShortText = ""
    signals: tuple[ExitSignal, ...] = Field(default=(), max_length=SIGNALS_MAX)
    sell_pct: Percent | None = None
    quantity: Quantity | None = None
    stop_price: Money | None = None
    acts: ExitAct | None = Field(default=None, exclude_if=is_none)
    note: ShortText = ""
    failure: Failure | None = None


class ExitReport(Contract):
    """The exit checks of an account's open positions, by ticker. It proposes; it never orders.

    `warnings` say that the file of exit rules cannot be used, and the rules before it stand; and
    which exit rules of the user's (`plugins`) gave no answer that counts.
    """

    account: Name
    checks: tuple[ExitCheck, ...] = ()
    market_source: Text = ""
    warnings: tuple[Text, ...] = Field(default=(), exclude_if=operator.not_)
    plugins: tuple[PluginSource, ...] = Field(default=(), exclude_if=operator.not_)


class CheckExits(Command):
    """Check the open positions of the account: all, or those of the request's universe.

    `exit_plugins` are the user's own exit rules.
    """

    request: CycleRequest
    portfolio: Portfolio
    exit_plugins: ExitPluginNames = Field(default=(), exclude_if=operator.not_)
