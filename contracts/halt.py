"""The kill switch: who stopped buys, for which accounts, since when and why."""

from datetime import datetime

from contracts.message import Message, Request
from contracts.types import Name, ShortText, Value


class Halt(Value):
    """A halt that stands: no buy is placed or filled. `account` None means every account."""

    account: Name | None = None
    reason: ShortText = ""
    by: Name
    since: datetime


class HaltTrading(Request):
    """Block buys at once, of one account or (None) of all, also of those opened later.

    Sales pass. Once this is answered no buy can be placed or filled any more, whatever was under
    way; the halt survives restarts and ends with `ResumeTrading` alone.
    """

    account: Name | None = None
    reason: ShortText = ""


class ResumeTrading(Request):
    """End the halt of one account, or (None) the one of all accounts.

    Each halt ends by itself: resuming all accounts leaves the halts of single ones standing.
    """

    account: Name | None = None
    reason: ShortText = ""


class HaltAnswer(Message):
    """The present halt. `changed` is False where it was so before: asking again is safe."""

    changed: bool
    halts: tuple[Halt, ...] = ()


class HaltsQuery(Message):
    """Ask which halts stand."""


class Halts(Message):
    """The halts that stand, the one of all accounts first; empty where buys are free."""

    halts: tuple[Halt, ...] = ()


class HaltEvent(Value):
    """Buys were blocked or freed. The event's `cycle_id` stands for the change: no cycle is behind
    it."""

    account: Name | None = None
    reason: ShortText = ""
    by: Name
