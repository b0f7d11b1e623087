"""The broker's interface: what execution asks, and the three answers it can get.

All prices and amounts here are in the currency that the share is traded in.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from typing import Protocol
from uuid import UUID

from contracts.account import Side
from contracts.types import ExchangeRate


@dataclass(frozen=True, slots=True)
class Opening:
    """The raw open of a session; `split_ratio` is new shares for one old, effective at it.

    `volume` are the shares that the whole session traded; None where the source does not know.
    `lot` is how many shares are bought together. `rate` into the account's currency is the one
    known at the open; None where there is one currency only.
    """

    session: date
    price: Decimal
    split_ratio: Decimal = Decimal(1)
    rate: ExchangeRate | None = None
    volume: Decimal | None = None
    lot: int = 1


@dataclass(frozen=True, slots=True)
class MarketOrder:
    """Buy whole lots, or sell, at the next open. `order_id` is also the broker's client order id.

    `quantity` is in shares as they were when the order was decided; `currency` is the one that they
    are traded in.
    """

    order_id: UUID
    ticker: str
    side: Side
    quantity: Decimal
    currency: str = "USD"


@dataclass(frozen=True, slots=True)
class StopOrder:
    """Sell once the price falls to `stop_price`; good till cancelled.

    Quantity and price are in shares as they are on the session that is asked about; `currency` is
    the one that they are traded in. `reached_on` is a session before it that came down to the price
    and at which nothing could be exchanged: such an order sells at the next open.
    """

    order_id: UUID
    ticker: str
    quantity: Decimal
    stop_price: Decimal
    currency: str = "USD"
    reached_on: date | None = None


@dataclass(frozen=True, slots=True)
class DayPrices:
    """A session's raw open and low; `rate` and `volume` as in `Opening`.

    `missed` are the lows of the sessions just before it at which nothing could be exchanged, in
    this session's shares.
    """

    session: date
    open: Decimal
    low: Decimal
    rate: ExchangeRate | None = None
    volume: Decimal | None = None
    missed: Mapping[date, Decimal] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Filled:
    """Done: `price` after slippage, `note` where it was cut, `rate` that it was exchanged at."""

    price: Decimal
    quantity: Decimal
    fee: Decimal
    session: date
    note: str = ""
    rate: ExchangeRate | None = None


@dataclass(frozen=True, slots=True)
class Working:
    """Not yet: there is no open to fill at. `reason` is empty where it just has not come: an order
    keeps its reason when it is filled."""

    reason: str = ""


@dataclass(frozen=True, slots=True)
class OrderRefused:
    """Never: nothing of it can be filled."""

    reason: str


Answer = Filled | Working | OrderRefused


class Broker(Protocol):
    """Answers orders at prices that execution has read beforehand."""

    def answer(
        self, order: MarketOrder, opening: Opening | None, *, cash: Decimal, held: Decimal
    ) -> Answer:
        """Fill what `cash` pays for, or what of `held` shares (after splits) is sold."""
        ...

    def answer_stop(self, order: StopOrder, day: DayPrices | None, *, held: Decimal) -> Answer:
        """Fill what of `held` shares is sold where the session's prices reached the stop. A part of
        the order may be filled: the rest is a matter of the caller.
        """
        ...
