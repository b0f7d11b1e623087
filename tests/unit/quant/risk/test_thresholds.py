"""Every rule by itself, on its threshold and one step beyond it."""

from dataclasses import dataclass, field
from decimal import Decimal
from uuid import UUID

import pytest

from contracts.account import CoolingOff, OpenOrder, Position, SessionBefore, Side
from contracts.exit_signal import ExitSignal
from contracts.facts import ReportAhead
from contracts.halt import Halt
from contracts.reasons import Reason, Speaks
from contracts.risk import Check, Evidence
from contracts.trader import StockPick
from contracts.types import ExchangeRate, Foreign, Money
from libs.quant.risk.evaluation import WHOLE_SHARES, RuleVerdict
from libs.quant.risk.facts import Leg, RiskFacts
from libs.quant.risk.rules import BUY_CEILINGS, BUY_GATES, LEAST_SIZE, SELL_GATES
from tests.fakes.moves import moving
from tests.fakes.reasons import settled
from tests.unit.quant.risk.test_evaluation import WIDE, books, failed, held, judge, known, pick, usd

D = Decimal
NO = Halt(by="cli", since="2026-11-22T02:00:00Z")


@dataclass(frozen=True)
class Asked:
    """A proposal and what it is judged against; prices are 10."""

    picks: tuple[StockPick, ...]
    rest: dict[str, object] = field(default_factory=dict)

    def judged(self) -> RuleVerdict:
        return judge(*self.picks, **self.rest)  # type: ignore[arg-type]


def asked(*picks: StockPick, **rest: object) -> Asked:
    return Asked(picks, rest)


def limited(**limits: int) -> object:
    return WIDE.model_copy(update={name: D(value) for name, value in limits.items()})


def waiting(side: Side, quantity: int, hold: int, asset: str = "OLD") -> OpenOrder:
    order = UUID(int=1)
    return OpenOrder(
        order_id=order,
        asset=asset,
        side=side,
        quantity=quantity,
        hold=usd(hold),
        as_of="2012-06-29",
    )


def _before(equity: int) -> SessionBefore:
    return SessionBefore(session="2012-06-28", equity=usd(equity))


def _sells(quantity: int) -> OpenOrder:
    return waiting(Side.SELL, quantity, 0)


def _selling(quantity: int) -> OpenOrder:
    return _sells(quantity).model_copy(update={"asset": "AAA"})


def _sold(sessions_ago: int) -> CoolingOff:
    return CoolingOff(ticker="AAA", sold_on="2012-06-15", sessions_ago=sessions_ago)


def _half() -> dict[str, object]:
    return {"limits": limited(sector_pct_max=50)}


def reporting(sessions: int) -> Evidence:
    report = ReportAhead(on="2012-07-05", sessions=sessions)
    return known("AAA").model_copy(update={"report": report, "has_reports": True})


def priced(price: str) -> Evidence:
    return known("AAA").model_copy(update={"price": D(price)})


def issued(ticker: str, issuer: str, **facts: object) -> Evidence:
    return known(ticker).model_copy(update={"issuer": issuer, **facts})


def with_exits(*signals: ExitSignal, fires: bool = False) -> Evidence:
    """What the account's exit rules find of AAA; without `signals` of momentum alone."""
    momentum = ExitSignal(
        rule="momentum",
        primary=True,
        triggered=fires,
        detail="last month +1.00%, the 3 before it +2.00% on average",
        limit="least_gap_pct 0.5",
    )
    return known("AAA").model_copy(update={"exits": signals or (momentum,)})


def moved(volatility_pct: float) -> dict[str, object]:
    limits = limited(volatility_pct_max=10)
    return {"limits": limits, "moves": moving({"AAA": volatility_pct})}


def clustered() -> dict[str, object]:
    """AAA moves with what is held, from just as much on as counts."""
    moves = moving({"AAA": 5.0, "OLD": 5.0}, {("AAA", "OLD"): 0.6})
    return {"limits": limited(cluster_pct_max=50), "moves": moves}


