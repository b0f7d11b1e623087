"""Whatever a command says, what is bought stays within the limits by execution's own sources."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from contracts.account import AccountLimits, OrderStatus
from contracts.constraints import Constraints
from contracts.execution import ExecuteDecisions
from contracts.exit_signal import ExitSignal
from contracts.facts import DatedEvent, EventKind, TickerFacts
from contracts.message import Pipeline
from contracts.plugins import PluginVerdict
from contracts.risk import DecisionAction, DecisionValidation, Evidence, PortfolioDecision
from contracts.trader import PickPlan, StockPick
from contracts.types import Money
from libs.broker.broker import Opening
from libs.broker.paper import PaperBroker
from libs.quant.exchange import PriceMark
from services.execution.account import Account, Quotes
from services.execution.books import Book, Books, Holding
from services.execution.changes import Changes
from services.execution.logic import execute
from services.execution.record import Bounds
from tests.fakes.moves import calm
from tests.fakes.reasons import settled

D = Decimal
FRIDAY, MONDAY = date(2012, 6, 29), date(2012, 7, 2)
SECTORS = {"AAA": "Tech", "BBB": "Tech", "CCC": "Tech", "DDD": "Energy"}
"""The others have none."""
FIRES = ExitSignal(rule="momentum", primary=True, triggered=True)
TICKERS = (*SECTORS, "EEE", "FFF", "GGG", "HHH")
EVENT = DatedEvent(
    id="headline-made-up",
    ticker="FFF",
    kind=EventKind.HEADLINE,
    on=FRIDAY,
    known_at=datetime(2012, 6, 29, 12, tzinfo=UTC),
    text="a merger",
)
PRICE = D(10)
CASH, HELD = D(60_000), D(4_000)
EQUITY = CASH + HELD * PRICE
LIMITS = AccountLimits(risk_per_trade_pct_max=D(2))
UNCONSTRAINED = Constraints()
LOOSE = AccountLimits(
    sector_pct_max=D(100), position_pct_max=D(100), order_pct_max=D(100), risk_score_max=10
)
PCT = st.sampled_from([D(0), D("0.0001"), D(1), D(25), D(40), D(50), D(100)])

lies = st.builds(
    dict,
    sector=st.sampled_from(["Tech", "tech ", "Energy", "unknown", "", "AAA's own", "zz"]),
    risk_score=st.floats(0, 10),
    measured_risk=st.floats(0, 10),
    catalyst=st.sampled_from(["", "it will rise"]),
    catalyst_event=st.sampled_from([None, EVENT]),
    price=st.sampled_from([D("0.000001"), D(1), D("9.9"), PRICE, D("10.5"), D(10_000)]),
    confidence=st.floats(0, 1),
    no_rate=st.sampled_from([None, "EUR"]),
    exits=st.sampled_from([None, (), (ExitSignal(rule="momentum", primary=True),)]),
)
asked = st.builds(
    dict,
    quantity=st.sampled_from([D(1), D(100), D(4_000), D(1_000_000_000)]),
    price=st.sampled_from([D("0.000001"), PRICE, D(10_000)]),
    allocation_pct=PCT,
    about=st.sampled_from([None, None, None, (), ("AAA", "ZZZ")]),
    stop_atr=st.sampled_from([1.0, 3.0, 6.0]),
)


def reasoned(ticker: str, leg: dict[str, Any]) -> Sequence[str]:
    """About whom the reasons of a proposal are: unless it is told otherwise, its own ticker."""
    about: Sequence[str] | None = leg.get("about")
    return (ticker,) if about is None else about


def command(legs: dict[str, Any], evidence: dict[str, Any], budget: Decimal) -> ExecuteDecisions:
    one = {"cycle_id": UUID(int=1), "op_id": UUID(int=2), "as_of": FRIDAY}
    decisions = tuple(
        PortfolioDecision(
            action=DecisionAction.BUY,
            asset=ticker,
            quantity=leg["quantity"],
            price=Money(amount=leg["price"]),
            allocation_pct=leg["allocation_pct"],
            confidence=1.0,
            reasoning="because",
            strategy_used="thief",
        )
        for ticker, leg in legs.items()
    )
    validation = DecisionValidation(
        **one,
        passed=True,
        decisions=decisions,
        proposal_hash="0" * 64,
        proposals=tuple(
            StockPick(
                ticker=ticker,
                allocation_pct=100,
                confidence=1,
                reasoning="because",
                reasons=tuple(settled(ticker, about) for about in reasoned(ticker, leg)),
                plan=PickPlan(stop_atr=leg.get("stop_atr", 3.0)),
            )
            for ticker, leg in legs.items()
        ),
        evidence=tuple(Evidence(ticker=ticker, **said) for ticker, said in evidence.items()),
        limits=LOOSE,
        budget=Money(amount=budget),
    )
    return ExecuteDecisions(
        **one,
        now=datetime(2026, 11, 22, tzinfo=UTC),
        pipeline=Pipeline(name="rules"),
        state="executing",
        step="execute",
        workflow_version=1,
        seed=0,
        decision_validation=validation,
    )


def account() -> Account:
    """4,000 shares of AAA, which are 40% of it and Tech, and cash."""
    return Account(
        name="main",
        currency="USD",
        clock=FRIDAY,
        limits=LIMITS,
        books=Books("USD", sums={Book.CASH: CASH}, holdings={"AAA": Holding(HELD, HELD * PRICE)}),
    )


def facts_of(ticker: str) -> TickerFacts:
    """By execution's own source: FFF is too risky, and nothing is announced of it. The account's
    exit rules would sell HHH at once."""
    risk = 9.0 if ticker == "FFF" else 3.0
    return TickerFacts(
        ticker=ticker,
        currency="USD",
        price=PRICE,
        measured_risk=risk,
        atr=PRICE / 100,
        exits=(FIRES,) if ticker == "HHH" else (),
    )


def quotes() -> Quotes:
    return Quotes(
        closes={(ticker, FRIDAY): PriceMark(PRICE, "USD", PRICE) for ticker in TICKERS},
        openings={(ticker, FRIDAY): Opening(MONDAY, PRICE) for ticker in TICKERS},
        due={FRIDAY: MONDAY},
        sectors=SECTORS,
        # Of GGG too little is known to measure anything.
        facts={ticker: facts_of(ticker) for ticker in TICKERS if ticker != "GGG"},
        moves=calm([ticker for ticker in TICKERS if ticker != "GGG"]),
    )


def bought(changes: Changes) -> dict[str, Decimal]:
    filled = (each for each in changes.placed if each.status is OrderStatus.FILLED)
    return {each.ticker: each.quantity * PRICE for each in filled}


def judged(
    legs: dict[str, Any],
    evidence: dict[str, Any],
    budget: Decimal | None,
    constraints: Constraints = UNCONSTRAINED,
) -> Changes:
    on_record = Bounds(None if budget is None else Money(amount=budget), constraints)
    sent = command(legs, evidence, D(10**12))
    return execute(sent, on_record, account(), quotes(), PaperBroker(D(0), D(0)), {})[1]


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    legs=st.dictionaries(st.sampled_from(TICKERS), asked, min_size=1),
    evidence=st.fixed_dictionaries({}, optional=dict.fromkeys(TICKERS, lies)),
    budget=st.sampled_from([None, D(0), D(5_000), D(10**12)]),
)
def test_no_limit_is_passed_whatever_the_command_says(
    legs: dict[str, Any], evidence: dict[str, Any], budget: Decimal | None
) -> None:
    changes = judged(legs, evidence, budget)
    sectors = defaultdict(Decimal, {"Tech": HELD * PRICE})
    for ticker, value in bought(changes).items():
        sectors[SECTORS.get(ticker, "unknown")] += value
        assert ticker != "AAA", "what is held is not bought again"
        assert value <= EQUITY * LIMITS.position_pct_max / 100
        # Ten is what it costs, and a range is 0.10: execution's own, whatever the command says.
        away = max(D(str(legs[ticker]["stop_atr"])) / 100, D("0.01")) + D("0.01")
        assert value * away <= EQUITY * LIMITS.risk_per_trade_pct_max / 100
        assert value <= legs[ticker]["quantity"] * PRICE
        assert ticker in reasoned(ticker, legs[ticker]), "nor without a reason of its own"
        assert ticker in evidence, "nothing is bought without evidence"
        assert ticker not in {"FFF", "GGG"}, "too risky, or not to be measured"
        assert ticker != "HHH", "the account's exit rules would sell it at the same close"
    for value in sectors.values():
        assert value <= EQUITY * LIMITS.sector_pct_max / 100
    assert changes.account.cash_free >= 0
    assert sum(bought(changes).values()) <= (CASH if budget is None else budget)
    for each in changes.placed:
        assert each.sector == SECTORS.get(each.ticker, "unknown")


def honest(sector: str) -> dict[str, Any]:
    return {"sector": sector, "risk_score": 1.0, "measured_risk": 1.0, "price": PRICE}


WHOLE = {"quantity": D(10_000), "price": PRICE, "allocation_pct": D(40)}


def test_a_sector_that_the_command_makes_up_buys_no_more_than_the_true_one_has_room_for() -> None:
    changes = judged({"BBB": WHOLE}, {"BBB": honest("something else")}, None)
    # 40% of equity are in the sector already, and its limit is 50%.
    assert EQUITY / 10 - PRICE <= bought(changes)["BBB"] <= EQUITY / 10


def test_what_the_source_has_no_sector_of_shares_one() -> None:
    known = quotes()
    known = replace(known, facts={**known.facts, "FFF": facts_of("EEE")})
    legs, evidence = dict.fromkeys(("EEE", "FFF"), WHOLE), {"EEE": honest("a"), "FFF": honest("b")}
    sent = command(legs, evidence, D(10**12))
    _, changes = execute(sent, Bounds(), account(), known, PaperBroker(D(0), D(0)), {})
    assert 0 < sum(bought(changes).values()) <= EQUITY / 2


def test_a_share_that_does_not_trade_today_keeps_the_sector_that_it_had() -> None:
    known = Quotes(**{**vars(quotes()), "sectors": {"BBB": "Tech"}})
    held = Account(**{**vars(account()), "sectors": {"AAA": "Tech"}})
    sent = command({"BBB": WHOLE}, {"BBB": honest("Tech")}, D(10**6))
    _, changes = execute(sent, Bounds(), held, known, PaperBroker(D(0), D(0)), {})
    assert EQUITY / 10 - PRICE <= bought(changes)["BBB"] <= EQUITY / 10


def test_a_risk_that_the_command_talks_lower_is_measured_again_and_its_event_looked_for() -> None:
    claims = {**honest("Tech"), "measured_risk": 0.0, "catalyst_event": EVENT}
    assert bought(judged({"FFF": WHOLE}, {"FFF": claims}, None)) == {}
    assert bought(judged({"GGG": WHOLE}, {"GGG": claims}, None)) == {}
    true = quotes()
    known = replace(true, facts={"FFF": facts_of("FFF").model_copy(update={"events": (EVENT,)})})
    sent = command({"FFF": WHOLE}, {"FFF": claims}, D(10**12))
    _, changes = execute(sent, Bounds(), account(), known, PaperBroker(D(0), D(0)), {})
    assert bought(changes)["FFF"] > 0, "an event that the source has is one"


def test_constraints_of_the_request_on_record_bind_whatever_the_command_leaves_out() -> None:
    legs, evidence = {"DDD": WHOLE}, {"DDD": honest("Energy")}
    assert bought(judged(legs, evidence, None))
    for constraints in (Constraints(no_buys=True), Constraints(exclude_tickers=("DDD",))):
        assert bought(judged(legs, evidence, None, constraints)) == {}


@pytest.mark.parametrize("about", [(), ("AAA",), ("DDD",)])
def test_what_no_proposal_gives_a_reason_of_its_own_for_is_not_bought(about: Any) -> None:
    leg, evidence = {**WHOLE, "about": about}, {"DDD": honest("Energy")}
    assert bool(bought(judged({"DDD": leg}, evidence, None))) == ("DDD" in about)


def test_the_budget_that_counts_is_that_of_the_request_on_record() -> None:
    changes = judged({"DDD": WHOLE}, {"DDD": honest("Energy")}, D(2_000))
    assert bought(changes) == {"DDD": D(800)}


def test_a_share_class_that_the_command_hides_is_known_from_executions_own_source() -> None:
    known = replace(quotes(), issuers={"AAA": "CIK 1", "DDD": "CIK 1"})
    sent = command({"DDD": WHOLE}, {"DDD": honest("Energy")}, D(10**12))
    _, changes = execute(sent, Bounds(), account(), known, PaperBroker(D(0), D(0)), {})
    assert bought(changes) == {}, "AAA is held, and DDD is another class of its shares"
    (order,) = changes.placed
    assert "AAA (same issuer) held" in order.reason


RULE = "my_rules:penny_stock"


def held_to(ceiling: int, *, plugins: tuple[str, ...] = (RULE,), asked: bool = True) -> Changes:
    """What is bought of DDD under a plug-in's answer on record, with these in the settings."""
    verdict = PluginVerdict(
        plugin=RULE, sha256="", ticker="DDD", asked=D(2_000), ceiling=D(ceiling), reason="why"
    )
    sent = command({"DDD": WHOLE}, {"DDD": honest("Energy")}, D(10**12))
    validation = sent.decision_validation.model_copy(
        update={"plugins": (verdict,) if asked else ()}
    )
    sent = sent.model_copy(update={"decision_validation": validation})
    bounds = Bounds(plugins=plugins)
    return execute(sent, bounds, account(), quotes(), PaperBroker(D(0), D(0)), {})[1]


def test_the_answer_of_a_plug_in_on_record_binds_whatever_the_command_asks_for() -> None:
    assert bought(held_to(100)) == {"DDD": 100 * PRICE}
    assert bought(held_to(100, plugins=())) == {"DDD": 100 * PRICE}
    assert bought(held_to(2_000)) == bought(held_to(2_000_000))
    (vetoed,) = held_to(0).placed
    assert vetoed.status is OrderStatus.REJECTED
    assert RULE in vetoed.reason


def test_a_buy_that_a_plug_in_of_the_settings_was_not_asked_about_is_not_bought() -> None:
    assert bought(held_to(0, plugins=(), asked=False))
    (order,) = held_to(0, asked=False).placed
    assert order.status is OrderStatus.REJECTED
    assert "was not asked about this buy" in order.reason
