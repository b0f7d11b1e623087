"""How much of its limits an account uses, and what they have cut."""

from datetime import date
from decimal import Decimal

from pydantic import Field

from contracts.message import MAIN_ACCOUNT, Message
from contracts.types import Currency, CycleId, Name, ShortText, Ticker, Value


class RiskQuery(Message):
    """Ask how an account stands against its limits; cuts are those of its last `days`."""

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
    """An account against its limits, as execution enforces them.

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