def reasoned(*reasons: Reason) -> StockPick:
    return pick("AAA", 10).model_copy(update={"reasons": reasons})


A10, SELL = pick("AAA", 10), pick("OLD", 100, Side.SELL)
TECH = [known("AAA", sector="tech"), known("BBB", sector="tech")]
HOLDING = books(60_000, positions=(held("OLD", 4_000, sector="tech"),))
TEN = {"AAA": D(10)}

EURO = Foreign(
    price=Money(amount=D(8), currency="EUR"),
    rate=ExchangeRate(currency="EUR", into="USD", rate=D("1.25"), on="2012-06-29"),
)

BOTH_SIDES: dict[str, tuple[Asked, Asked]] = {
    "halted": (asked(A10), asked(A10, portfolio=books(halt=NO))),
    "equities_only": (asked(pick("BRK.B", 10)), asked(pick("BTC-USD", 10))),
    "research_evidence": (asked(A10), asked(A10, evidence=[known("BBB")], prices=TEN)),
    "own_reason": (
        asked(reasoned(settled("BBB"), settled("AAA"))),
        asked(reasoned(settled("BBB"), settled("AAA", speaks=Speaks.AGAINST))),
    ),
    "exchange_rate": (
        asked(A10, evidence=[known("AAA").model_copy(update={"foreign": EURO})]),
        asked(A10, evidence=[known("AAA").model_copy(update={"no_rate": "EUR"})]),
    ),
    "risk_needs_catalyst": (
        asked(A10, evidence=[known("AAA", risk_score=7.0)]),
        asked(A10, evidence=[known("AAA", risk_score=7.1)]),
    ),
    "no_doubling_down": (
        asked(A10, portfolio=books(positions=(held("AAA", 0),))),
        asked(A10, portfolio=books(positions=(held("AAA", 1),))),
    ),
    "not_being_sold": (
        asked(A10, portfolio=books(open_orders=(_selling(0),))),
        asked(A10, portfolio=books(open_orders=(_selling(1),))),
    ),
    "cooling_off": (
        asked(A10, portfolio=books(cooling_off=(_sold(10),))),
        asked(A10, portfolio=books(cooling_off=(_sold(9),))),
    ),
    "daily_loss": (
        asked(A10, portfolio=books(95_000, before=_before(100_000))),
        asked(A10, portfolio=books(94_999, before=_before(100_000))),
    ),
    "tick_size": (
        asked(A10, evidence=[priced("0.0001")], prices={"AAA": D("0.0001")}),
        asked(A10, evidence=[priced("0.000099")], prices={"AAA": D("0.000099")}),
    ),
    "price_drift": (
        asked(A10, prices={"AAA": D("10.5")}),
        asked(A10, prices={"AAA": D("10.500001")}),
    ),
    "something_to_sell": (
        asked(SELL, portfolio=books(positions=(held("OLD", 4),), open_orders=(_sells(3),))),
        asked(SELL, portfolio=books(positions=(held("OLD", 4),), open_orders=(_sells(4),))),
    ),
    "allocation_total": (
        asked(pick("AAA", 60), pick("BBB", 40), budget=1_000),
        asked(pick("AAA", 60), pick("BBB", "40.0001"), budget=1_000),
    ),
    "sector_allocation": (
        asked(pick("AAA", 25), pick("BBB", 25), evidence=TECH, **_half(), budget=1_000),
        asked(pick("AAA", 25), pick("BBB", "25.0001"), evidence=TECH, **_half(), budget=1_000),
    ),
    "sector_exposure": (
        asked(A10, evidence=TECH, **_half(), portfolio=HOLDING, budget=100_000),
        asked(pick("AAA", "10.01"), evidence=TECH, **_half(), portfolio=HOLDING, budget=100_000),
    ),
    "position_size": (
        asked(pick("AAA", 30), limits=limited(position_pct_max=30)),
        asked(pick("AAA", "30.01"), limits=limited(position_pct_max=30)),
    ),
    "order_size": (
        asked(pick("AAA", 30), limits=limited(order_pct_max=30)),
        asked(pick("AAA", "30.01"), limits=limited(order_pct_max=30)),
    ),
    "gross_exposure": (
        asked(A10, portfolio=HOLDING, limits=limited(gross_exposure_pct_max=50), budget=100_000),
        asked(
            pick("AAA", "10.01"),
            portfolio=HOLDING,
            limits=limited(gross_exposure_pct_max=50),
            budget=100_000,
        ),
    ),
    "cash": (
        asked(pick("AAA", 100), portfolio=books(10_100), budget=10_000),
        asked(pick("AAA", 100), portfolio=books("10099.99"), budget=10_000),
    ),
    "report_window": (
        asked(A10, evidence=[reporting(4)], limits=limited(report_sessions=3)),
        asked(A10, evidence=[reporting(3)], limits=limited(report_sessions=3)),
    ),
    "one_share_class": (
        asked(A10, pick("BBB", 10), evidence=[issued("AAA", "Alpha"), issued("BBB", "Beta")]),
        asked(A10, pick("BBB", 10), evidence=[issued("AAA", "Alpha"), issued("BBB", "Alpha")]),
    ),
    "exit_rules": (
        asked(A10, evidence=[with_exits(fires=False)]),
        asked(A10, evidence=[with_exits(fires=True)]),
    ),
    # The stop at 9.70 and a percent for fees and a gap lose 4% of what is bought, and a confidence
    # of 0.5 leaves half of the limit.
    "risk_per_trade": (
        asked(pick("AAA", 25), limits=limited(risk_per_trade_pct_max=2)),
        asked(pick("AAA", "25.01"), limits=limited(risk_per_trade_pct_max=2)),
    ),
    "account_volatility": (
        asked(pick("AAA", 50), **moved(20)),
        asked(pick("AAA", "50.01"), **moved(20)),
    ),
    "cluster_exposure": (
        asked(A10, evidence=TECH, **clustered(), portfolio=HOLDING, budget=100_000),
        asked(
            pick("AAA", "10.01"), evidence=TECH, **clustered(), portfolio=HOLDING, budget=100_000
        ),
    ),
    "least_size": (
        asked(pick("AAA", 50), limits=limited(position_shares_min=50), budget=1_000),
        asked(pick("AAA", 50), limits=limited(position_shares_min=51), budget=1_000),
    ),
    WHOLE_SHARES: (asked(pick("AAA", 1), budget=1_000), asked(pick("AAA", 1), budget=999)),
}


