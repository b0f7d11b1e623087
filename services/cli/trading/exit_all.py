"""`deskbus exit now --all`: everything that an account holds, shown first, then sold."""

import hashlib
import json
from collections.abc import Iterable, Sequence
from datetime import date
from decimal import Decimal

from pydantic import BaseModel, ConfigDict

from contracts.account import OrderType, Portfolio, Side
from contracts.cycle import CycleStatus, SellNow
from contracts.cycle_query import CycleQuery
from contracts.subjects.cycles import CYCLE
from contracts.types import Money
from libs.bus.client import Client
from libs.facts import amounts
from libs.report import view
from libs.report.view import Column, Text
from libs.runtime import ids
from services.cli.render.described import Shown, head
from services.cli.shell.request import REQUESTER

_ZERO = Decimal(0)


class ExitLine(BaseModel):
    """One position: `sold` shares of it are sold, worth `value` by the price of `priced_on`."""

    model_config = ConfigDict(frozen=True)

    ticker: str
    held: Decimal
    promised: Decimal
    stop: Money | None
    price: Money
    priced_on: date

    @property
    def sold(self) -> Decimal:
        """All of it, unless an open order sells of it already: that one is to fill first."""
        return self.held if not self.promised else _ZERO

    @property
    def value(self) -> Decimal:
        """What is sold, at that price."""
        return self.sold * self.price.amount

    @property
    def rule(self) -> str:
        """What is done with it, and why."""
        if self.promised:
            return f"not sold: an open order already sells {self.promised.normalize():f} of it"
        if self.stop is not None:
            return f"sold by hand; its stop at {amounts.money(self.stop)} is cancelled"
        return "sold by hand"


class ExitOfAll(BaseModel):
    """Everything that an account holds, as it would be sold."""

    model_config = ConfigDict(frozen=True)

    account: str
    as_of: date
    currency: str
    lines: tuple[ExitLine, ...]
    hash: str = ""

    @property
    def sales(self) -> tuple[SellNow, ...]:
        """What is asked for: never more shares than were shown."""
        return tuple(
            SellNow(ticker=it.ticker, quantity_max=it.sold) for it in self.lines if it.sold
        )


def exit_of_all(books: Portfolio) -> ExitOfAll:
    """The sale of all positions of these books; its hash is of all that is shown."""
    shown = ExitOfAll(
        account=books.account,
        as_of=books.as_of,
        currency=books.cash.currency,
        lines=tuple(
            ExitLine(
                ticker=held.ticker,
                held=held.quantity,
                promised=sum(_quantities(books, held.ticker, OrderType.MARKET), _ZERO),
                stop=next(
                    (
                        order.stop_price
                        for order in books.open_orders
                        if order.asset == held.ticker and order.type is OrderType.STOP
                    ),
                    None,
                ),
                price=held.price,
                priced_on=held.priced_on or books.as_of,
            )
            for held in books.positions
            if held.quantity > 0
        ),
    )
    terms = json.dumps(shown.model_dump(mode="json"), sort_keys=True, separators=(",", ":"))
    return shown.model_copy(update={"hash": hashlib.sha256(terms.encode()).hexdigest()})


def _quantities(books: Portfolio, ticker: str, kind: OrderType) -> Iterable[Decimal]:
    return (
        order.quantity
        for order in books.open_orders
        if (order.asset, order.side, order.type) == (ticker, Side.SELL, kind)
    )


def screen(shown: ExitOfAll) -> Sequence[Shown]:
    """Each position with its price and what is done with it, and the sum."""
    table = view.table(
        (
            "Position",
            "Sold",
            f"Price {shown.currency}",
            "Price of",
            f"Value {shown.currency}",
            Column("Rule", wraps=True),
        ),
        (
            (
                it.ticker,
                view.shares(it.sold),
                view.price(it.price),
                amounts.session(it.priced_on),
                view.money(it.value, shown.currency),
                it.rule,
            )
            for it in shown.lines
        ),
        currency=shown.currency,
    )
    worth = Money(amount=sum((it.value for it in shown.lines), _ZERO), currency=shown.currency)
    many = amounts.count(len(shown.sales), "position")
    about = f"sells {many}, {amounts.money(worth)} at these prices, at the next open"
    return (head(f"everything that {shown.account} holds"), table, Text(about))


async def free_key(client: Client, shown: ExitOfAll) -> str:
    """The idempotency key of this sale: that of a cycle which is under way for it, else of a new
    one. Whoever asks twice, as after a crash, asks for the same cycle; one that has ended without
    selling, so that the same can be shown again, does not stand in the way of another."""
    number = 1
    while True:
        key = f"exit-all/{shown.hash}/{number}"
        asked = CycleQuery(cycle_id=str(ids.cycle_id(REQUESTER, key)))
        before = await client.ask(CYCLE, asked)
        if not before.found or before.status is CycleStatus.RUNNING:
            return key
        number += 1
