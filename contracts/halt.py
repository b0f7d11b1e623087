"""The kill switch: who stopped buys, for which accounts, since when and why."""

from datetime import datetime

from pydantic import Field

from contracts.message import Message, Request
from contracts.types import Name, ShortText, Value

OWNER = "execution"
"""Who blocks an account whose books differ from its broker's."""


class Halt(Value):
    """A halt in force: no buy is placed, filled by the simulated broker or sent to another broker.
    `account` None means every account."""

    account: Name | None = None
    reason: ShortText = ""
    by: Name
    since: datetime

    @property
    def remedy(self) -> str:
        """The command that ends it. Execution itself blocks an account whose books differ from its
        broker's."""
        if self.by == OWNER:
            return f"deskbus account reconcile {self.account}"
        return "deskbus resume" + (f" --account {self.account}" if self.account else "")


class HaltTrading(Request):
    """Block buys at once, of one account or (None) of all, also of those opened later.

    Sales pass. Once this is answered no buy can be placed or filled any more by the simulated
    broker, whatever was under way, and no further one is sent to a broker; those that are there are
    cancelled. The halt survives restarts and ends with `ResumeTrading` alone.
    """

    account: Name | None = None
    reason: ShortText = ""


class ResumeTrading(Request):
    """End the halt of one account, or (None) the one of all accounts.

    Halts are separate: resuming all accounts does not end the halts of single accounts.
    """

    account: Name | None = None
    reason: ShortText = ""


class HaltAnswer(Message):
    """The present halt. `changed` is False where it was so before: asking again is safe.

    Of the buys that were at a broker, or on their way there, `cancelled` are over for certain;
    `pending` ones may still be filled.
    """

    changed: bool
    halts: tuple[Halt, ...] = ()
    cancelled: int = Field(default=0, ge=0)
    pending: int = Field(default=0, ge=0)


class HaltsQuery(Message):
    """Ask which halts stand."""


class Halts(Message):
    """The halts that stand, the one of all accounts first; empty where buys are free."""

    halts: tuple[Halt, ...] = ()


class HaltEvent(Value):
    """Buys were blocked or allowed again. The event's `cycle_id` identifies the change, not a
    cycle."""

    account: Name | None = None
    reason: ShortText = ""
    by: Name