def test_no_rule_is_left_out():
    named = {rule.name for rule in (*BUY_GATES, *BUY_CEILINGS, LEAST_SIZE, *SELL_GATES)}
    assert set(BOTH_SIDES) == named | {WHOLE_SHARES}


@pytest.mark.parametrize("rule", BOTH_SIDES)
def test_what_stands_on_the_threshold_passes_every_rule(rule):
    verdict = BOTH_SIDES[rule][0].judged()
    assert failed(verdict) == set()
    assert verdict.adjustments == verdict.vetoed == ()


@pytest.mark.parametrize("rule", BOTH_SIDES)
def test_one_step_beyond_it_this_rule_alone_cuts_or_vetoes_and_says_why(rule):
    verdict = BOTH_SIDES[rule][1].judged()
    assert failed(verdict) == {rule}
    assert verdict.adjustments
    assert all(f": {rule}: " in sentence for sentence in verdict.adjustments)


@pytest.mark.parametrize(("ago", "words"), [(1, "1 session ago"), (9, "9 sessions ago")])
def test_a_buy_too_soon_after_a_sale_is_told_when_that_was(ago: int, words: str):
    (sentence,) = asked(A10, portfolio=books(cooling_off=(_sold(ago),))).judged().adjustments
    assert f"sold on 2012-06-15, {words}; limit 10 sessions" in sentence


