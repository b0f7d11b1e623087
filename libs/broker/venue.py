"""A broker beyond the desk, as execution sees it: what is asked, and the answers that it can get.

An answer is one of three things: what the broker has, its refusal in its own words, or unclear.
Unclear never means "no": whatever was sent may have been taken.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import Protocol

from contracts.account import Side


@dataclass(frozen=True, slots=True)
class Ticket:
    """An order as it is sent. `client_id` is unique for ever; `limit_price` None: at any price.
    Prices are in US dollars. It is good for one session."""

    client_id: str
    ticker: str
    side: Side
    quantity: Decimal
    limit_price: Decimal | None = None


@dataclass(frozen=True, slots=True)
class VenueOrder:
    """An order as the broker has it; `status` is its own word, `is_over` whether it ended.
    `filled` shares so far."""

    broker_id: str
    client_id: str
    ticker: str
    side: str
    quantity: Decimal | None
    filled: Decimal
    status: str
    is_over: bool
    type: str = ""
    limit_price: Decimal | None = None


@dataclass(frozen=True, slots=True)
class VenueFill:
    """A trade of an order, whole or in part. `fill_id` is unique for ever."""

    fill_id: str
    broker_id: str
    ticker: str
    side: Side
    price: Decimal
    quantity: Decimal
    at: datetime


class MoveCause(StrEnum):
    """Why cash or shares moved without a trade."""

    DIVIDEND = "dividend"
    FEE = "fee"
    INTEREST = "interest"
    TRANSFER = "transfer"
    SPLIT = "split"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class VenueMove:
    """An activity that is no trade: cash that came or went, or (`quantity`) shares."""

    move_id: str
    cause: MoveCause
    amount: Decimal
    ticker: str = ""
    quantity: Decimal | None = None
    at: datetime | None = None
    word: str = ""


@dataclass(frozen=True, slots=True)
class VenueAccount:
    """The broker's account now. `positions` are shares by ticker, below zero where short.

    `blocked` says in words why it may not trade; `unsafe` what would let it borrow or sell short.
    `now` is the broker's clock, `next_open` the next open by it.
    """

    number: str
    status: str
    cash: Decimal
    currency: str
    positions: Mapping[str, Decimal]
    blocked: tuple[str, ...]
    unsafe: tuple[str, ...]
    now: datetime
    is_open: bool
    next_open: datetime
    rate_left: str = ""


@dataclass(frozen=True, slots=True)
class Activities:
    """What happened to the account, complete since the moment that was asked for."""

    fills: tuple[VenueFill, ...] = ()
    moves: tuple[VenueMove, ...] = ()


@dataclass(frozen=True, slots=True)
class NoSuchOrder:
    """The broker has no order of that id."""


@dataclass(frozen=True, slots=True)
class VenueRefusal:
    """The broker says no, in its own words. `is_duplicate`: it has an order of that id already."""

    words: str
    is_duplicate: bool = False


@dataclass(frozen=True, slots=True)
class UnclearAnswer:
    """There was no answer that says yes or no. `wait_s` is how long the broker asks to be left
    alone; 0 where it does not say."""

    why: str
    wait_s: float = 0.0


@dataclass(frozen=True, slots=True)
class CancelNoted:
    """The broker took note of the cancel. The order may still be filled."""


class OrderVenue(Protocol):
    """A broker's paper account. No method raises for what the broker or the network does."""

    @property
    def name(self) -> str:
        """Its name in terms and bindings."""
        ...

    async def submit(self, ticket: Ticket) -> VenueOrder | VenueRefusal | UnclearAnswer:
        """Send an order."""
        ...

    async def find(self, client_id: str) -> VenueOrder | NoSuchOrder | UnclearAnswer:
        """The order of a client id."""
        ...

    async def order(self, broker_id: str) -> VenueOrder | NoSuchOrder | UnclearAnswer:
        """The order of the broker's own id."""
        ...

    async def cancel(self, broker_id: str) -> CancelNoted | VenueRefusal | UnclearAnswer:
        """Ask for a cancel."""
        ...

    async def open_orders(self) -> tuple[VenueOrder, ...] | UnclearAnswer:
        """All orders that are not over, whoever sent them; complete."""
        ...

    async def activities(self, since: datetime | None) -> Activities | UnclearAnswer:
        """What was recorded after `since` (None: ever); complete."""
        ...

    async def account(self) -> VenueAccount | UnclearAnswer:
        """The account, its settings and positions, and the broker's clock."""
        ...

    async def restrict(self) -> VenueRefusal | UnclearAnswer | None:
        """Set long only and cash only. None once the broker has answered with both."""
        ...
