"""Whatever a model says in any field of any draft, no limit by sector, cash, position, risk or date
is passed: the facts are the market's, and judgements only cut.
"""

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contracts.account import Portfolio, Position
from contracts.constraints import Constraints, constraints_of
from contracts.cycle import CycleRequest
from contracts.facts import DatedEvent, EventKind, TickerFacts
from contracts.message import Pipeline
from contracts.research import (
    AssetView,
    Plan,
    QuantReport,
    QuantSignal,
    ResearchDraft,
    ResearchReport,
)
from contracts.risk import (
    DecisionAction,
    DecisionValidation,
    PickReview,
    ReviewDraft,
    ValidateDecision,
)
from contracts.trader import DailyPicks, PicksDraft
from contracts.types import Money
from libs.facts.fact import Fact, FactIndex, Key
from services.research.logic import research_report
from services.risk.logic import validate
from services.risk.review import trimmed
from services.trader.logic import Ahead, daily_picks
from tests.fakes.moves import calm
from tests.fakes.reasons import drafted

D = Decimal
DAY = date(2012, 6, 29)
OWN: dict[str, Any] = {"cycle_id": UUID(int=1), "op_id": UUID(int=2), "as_of": DAY}
CASH = D(100_000)
EVENT = DatedEvent(
    id="report-abc",
    ticker="RISKY2",
    kind=EventKind.REPORT,
    on=date(2012, 6, 20),
    known_at=datetime(2012, 6, 20, tzinfo=UTC),
)


def facts(ticker: str, price: int, sector: str, risk: float, *events: DatedEvent) -> TickerFacts:
    return TickerFacts(
        ticker=ticker,
        currency="USD",
        sector=sector,
        price=D(price),
        measured_risk=risk,
        atr=D(price) / 100,
        events=events,
    )


FACTS = {
    each.ticker: each
    for each in (
        facts("TECH1", 10, "tech", 2),
        facts("TECH2", 99, "tech", 6),
        facts("OIL", 7, "energy", 4),
        facts("LOST1", 13, "unknown", 3),
        facts("LOST2", 21, "unknown", 3),
        facts("RISKY1", 5, "biotech", 9),
        facts("RISKY2", 5, "biotech", 9, EVENT),
        facts("HELD", 50, "tech", 1),
    )
}
NAMED = FactIndex.of(
    [
        *(
            Fact(Key(each.ticker, "close"), each.price, "USD", "close", call="E0")
            for each in FACTS.values()
        ),
        Fact(
            Key("RISKY2", EVENT.kind.value, EVENT.on, EVENT.id.partition("-")[2]),
            EVENT.text,
            "text",
            "headline",
            call="E0",
        ),
    ]
)
TICKERS = st.sampled_from(sorted(FACTS))
TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20)
WORDS = st.one_of(TEXTS, st.sampled_from([EVENT.id, "tech", "unknown", "EUR"]))
SCORES = st.floats(0, 10)
SURE = st.floats(0, 1)
REASONS = st.fixed_dictionaries(
    {
        "fact": st.one_of(TEXTS, st.sampled_from(sorted(NAMED.by_name))),
        "beside": st.one_of(TEXTS, st.sampled_from(sorted(NAMED.by_name))),
        "speaks": st.sampled_from(["for", "against"]),
        "why": TEXTS,
    }
)
SHARES = st.one_of(st.just("100"), st.decimals(0, 100, places=2).map(str))
INVENTED = st.fixed_dictionaries(
    {},
    optional={
        **dict.fromkeys(("sector", "currency", "exchange", "name", "catalyst_event"), WORDS),
        "current_price": st.decimals(0, 1_000_000, places=2).map(str),
        "measured_risk": SCORES,
        "analysis_date": st.dates().map(str),
    },
)
"""Facts that nobody asked a model for, under the names that the desk gives them."""
FINDINGS = st.builds(
    lambda known, invented: {**known, **invented},
    st.fixed_dictionaries(
        {
            "ticker": TICKERS,
            "fundamental_score": SCORES,
            "technical_score": SCORES,
            "risk_score": SCORES,
            "catalyst": st.one_of(WORDS, st.sampled_from(sorted(NAMED.by_name))),
            "reasons": st.lists(REASONS, max_size=2),
            "sector_peers": st.lists(TICKERS, max_size=3),
        }
    ),
    INVENTED,
)
PICKS = st.builds(
    lambda known, invented, own: {
        **known,
        "reasons": [*known["reasons"], *own * [drafted(known["ticker"], "close")]],
        **invented,
    },
    st.fixed_dictionaries(
        {
            "ticker": TICKERS,
            "allocation_pct": SHARES,
            "reasons": st.lists(REASONS, max_size=3),
            "confidence": SURE,
        }
    ),
    st.fixed_dictionaries(
        {},
        optional={
            "stop_atr": st.floats(1, 6),
            "horizon_sessions": st.integers(1, 252),
            "review_event": WORDS,
            "stop_price": SCORES,
            "action": st.sampled_from(["buy", "sell"]),
            "price": SCORES,
            "reasoning": WORDS,
            "about": TICKERS,
        },
    ),
    st.booleans(),
)
LISTED = st.lists(PICKS, max_size=8)
CONSTRAINTS = st.fixed_dictionaries(
    {},
    optional={
        "max_positions": st.integers(0, 4).map(str),
        "max_allocation_pct": SHARES,
        "max_sector_pct": SHARES,
        "max_risk_score": SCORES.map(str),
        "exclude_tickers": TICKERS,
        "exclude_sectors": st.sampled_from(["tech", "Unknown", "energy"]),
        "no_buys": st.sampled_from(["true", "false"]),
        "a note": WORDS,
    },
)