@pytest.mark.parametrize(
    ("reasons", "told"),
    [
        ((), "no reason is given for it that could be looked up (no reason;"),
        (
            (settled("BBB"),),
            "none of its reasons is a fact of AAA that speaks for it (0 of 1 reasons;",
        ),
        (
            (settled("AAA", speaks=Speaks.AGAINST),),
            "none of its reasons is a fact of AAA that speaks for it (0 of 1 reasons;",
        ),
        ((settled("AAA", about="account"),), "none of its reasons is a fact of AAA"),
    ],
    ids=["none", "another ticker's", "against", "named as its own but of the account"],
)
def test_a_buy_that_nothing_of_its_own_speaks_for_is_vetoed_in_words(reasons, told):
    verdict = asked(reasoned(*reasons)).judged()
    assert verdict.vetoed == ("AAA",)
    (sentence,) = verdict.adjustments
    assert sentence.startswith("AAA: own_reason: buy of 10% vetoed: ")
    assert told in sentence


def test_a_sale_needs_no_reason():
    portfolio = books(positions=(held("OLD", 4),))
    assert asked(SELL, portfolio=portfolio).judged().decisions


@pytest.mark.parametrize(
    ("has_reports", "told"),
    [
        (False, ("no calendar of its reports is known", "nobody knows when it reports")),
        (True, ("none announced", "no report that is known of is near")),
    ],
)
def test_a_buy_of_whose_reports_no_calendar_is_known_passes_and_says_so(
    has_reports: bool, told: tuple[str, str]
):
    evidence = known("AAA").model_copy(update={"has_reports": has_reports})
    verdict = asked(A10, evidence=[evidence]).judged()
    (check,) = [check for check in verdict.checks if check.rule == "report_window"]
    assert check.passed
    assert check.value == told[0]
    assert told[1] in check.reason


def test_a_rule_shows_the_nearest_value_though_it_computes_rounding_down():
    checks = asked(pick("AAA", "49.9"), **moved(20)).judged().checks
    (volatility,) = [check for check in checks if check.rule == "account_volatility"]
    assert volatility.value.startswith("10.0% a year with all buys"), "9.98"


def exit_check(evidence: Evidence, **limits: bool) -> Check:
    verdict = asked(A10, evidence=[evidence], limits=WIDE.model_copy(update=limits)).judged()
    (check,) = [check for check in verdict.checks if check.rule == "exit_rules"]
    return check


def test_a_veto_by_an_exit_rule_names_it_with_its_value_and_its_threshold() -> None:
    check = exit_check(with_exits(fires=True))
    assert not check.passed
    assert check.value == "momentum: last month +1.00%, the 3 before it +2.00% on average"
    assert check.limit == "least_gap_pct 0.5"
    assert "the account's own exit rule would sell it at the same close" in check.reason


def test_an_account_may_switch_that_rule_off() -> None:
    check = exit_check(with_exits(fires=True), exits_veto_buys=False)
    assert check.passed
    assert check.limit == "not watched"


def test_an_exit_rule_without_enough_history_sells_nothing_and_that_is_told() -> None:
    failed = ExitSignal(rule="momentum", primary=True, failed=True, detail="2 of 4 months")
    check = exit_check(with_exits(failed))
    assert check.passed
    assert check.value == "momentum: 2 of 4 months"


def test_exit_rules_that_cannot_be_read_let_nothing_pass() -> None:
    check = exit_check(known("AAA").model_copy(update={"exits": None}))
    assert not check.passed
    assert check.value == "unknown"


@pytest.mark.parametrize("fires", [False, True])
def test_a_buy_that_rules_read_before_judged_says_so(fires: bool) -> None:
    note = "the exit rules read before stand: exit_signals.toml cannot be used"
    check = exit_check(with_exits(fires=fires).model_copy(update={"exits_note": note}))
    assert check.passed is not fires
    assert check.reason.endswith(f"; {note}")


GOOG, GOOGL = issued("GOOG", "CIK 1652044"), issued("GOOGL", "CIK 1652044")


def check_of(rule: str, evidence: list[Evidence] | None = None, **portfolio: object) -> Check:
    """A rule's check of a buy of GOOG by an account with GOOGL in its books somewhere."""
    its = books(10_000).model_copy(update={"issuers": {"GOOGL": "CIK 1652044"}, **portfolio})
    verdict = asked(pick("GOOG", 10), evidence=evidence or [GOOG], portfolio=its).judged()
    (check,) = [each for each in verdict.checks if (each.rule, each.ticker) == (rule, "GOOG")]
    return check


