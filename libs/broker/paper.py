"""The paper broker: fills at the next open, with a fee and slippage, and never on credit. Pure."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import ROUND_FLOOR, Decimal
from typing import NamedTuple

from contracts.account import Side
from libs.broker.broker import (
    Answer,
    DayPrices,
    Filled,
    MarketOrder,
    Opening,
    OrderRefused,
    StopOrder,
    Working,
)
from libs.quant.costs import affordable, fee_on, slipped
from libs.quant.sizing import (
    affordable_shares,
    after_split,
    fill_value,
    kept_shares,
    slipped_price,
    trade_fee,
    whole_lots,
)
from libs.quant.ticks import PRICE_STEP, TICK_PCT_MAX, is_too_coarse, priced, quoted, tick_of

_ZERO = Decimal(0)


@dataclass(frozen=True, slots=True)
class Counting:
    """How shares and money are counted: a fill's price, its value, its fee, and what cash buys."""

    price: Callable[[Decimal, Decimal, bool], Decimal]
    value: Callable[[Decimal, Decimal, bool], Decimal]
    fee: Callable[[Decimal, Decimal], Decimal]
    affordable: Callable[[Decimal, Decimal, Decimal], Decimal]
    shares: Callable[[Decimal, bool], Decimal]


def _booked_shares(shares: Decimal, buying: bool) -> Decimal:
    return shares.to_integral_value(ROUND_FLOOR) if buying else kept_shares(shares)


def _exact_shares(shares: Decimal, _: bool) -> Decimal:
    return shares


def _whole_price(price: Decimal, slippage_bps: Decimal, buying: bool) -> Decimal:
    return slipped_price(price, slippage_bps, buying=buying)


def _exact_price(price: Decimal, slippage_bps: Decimal, buying: bool) -> Decimal:
    return slipped(price, slippage_bps, Decimal(1 if buying else -1))


def _whole_value(price: Decimal, quantity: Decimal, buying: bool) -> Decimal:
    return fill_value(price, quantity, buying=buying)


def _exact_value(price: Decimal, quantity: Decimal, _: bool) -> Decimal:
    return price * quantity


WHOLE = Counting(_whole_price, _whole_value, trade_fee, affordable_shares, _booked_shares)
"""As an account is booked: whole shares are bought, sold down to six places; prices on their tick,
money in cents, each rounded against the trader."""
EXACT = Counting(_exact_price, _exact_value, fee_on, affordable, _exact_shares)
"""With every fraction, as the backtest counts on adjusted prices."""


