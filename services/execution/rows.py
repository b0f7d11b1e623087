"""The ledger's rows as what execution thinks in, and back. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from datetime import date
from decimal import ROUND_CEILING, Decimal
from typing import Any

import orjson

from contracts.account import EntryPlan, HeldPlan, OpenBooks, OrderStatus, OrderType, Position, Side
from contracts.approval import Approval
from contracts.audit import EventType
from contracts.constraints import constraints_of
from contracts.types import ExchangeRate, Foreign, Money, plain_shares
from contracts.venue import BoundTo, Difference, DifferenceKind, LookVerdict, VenueTerms
from libs.broker.broker import Filled
from libs.postgres.pool import Record
from libs.quant.exchange import PriceMark, cents_in, price_in
from libs.quant.sizing import CENT
from libs.runtime import ids
from services.execution import exit_rows
from services.execution.account import (
    Account,
    BookedOrder,
    BrokerBinding,
    SendWindow,
    foreign,
    stop_money,
)
from services.execution.books import Book, Books, EntryKind, Holding, LedgerEntry, Posting, fill_key
from services.execution.record import Bounds, CommandRecord
from services.execution.snapshots import Snapshot, Valued, known_from

PLACED, ENDED = 0, 1
"""Sequence numbers of an order's two events."""

EXECUTING = "executing"
"""The state that orders are placed in."""

WAITING = "waiting"
"""The status of a stop order that works, as the table has it."""

END_EVENTS = {
    OrderStatus.FILLED: EventType.ORDER_FILLED,
    OrderStatus.REJECTED: EventType.ORDER_REJECTED,
    OrderStatus.CANCELLED: EventType.ORDER_CANCELLED,
}


def on_record(row: Record) -> CommandRecord:
    """A command as the orchestrator has committed it."""
    budget, approval = row["budget"], row["approval"]
    return CommandRecord(
        account=row["account"],
        command_sha256=row["command_sha256"],
        ended=row["ended"],
        bounds=Bounds(
            budget=None if budget is None else Money.model_validate_json(budget),
            constraints=constraints_of(orjson.loads(row["constraints"] or "{}")),
        ),
        asked=row["asked"],
        approval=None if approval is None else Approval.model_validate_json(approval),
    )


def known(row: Record, account: Account) -> Mapping[str, Valued]:
    """The values of a snapshot's positions, as a later session knows it."""
    valued = {close["ticker"]: _valued(close, account) for close in orjson.loads(row["closes"])}
    return known_from(valued, row["closes_of"])


def _valued(close: Mapping[str, Any], account: Account) -> Valued:
    rate = None
    if close["rate"] is not None:
        rate = ExchangeRate(
            currency=close["currency"],
            into=account.currency,
            rate=close["rate"],
            on=close["rate_on"],
        )
    amount = None if close["amount"] is None else Decimal(close["amount"])
    mark = PriceMark(Decimal(close["price"]), close["currency"], amount, rate)
    on = close["priced_on"]
    return Valued(mark, None if on is None else date.fromisoformat(on))


def _as_json(ticker: str, valued: Valued) -> dict[str, Any]:
    mark, rate = valued.mark, valued.mark.rate
    return {
        "ticker": ticker,
        "price": mark.price,
        "currency": mark.currency,
        "amount": mark.amount,
        "rate": None if rate is None else rate.rate,
        "rate_on": None if rate is None else rate.on,
        "priced_on": valued.priced_on,
    }


def books(currency: str, balances: Sequence[Record], lines: Sequence[Record]) -> Books:
    """An account's books from their sums and the lines of their newest entries."""
    entries: dict[int, list[Record]] = {}
    for line in lines:
        entries.setdefault(line["entry_id"], []).append(line)
    sums: dict[Book, Decimal] = {}
    for row in balances:
        book = Book(row["book"])
        sums[book] = sums.get(book, Decimal(0)) + row["amount"]
    return Books(
        currency,
        sums,
        holdings={
            row["ticker"]: Holding(
                plain_shares(row["quantity"]),
                row["amount"],
                row["currency"],
                row["foreign_amount"],
                row["opened_on"],
            )
            for row in balances
            if row["book"] == Book.POSITION
        },
        recent=tuple(map(_entry, entries.values())),
    )


def _entry(rows: Sequence[Record]) -> LedgerEntry:
    head = rows[0]
    return LedgerEntry(
        key=head["key"],
        kind=EntryKind(head["kind"]),
        session=head["session"],
        lines=tuple(
            Posting(
                Book(row["book"]),
                row["amount"],
                row["ticker"],
                plain_shares(row["quantity"]),
                row["currency"],
                row["foreign_amount"] or Decimal(0),
            )
            for row in rows
        ),
        ticker=head["about"],
        memo=head["memo"],
    )