def test_another_share_class_of_what_is_held_or_ordered_is_no_new_position() -> None:
    for portfolio, seen in (
        ({"positions": (held("GOOGL", 10),)}, "GOOGL (same issuer) held"),
        (
            {"open_orders": (waiting(Side.BUY, 1, 10, "GOOGL"),)},
            "GOOGL (same issuer) in an open order",
        ),
    ):
        check = check_of("no_doubling_down", **portfolio)
        assert (check.passed, check.value) == (False, seen)
    unknown = check_of("no_doubling_down", positions=(held("GOOGL", 10),), issuers={})
    assert unknown.passed, "a ticker whose issuer is not known is its own"


@pytest.mark.parametrize(
    ("positions", "issuers", "room"),
    [
        ((), {}, "1,200.00 USD"),
        ((held("GOOGL", 50),), {"GOOGL": "CIK 1652044"}, "700.00 USD"),
        ((held("GOOGL", 200),), {"GOOGL": "CIK 1652044"}, "0.00 USD"),
        ((held("GOOGL", 50),), {}, "1,200.00 USD"),
    ],
)
def test_the_limit_of_a_position_holds_for_all_share_classes_of_an_issuer_together(
    positions: tuple[Position, ...], issuers: dict[str, str], room: str
) -> None:
    (rule,) = [rule for rule in BUY_CEILINGS if rule.name == "position_size"]
    cash = 10_000 - sum(int(position.value) for position in positions)
    portfolio = books(cash, positions=positions, issuers=issuers)
    limits = WIDE.model_copy(update={"position_pct_max": D(12)})
    facts = RiskFacts({"GOOG": GOOG}, portfolio, limits, D(10_000), {"GOOG": D(10)})
    found = rule.judge(Leg("GOOG", Side.BUY, D(20), pick("GOOG", 20)), facts)
    assert found.value == "2,000.00 USD asked for"
    assert found.limit == room


def test_another_share_class_cools_off_too() -> None:
    sold = CoolingOff(ticker="GOOGL", sold_on="2012-06-28", sessions_ago=1)
    check = check_of("cooling_off", cooling_off=(sold,))
    assert not check.passed
    assert check.value == "GOOGL (same issuer) sold on 2012-06-28, 1 session ago"


def test_another_share_class_in_an_open_sale_is_not_bought() -> None:
    check = check_of("not_being_sold", open_orders=(waiting(Side.SELL, 5, 0, "GOOGL"),))
    assert not check.passed
    assert check.value == "GOOGL (same issuer) 5 shares in an open sale"


def test_a_report_that_is_told_of_another_share_class_counts() -> None:
    report = ReportAhead(on="2012-07-05", sessions=1)
    other = issued("GOOGL", "CIK 1652044", report=report, has_reports=True)
    check = check_of("report_window", [GOOG, other])
    assert not check.passed
    assert check.value.startswith("GOOGL (same issuer) a report on 2012-07-05")


def test_of_two_share_classes_the_larger_buy_counts_and_it_names_the_other() -> None:
    verdict = asked(pick("GOOG", 10), pick("GOOGL", 20), evidence=[GOOG, GOOGL]).judged()
    assert [decision.asset for decision in verdict.decisions] == ["GOOGL"]
    (check,) = [
        each for each in verdict.checks if each.rule == "one_share_class" and not each.passed
    ]
    assert check.ticker == "GOOG"
    assert check.value == "GOOGL (same issuer) 20% asked for"


def test_nothing_is_bought_where_a_file_of_something_held_cannot_be_read() -> None:
    why = "OLD.csv, line 3: close is 'abc': not a number"
    check = check_of("daily_loss", incomplete=why)
    assert (check.passed, check.value) == (False, f"unknown: {why}")
    (sentence,) = asked(A10, portfolio=books(incomplete=why)).judged().adjustments
    assert "the account's equity is incomplete" in str(sentence)
