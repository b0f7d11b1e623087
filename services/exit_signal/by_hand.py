"""A sale that a person asks for, whatever the exit rules say of the position. Pure."""

from decimal import ROUND_CEILING, Decimal

from contracts.cycle import SellNow
from contracts.exit_signal import ExitCheck, ExitSignal
from libs.facts import amounts
from libs.quant.sizing import part_of, share_step
from services.exit_signal.logic import PCT_STEP, SellablePart

BY_HAND = "by_hand"
"""Where a check has the names of rules that fired."""
ASSESSMENT = "EXIT BY HAND"
NOT_HELD = "it is no longer held"
_HUNDRED = Decimal(100)


def sold_by_hand(held: SellablePart | None, sale: SellNow) -> ExitCheck:
    """The check that proposes the sale: a part of what is free, rounded down, at least one
    share of whole shares, and never more than `quantity_max`.

    Nothing is proposed while an open order sells of it already: that one is to fill first; nor
    where nothing is held any more (None).
    """
    if held is None:
        return ExitCheck(ticker=sale.ticker, assessment=ASSESSMENT, note=NOT_HELD)
    wanted = f"sold by hand, {amounts.percent(sale.share_pct)}"
    signal = ExitSignal(rule=BY_HAND, primary=True, triggered=True, severity=1.0, detail=wanted)
    check = ExitCheck(ticker=sale.ticker, assessment=ASSESSMENT, signals=(signal,))
    if held.promised > 0 or held.free <= 0:
        why = f"an open order sells {held.promised.normalize():f} shares already"
        return check.model_copy(update={"note": why})
    lot = held.position.lot
    exact, step = part_of(held.free, sale.share_pct, lot), share_step(held.free, lot)
    quantity = min(held.free, max(step, exact), sale.quantity_max or held.free)
    # Where it is not the share asked for, it is that of the shares that are sold.
    of_free = (quantity * _HUNDRED / held.free).quantize(PCT_STEP, ROUND_CEILING)
    pct = sale.share_pct if exact == quantity else min(_HUNDRED, of_free)
    return check.model_copy(update={"quantity": quantity, "sell_pct": pct})
