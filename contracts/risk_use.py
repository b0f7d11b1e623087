"""How much of its limits an account uses, what they have cut, and what another value would mean."""

from datetime import date
from decimal import Decimal

from pydantic import Field, StrictBool

from contracts.message import MAIN_ACCOUNT, Message, Request
from contracts.types import Currency, CycleId, Name, Quantity, ShortText, Ticker, Value

LimitValue = StrictBool | Decimal
"""Of one limit of `AccountLimits`, in its own unit."""
ORDERS_MAX = 100


class RiskQuery(Message):
    """Ask how much of its limits an account uses; cuts are from the last `days`."""

    account: Name = MAIN_ACCOUNT
    days: int = Field(default=30, ge=1, le=366)


class LimitUse(Value):
    """One limit of `AccountLimits`, by its name there.

    `used` is in the limit's own unit, of the books at the account's newest close, and of the ticker
    or sector `by` that comes nearest to it; None where only a decision measures it. Then `measured`
    says what the newest one measured, at the session `measured_on`.
    """

    limit: Name
    allowed: Decimal
    used: Decimal | None = None
    by: ShortText = ""
    measured: ShortText = ""
    measured_on: date | None = None


class RuleCuts(Value):
    """How often a rule, or a plug-in, cut and vetoed trades, and the newest of them."""

    rule: ShortText
    cut: int = 0
    vetoed: int = 0
    as_of: date
    ticker: Ticker | None = None
    reason: ShortText = ""
    cycle_id: CycleId
    pipeline: Name


class RiskView(Message):
    """An account's use of its limits, as execution enforces them.

    `as_of` is the session of its clock. `at_stops` is the loss if every stop order fills at its
    price, `unprotected` the value that no stop sells. `found` is False where there is no such
    account; `accounts` are all names.
    """

    found: bool = True
    accounts: tuple[Name, ...] = ()
    currency: Currency | None = None
    as_of: date | None = None
    equity: Decimal = Decimal(0)
    at_stops: Decimal = Decimal(0)
    unprotected: Decimal = Decimal(0)
    halted: ShortText = ""
    limits: tuple[LimitUse, ...] = ()
    since: date | None = None
    cuts: tuple[RuleCuts, ...] = ()


class LimitQuery(Message):
    """Ask what another value of a limit than `before` would mean for an account today."""

    account: Name = MAIN_ACCOUNT
    limit: Name
    before: LimitValue
    value: LimitValue


class BuyUnder(Value):
    """A buy of a decision: its `shares` by the value before, and `then` by the other one, with the
    `reason` that cuts it then and did not before."""

    ticker: Ticker
    shares: Quantity
    then: Quantity
    reason: ShortText = ""


class LimitPreview(Message):
    """What another value of a limit would mean for an account.

    `in_force` is the value that it was judged by last. `use` is as in `RiskView`, of the value
    before; None of a limit that is not a number. `buys` are those of the newest decision that would
    be of another size, out of `judged`; `decided_on` None: there is no decision on record that can
    be judged again.
    """

    in_force: LimitValue
    use: LimitUse | None = None
    cycle_id: CycleId | None = None
    decided_on: date | None = None
    judged: int = 0
    buys: tuple[BuyUnder, ...] = Field(default=(), max_length=ORDERS_MAX)


class SetLimit(Request):
    """Record that a person sets a limit in the settings, of one account or (None) of all. This does
    not change the limit: execution reads it from its settings at its start."""

    account: Name | None = None
    limit: Name
    before: LimitValue
    value: LimitValue


class LimitRecorded(Message):
    """The change is on record, as the event `limit_set`."""


class LimitEvent(Value):
    """A person set a limit in the settings. The event's `cycle_id` identifies the change, not a
    cycle."""

    account: Name | None = None
    limit: Name
    before: LimitValue
    value: LimitValue
    by: Name