def books() -> Portfolio:
    held = Position(
        ticker="HELD",
        quantity=D(200),
        average_cost=Money(amount=D(50)),
        price=Money(amount=D(50)),
        sector="tech",
    )
    cash = Money(amount=CASH)
    return Portfolio(
        **OWN, account="main", cash=cash, equity=Money(amount=CASH + held.value), positions=(held,)
    )


def judged(
    findings: list[Any],
    buys: list[Any],
    sales: list[Any],
    review: dict[str, Any],
    asked: dict[str, str],
    planned: dict[str, str],
) -> DecisionValidation:
    """The drafts on their way through the desk, each filled and judged by the shipped code."""
    research = ResearchDraft.model_validate({"tickers": findings})
    made = research_report(research, (), NAMED, FACTS, FACTS)
    report = ResearchReport(**OWN, analysis_date=DAY, **made)
    draft = PicksDraft.model_validate(
        {"picks": buys, "sell_recommendations": sales, "confidence": 1}
    )
    daily = DailyPicks(
        **OWN,
        llm="x",
        pick_date=DAY,
        **daily_picks(draft, NAMED, report, Ahead([])),
    )
    word = ReviewDraft.model_validate(review)
    pick_review = PickReview(
        **OWN,
        llm="x",
        pick_date=DAY,
        picks=trimmed(daily.picks, word.picks, word.vetoed_tickers)[0],
        sell_recommendations=trimmed(
            daily.sell_recommendations, word.sell_recommendations, word.vetoed_tickers
        )[0],
        confidence=word.confidence,
    )
    views = tuple(
        AssetView(ticker=name, signal=QuantSignal.BULLISH, confidence=1, reasoning="")
        for name in FACTS
    )
    return validate(
        ValidateDecision(
            **OWN,
            now=datetime(2026, 1, 1, tzinfo=UTC),
            pipeline=Pipeline(name="x"),
            state="validating_decision",
            step="validate",
            workflow_version=1,
            seed=0,
            request=CycleRequest(idempotency_key="k", constraints=asked),
            plan=Plan(
                **OWN,
                objective="o",
                assets=("OIL",),
                quant_question="q",
                expected_outputs=("RSI14",),
                constraints=planned,
            ),
            daily_picks=daily,
            pick_review=pick_review,
            quant_report=QuantReport(
                **OWN, signal=QuantSignal.BULLISH, confidence=1, reasoning="", assets=views
            ),
            research_report=report,
            portfolio=books(),
        ),
        calm(FACTS),
    )


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(
    findings=st.lists(FINDINGS, max_size=10),
    buys=LISTED,
    sales=LISTED,
    review=st.fixed_dictionaries(
        {"picks": LISTED, "sell_recommendations": LISTED, "confidence": SURE},
        optional={"vetoed_tickers": st.lists(TICKERS, max_size=3), "market_summary": WORDS},
    ),
    asked=CONSTRAINTS,
    planned=CONSTRAINTS,
)
def test_no_limit_is_passed(
    findings: list[Any],
    buys: list[Any],
    sales: list[Any],
    review: dict[str, Any],
    asked: dict[str, str],
    planned: dict[str, str],
) -> None:
    # A trader that agrees with the reviewer reaches further than two that differ.
    review["picks"] = [*review["picks"], *buys][:10]
    verdict = judged(findings, buys, sales, review, asked, planned)
    portfolio = books()
    limits, equity = portfolio.limits, portfolio.equity.amount
    both = constraints_of(asked).also(constraints_of(planned))
    bought = {each.asset: each for each in verdict.decisions if each.action is DecisionAction.BUY}
    spent = {name: each.quantity * FACTS[name].price for name, each in bought.items()}

    assert set(bought) <= {each["ticker"] for each in findings} & {each["ticker"] for each in buys}
    assert "HELD" not in bought
    for name in bought:
        named = [reason for each in buys if each["ticker"] == name for reason in each["reasons"]]
        assert any(
            reason["fact"].strip().startswith(f"{name}.") and reason["speaks"] == "for"
            for reason in named
        ), "nothing is bought that nothing of its own speaks for"
    assert sum(spent.values()) <= CASH
    assert sum(each.allocation_pct for each in bought.values()) <= 100
    tied = {"tech": D(10_000)}
    for sector in {FACTS[name].sector for name in bought}:
        inside = [name for name in bought if FACTS[name].sector == sector]
        most = min(limits.sector_pct_max, _or(both.max_sector_pct, D(100)))
        assert sum(bought[name].allocation_pct for name in inside) <= most
        exposed = sum(spent[name] for name in inside) + tied.get(sector, D(0))
        assert exposed <= max(equity * most / 100, tied.get(sector, D(0)))
    for name, each in bought.items():
        assert each.price == Money(amount=FACTS[name].price)
        assert spent[name] <= equity * min(limits.position_pct_max, limits.order_pct_max) / 100
        # A range is a hundredth of each price; the nearest stop that may be named is one away.
        assert spent[name] * 2 / 100 <= equity * limits.risk_per_trade_pct_max / 100
        assert FACTS[name].measured_risk <= min(
            limits.risk_score_max, _or(both.max_risk_score, 10.0)
        ) or (name == EVENT.ticker)
        assert each.allocation_pct <= _or(both.max_allocation_pct, D(100))
        assert name not in both.exclude_tickers
        assert FACTS[name].sector not in {item.lower() for item in both.exclude_sectors}
    assert not (bought and both.no_buys)
    if bought and both.max_positions is not None:
        assert len(bought) + 1 <= both.max_positions
    for each in verdict.decisions:
        if each.action is DecisionAction.SELL:
            assert (each.asset, each.quantity <= 200) == ("HELD", True)


def _or(value: Any, otherwise: Any) -> Any:
    return otherwise if value is None else value


def test_the_sound_of_it_buys_something() -> None:
    """The property above would hold of a desk that never buys."""
    finding = {"ticker": "OIL", "fundamental_score": 5, "technical_score": 9, "risk_score": 2}
    buy = {"ticker": "OIL", "allocation_pct": "20", "confidence": 1}
    buy["reasons"] = [drafted("OIL", "close")]
    reason = {"fact": "OIL.close", "speaks": "for"}
    verdict = judged(
        [{**finding, "reasons": [reason]}], [buy], [], {"picks": [buy], "confidence": 1}, {}, {}
    )
    assert [each.asset for each in verdict.decisions] == ["OIL"]
    assert Constraints() == verdict.constraints