def booked_order(row: Record) -> BookedOrder:
    """An order, with its fill where it has one."""
    fill = None
    if row["fill_price"] is not None:
        rate = _rate(row, "fill_")
        fill = Filled(
            row["fill_price"] if rate is None else row["fill_foreign_price"],
            plain_shares(row["fill_quantity"]),
            row["fill_fee"] if rate is None else row["fill_foreign_fee"],
            row["fill_session"],
            rate=rate,
        )
    rate = _rate(row)
    return BookedOrder(
        order_id=row["order_id"],
        account=row["account"],
        cycle_id=row["cycle_id"],
        started_on=row["started_on"],
        op_id=row["op_id"],
        pipeline=row["pipeline"],
        ticker=row["ticker"],
        sector=row["sector"],
        side=Side(row["side"]),
        quantity=plain_shares(row["quantity"]),
        hold=_hold_left(row, fill),
        status=OrderStatus.WORKING if row["status"] == WAITING else OrderStatus(row["status"]),
        reason=row["reason"],
        as_of=row["as_of"],
        foreign=None if rate is None else _foreign(row["foreign_price"], rate),
        fill=fill,
        type=OrderType(row["type"]),
        stop_price=row["stop_price"],
        exit=row["exit"],
        acts=exit_rows.acts(row),
        plan=None if row["plan"] is None else EntryPlan.model_validate_json(row["plan"]),
        thesis=row["thesis"],
        terms=None if row["terms"] is None else VenueTerms.model_validate_json(row["terms"]),
    )


def _hold_left(row: Record, filled: Filled | None) -> Decimal:
    """What an order holds back, of one that is filled in part for the rest."""
    hold: Decimal = row["hold"]
    if filled is None or row["terms"] is None:
        return hold
    quantity: Decimal = row["quantity"]
    left = max(quantity - filled.quantity, Decimal(0))
    return (hold * left / quantity).quantize(CENT, ROUND_CEILING)


def binding(row: Record, look: Record | None) -> BrokerBinding:
    """What an account is bound to, with the newest look at it."""
    bound = BoundTo(venue=row["venue"], account_number=row["venue_account"])
    if look is None:
        return BrokerBinding(bound)
    found = [Difference.model_validate(one) for one in orjson.loads(look["differences"])]
    positions = orjson.loads(look["positions"])
    return BrokerBinding(
        bound,
        look["at"],
        LookVerdict(look["verdict"]),
        {ticker: Decimal(quantity) for ticker, quantity in positions.items()},
        frozenset(one.about for one in found if one.kind is DifferenceKind.SPLIT),
    )


def held_plan(row: Record) -> HeldPlan:
    """The plan of a buy that was filled."""
    plan = orjson.loads(row["plan"])
    return HeldPlan(**plan, thesis=row["thesis"], since=row["session"], cycle_id=row["cycle_id"])


def _rate(row: Record, of: str = "") -> ExchangeRate | None:
    if row[f"{of}currency"] is None:
        return None
    return ExchangeRate(
        currency=row[f"{of}currency"],
        into=row["into"],
        rate=row[f"{of}rate"],
        on=row[f"{of}rate_on"],
    )


def _foreign(price: Decimal, rate: ExchangeRate) -> Foreign:
    return Foreign(price=Money(amount=price, currency=rate.currency), rate=rate)


def order_values(order: BookedOrder) -> tuple[Any, ...]:
    """The arguments of `insert_order`."""
    return (
        order.order_id,
        order.account,
        order.cycle_id,
        order.started_on,
        order.op_id,
        order.pipeline,
        order.ticker,
        order.sector,
        order.side.value,
        order.type.value,
        order.quantity,
        order.hold,
        stored_status(order),
        order.reason,
        order.as_of,
        order.stop_price,
        order.exit,
        *exit_rows.acts_values(order.acts),
        None if order.plan is None else order.plan.model_dump_json(),
        order.thesis,
        *_foreign_values(order.foreign),
    )


def stored_status(order: BookedOrder) -> str:
    """A stop order that works is told from a market order, which fills at the next open."""
    return WAITING if order.is_working and order.type is OrderType.STOP else order.status.value


def update_values(order: BookedOrder) -> tuple[Any, ...]:
    """The arguments of `update_order`."""
    status = stored_status(order)
    return (order.order_id, status, order.quantity, order.reason, order.stop_price)


def _foreign_values(foreign: Foreign | None) -> tuple[Any, ...]:
    if foreign is None:
        return (None, None, None, None)
    return (foreign.price.currency, foreign.price.amount, foreign.rate.rate, foreign.rate.on)