@dataclass(frozen=True, slots=True)
class PaperBroker:
    """`fee_bps` of the traded value; fills `slippage_bps` worse than the open, on a tick of it.

    A fill takes at most `volume_pct_max` percent of the session's volume; None, or where the source
    does not know the volume: it may take any.
    """

    fee_bps: Decimal
    slippage_bps: Decimal
    volume_pct_max: Decimal | None = None
    counting: Counting = WHOLE

    def answer(
        self, order: MarketOrder, opening: Opening | None, *, cash: Decimal, held: Decimal
    ) -> Answer:
        """Fill at the open. A split at that open multiplies the ordered shares, as brokers do.

        A buy is cut to what `cash` pays with its fee, a sale to `held`, both to the part of the
        session's volume; the note says so. At an open below the finest price that is kept nothing
        is filled, and nothing is bought where one tick is too large a part of the price.
        """
        if opening is None:
            return Working()
        buying = order.side is Side.BUY
        if why := _no_fair_price(opening, order.currency, buying):
            return OrderRefused(why)
        count = self.counting
        wanted = count.shares(after_split(order.quantity, opening.split_ratio), buying)
        price = count.price(opening.price, self.slippage_bps, buying)
        if buying:
            most = count.affordable(cash, price, self.fee_bps)
            paid, purse = (quoted(priced(amount, order.currency)) for amount in (price, cash))
            room = _Room(most, "the cash", f"cash of {purse} buys no share at {paid}")
        else:
            room = _Room(held, "the shares held", "no share is left")
        room = min(room, self._of_volume(opening) or room)
        quantity = count.shares(min(wanted, room.shares), buying)
        if buying and opening.lot > 1:
            room = _in_lots(room, wanted, opening.lot)
            quantity = whole_lots(quantity, opening.lot)
        if quantity <= 0:
            return OrderRefused(f"at the open of {opening.session} {room.none}")
        value = count.value(price, quantity, buying)
        fee = count.fee(value, self.fee_bps)
        if not buying:
            fee = min(fee, value)  # a sale never costs money
        note = _note(order, opening, wanted, quantity, room.limit, price)
        return Filled(price, quantity, fee, opening.session, note, opening.rate)

    def _of_volume(self, session: Opening | DayPrices) -> "_Room | None":
        """The part of a session's volume that one fill may take; None where nothing limits it."""
        if self.volume_pct_max is None or session.volume is None:
            return None
        share = f"{self.volume_pct_max:f}% of the session's volume of {session.volume:,.0f}"
        shares = (session.volume * self.volume_pct_max / 100).to_integral_value(ROUND_FLOOR)
        return _Room(shares, share, f"{share} is no share")

    def answer_stop(self, order: StopOrder, day: DayPrices | None, *, held: Decimal) -> Answer:
        """Fill at the stop price where the session came down to it, and at the open where that lay
        below it already or the stop was reached before; then as any sale, with slippage and fee.
        Where the session traded too little it waits on.
        """
        stop = quoted(priced(order.stop_price, order.currency))
        reached = order.reached_on is not None
        if day is None or (day.low > order.stop_price and not reached):
            return Working(f"the price has not come down to {stop}")
        room = self._of_volume(day)
        if room is not None and room.shares < 1:
            return Working(room.none)
        at_open = reached or day.open < order.stop_price
        if at_open and day.open < PRICE_STEP:
            return Working(f"it opened below {PRICE_STEP:f}, the finest price that is kept")
        sale = MarketOrder(order.order_id, order.ticker, Side.SELL, order.quantity, order.currency)
        price = day.open if at_open else order.stop_price
        opening = Opening(day.session, price, rate=day.rate, volume=day.volume)
        answer = self.answer(sale, opening, cash=_ZERO, held=held)
        if not isinstance(answer, Filled):
            return answer
        opened = quoted(priced(day.open, order.currency))
        trigger = f"the stop at {stop} was reached"
        if reached:
            trigger += f" on {order.reached_on}, when nothing could be exchanged"
        elif at_open:
            trigger = f"the session opened at {opened}, below the stop at {stop}"
        return replace(answer, note="; ".join(filter(None, (trigger, answer.note))))


class _Room(NamedTuple):
    """The most shares that can be filled, the limit in words, and the words for none."""

    shares: Decimal
    limit: str
    none: str


def _in_lots(room: _Room, wanted: Decimal, lot: int) -> _Room:
    """The room of a buy, in whole lots."""
    lots = f"a lot of {lot:,} shares"
    limit = room.limit if room.shares < wanted else lots
    return _Room(
        room.shares,
        limit,
        f"{limit} allows less than {lots}"
        if limit != lots
        else f"{wanted:f} shares are less than {lots}",
    )


def _no_fair_price(opening: Opening, currency: str, buying: bool) -> str:
    """Why nothing can be filled at an open; empty where it can."""
    price = opening.price
    at = f"the open of {opening.session} is {price:f} {currency}"
    if price < PRICE_STEP:
        return f"{at}, below {PRICE_STEP:f}, the finest price that is kept"
    if buying and is_too_coarse(price):
        return f"{at}, and one tick, {tick_of(price):f}, is more than {TICK_PCT_MAX}% of it"
    return ""


def _note(
    order: MarketOrder,
    opening: Opening,
    wanted: Decimal,
    filled: Decimal,
    limit: str,
    price: Decimal,
) -> str:
    notes = []
    if wanted != order.quantity:
        notes.append(
            f"{order.quantity:f} shares became {wanted:f} by the split of "
            f"{opening.split_ratio.normalize():f} for 1 on {opening.session}"
        )
    if filled < wanted:
        notes.append(
            f"cut from {wanted:f} to {filled:f} shares: {limit} at the open of "
            f"{opening.session}, {quoted(priced(price, order.currency))} a share, allowed no more,"
            " and the rest is cancelled"
        )
    return "; ".join(notes)
