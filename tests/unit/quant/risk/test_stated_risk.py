"""What a plan says that it risks is what a stop without a gap loses at most, with all costs."""

from decimal import Decimal
from uuid import UUID

from hypothesis import given, settings
from hypothesis import strategies as st

from contracts.account import AccountLimits, Portfolio, Side
from contracts.risk import Evidence
from contracts.trader import PickPlan, StockPick
from contracts.types import Money
from libs.broker.broker import DayPrices, Filled, MarketOrder, Opening, StopOrder
from libs.broker.paper import PaperBroker
from libs.quant.risk.evaluation import evaluate
from libs.quant.sizing import BPS_IN_ONE, CASH_RESERVE_BPS
from tests.fakes.moves import moving
from tests.fakes.reasons import settled

D = Decimal
ID = UUID(int=7)
FEE_BPS = SLIPPAGE_BPS = D(5)
COSTS_BPS = 2 * (FEE_BPS + SLIPPAGE_BPS)
"""To buy and to sell: what the reserve must cover beside a small gap at the open."""
ROUNDED = D("0.02")
"""Of a share: both fills' prices are whole cents, rounded against the trader."""
FEES_ROUNDED = D("0.02")
EQUITY = D(100_000)


def cents(least: str, most: str) -> st.SearchStrategy[Decimal]:
    return st.decimals(least, most, places=2)


@given(
    price=cents("5", "900"),
    range_pct=cents("0.10", "12"),
    stop_atr=st.floats(1, 6),
    confidence=st.floats(0, 1),
    opens=st.floats(-0.5, 1),
    days=st.lists(st.floats(0, 0.2), max_size=8),
)
@settings(max_examples=300, derandomize=True, deadline=None)
def test_a_stop_that_is_not_gapped_through_loses_at_most_what_its_plan_states(
    price: Decimal,
    range_pct: Decimal,
    stop_atr: float,
    confidence: float,
    opens: float,
    days: list[float],
) -> None:
    pick = StockPick(
        ticker="AAA",
        reasons=(settled("AAA"),),
        allocation_pct=D(40),
        confidence=confidence,
        reasoning="up",
        plan=PickPlan(stop_atr=stop_atr),
    )
    known = Evidence(
        ticker="AAA",
        risk_score=1.0,
        measured_risk=1.0,
        price=price,
        atr=(price * range_pct / 100).quantize(D("0.000001")),
    )
    verdict = evaluate(
        [pick],
        {"AAA": known},
        Portfolio(
            cycle_id=ID,
            op_id=ID,
            as_of="2012-06-29",
            account="main",
            cash=Money(amount=EQUITY),
            equity=Money(amount=EQUITY),
        ),
        AccountLimits(),
        None,
        {"AAA": price},
        moves=moving({"AAA": 10.0}, {}),
    )
    for bought in verdict.decisions:
        assert bought.plan is not None
        stop = bought.plan.stop_price
        if stop is None:
            continue
        most = EQUITY * max(D("0.5"), D(str(confidence))) / 100
        assert bought.plan.risk.amount <= most + D("0.01")
        # It opens where the reserve still covers the costs, or lower, above its stop.
        room = price * (CASH_RESERVE_BPS - COSTS_BPS) / BPS_IN_ONE - ROUNDED
        opened = max(price + room * D(str(opens)), stop.amount + D("0.01")).quantize(D("0.01"))
        if opened > price + room:
            continue
        lost = _lost(bought.quantity, opened, stop.amount, days)
        assert lost <= bought.plan.risk.amount + FEES_ROUNDED


def _lost(quantity: Decimal, opened: Decimal, stop: Decimal, days: list[float]) -> Decimal:
    """Bought at the open and sold by its stop, at the first of some sessions that reaches it and
    opens above it: the last one always does."""
    broker = PaperBroker(FEE_BPS, SLIPPAGE_BPS)
    order = MarketOrder(ID, "AAA", Side.BUY, quantity)
    bought = broker.answer(order, Opening("2012-07-02", opened), cash=EQUITY, held=D(0))
    assert isinstance(bought, Filled)
    for fall in (*days, 1.0):
        low = (opened * D(str(1 - fall * 0.99))).quantize(D("0.01"))
        day = DayPrices("2012-07-03", open=max(opened, stop), low=max(low, D("0.01")))
        sold = broker.answer_stop(
            StopOrder(ID, "AAA", bought.quantity, stop), day, held=bought.quantity
        )
        if isinstance(sold, Filled):
            paid = bought.quantity * bought.price + bought.fee
            return paid - (sold.quantity * sold.price - sold.fee)
    raise AssertionError("the last session reaches every stop")