def entry_values(account: str, entry: LedgerEntry) -> tuple[Any, ...]:
    """The arguments of `insert_entry`."""
    return (
        account,
        entry.key,
        entry.kind.value,
        entry.session,
        entry.ticker,
        entry.memo,
        entry.sector,
        [line.book.value for line in entry.lines],
        [line.ticker for line in entry.lines],
        [line.amount for line in entry.lines],
        [line.quantity for line in entry.lines],
        [line.currency for line in entry.lines],
        [None if line.currency is None else line.foreign for line in entry.lines],
    )


def snapshot_values(account: str, snapshot: Snapshot) -> tuple[Any, ...]:
    """The arguments of `insert_snapshot`."""
    worth = snapshot.worth
    value = None if worth is None else worth.value
    return (
        account,
        snapshot.session,
        snapshot.cash,
        value,
        snapshot.equity,
        snapshot.realised,
        None if worth is None else worth.gain,
        snapshot.dividends,
        snapshot.fees,
        # Nothing is ever sold short, so what is held is all the exposure, gross and net.
        value,
        value,
        list(snapshot.unpriced),
        orjson.dumps([asdict(stop) for stop in snapshot.stops], default=str).decode(),
        orjson.dumps([_as_json(*close) for close in snapshot.closes.items()], default=str).decode(),
        snapshot.paid_in,
    )


def intent_values(order: BookedOrder, window: SendWindow) -> tuple[Any, ...]:
    """The arguments of `insert_intent`."""
    return (
        order.order_id,
        order.account,
        order.ticker,
        order.side.value,
        order.quantity,
        None if order.terms is None else order.terms.model_dump_json(),
        window.session,
        window.send_by,
    )


def fill_values(order: BookedOrder, fill: Filled, key: str = "") -> tuple[Any, ...]:
    """The arguments of `insert_fill`; `key` is the entry's, where an order may have several."""
    return (
        order.order_id,
        order.account,
        key or fill_key(order.order_id),
        price_in(fill.price, fill.rate),
        fill.quantity,
        cents_in(fill.fee, fill.rate),
        fill.session,
        *_foreign_values(foreign(fill)),
        None if fill.rate is None else fill.fee,
    )


def placed_event(order: BookedOrder, currency: str) -> tuple[Any, ...]:
    """That an order was placed; `currency` is the account's."""
    placed = replace(order, status=OrderStatus.WORKING)
    return _event(placed, currency, PLACED, EventType.ORDER_PLACED, {})


def ended_event(order: BookedOrder, currency: str) -> tuple[Any, ...]:
    """That an order ended, and how; `currency` is the account's."""
    fill = order.fill
    more: dict[str, Any] = {}
    if fill is not None:
        more = {
            "price": _json(Money(amount=price_in(fill.price, fill.rate), currency=currency)),
            "fee": _json(Money(amount=cents_in(fill.fee, fill.rate), currency=currency)),
            "session": str(fill.session),
        }
        if fill.rate is not None:
            more["foreign"] = _json(foreign(fill))
    return _event(order, currency, ENDED, END_EVENTS[order.status], more)


def _event(
    order: BookedOrder, currency: str, seq: int, kind: EventType, more: Mapping[str, Any]
) -> tuple[Any, ...]:
    stop = stop_money(order, currency)
    data = {
        "account": order.account,
        "order_id": str(order.order_id),
        "asset": order.ticker,
        "side": order.side.value,
        "quantity": f"{order.quantity:f}",
        "type": order.type.value,
        "status": order.status.value,
        "reason": order.reason,
        "op_id": str(order.op_id),
        **({} if order.foreign is None else {"foreign": _json(order.foreign)}),
        **({} if stop is None else {"stop_price": _json(stop)}),
        **more,
    }
    session_id = f"{order.account}/{order.as_of}"
    return (
        order.started_on,
        order.order_id,
        seq,
        order.cycle_id,
        kind.value,
        order.pipeline,
        EXECUTING,
        session_id,
        orjson.dumps(data).decode(),
    )


def unpriced_event(command: OpenBooks, held: Position) -> tuple[Any, ...]:
    """That a position has no price at the command's as_of."""
    account = command.pipeline.account
    data = {
        "account": account,
        "ticker": held.ticker,
        "quantity": f"{held.quantity:f}",
        "price": held.price.model_dump(mode="json"),
        "priced_on": str(held.priced_on),
    }
    return (
        command.now.date(),
        ids.position_id(command.op_id, held.ticker),
        0,
        command.cycle_id,
        EventType.POSITION_UNPRICED.value,
        command.pipeline.name,
        command.state,
        f"{account}/{command.as_of}",
        orjson.dumps(data).decode(),
    )


def _json(value: Foreign | Money | None) -> Any:
    return None if value is None else value.model_dump(mode="json")
