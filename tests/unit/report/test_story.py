"""What people are told of a cycle."""

from collections.abc import Sequence
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from contracts.account import Side
from contracts.approval import Approval, Verdict
from contracts.cycle import CycleStatus
from contracts.cycle_query import CycleView
from contracts.execution import DecisionView
from contracts.exit_signal import ExitCheck, ExitReport
from contracts.operation import OperationStatus, OperationView
from contracts.performance import OrderResult
from contracts.risk import DecisionValidation, PortfolioDecision, RuleOutcome
from contracts.types import Failure, Money
from libs.report import ending, rules, story
from libs.report.sections import SectionFact, text_of
from libs.report.story import MADE_UP, PipelineStory, Story
from libs.report.tones import Tone

CYCLE_ID = UUID("4332d851-4ebc-510c-b28d-0f5c50338936")


def only(told: Story) -> PipelineStory:
    (pipeline,) = told.pipelines
    return pipeline


def one(view: CycleView, nodes: Sequence[OperationView] = ()) -> PipelineStory:
    return only(story.tell(view, nodes))


def lines(facts: Sequence[SectionFact], label: str) -> list[str]:
    """The shown lines of the facts with this label, and how many more there are."""
    return [
        text
        for fact in facts
        if fact.label == label
        for text in (*map(text_of, fact.lines.shown), *filter(None, [fact.lines.more]))
    ]


def with_contracts(view: CycleView, **changed: Any) -> CycleView:
    """The view with fields of its contracts changed; None takes a contract away."""
    (pipeline,) = view.pipelines
    contracts: dict[str, Any] = dict(pipeline.contracts)
    for name, fields in changed.items():
        if fields is None:
            contracts.pop(name, None)
        else:
            contracts[name] = {**contracts.get(name, {}), **fields}
    return with_pipeline(view, contracts=contracts)


def with_pipeline(view: CycleView, **changed: Any) -> CycleView:
    (pipeline,) = view.pipelines
    return view.model_copy(update={"pipelines": (pipeline.model_copy(update=changed),)})


def ended(view: CycleView, status: CycleStatus, reason: str, **changed: Any) -> CycleView:
    """The view as it ended before anything was ordered."""
    found = with_pipeline(view, **{"status": status, "contracts": {}, **changed})
    return found.model_copy(update={"status": status, "reason": reason})


def without_orders(view: CycleView, **picks: Any) -> CycleView:
    nothing = {"decisions": [], "passed": False}
    return with_contracts(
        view, execution_result=None, decision_validation=nothing, daily_picks=picks
    )


# --- the head and the end -----------------------------------------------------------------------


def test_the_head_says_what_when_and_how_long(cycle_view: CycleView) -> None:
    told = story.tell(cycle_view)

    assert (told.title, told.took) == ("Decision of Fri 2012-06-29", "1.50 s")
    assert only(told).ending == ending.ReportEnding("bought 68 AAPL for 39,782.04 USD", Tone.GOOD)


def test_a_decision_on_made_up_prices_says_so_and_no_other_does(cycle_view: CycleView) -> None:
    made_up = with_contracts(cycle_view, portfolio={"synthetic": True})

    assert story.tell(made_up).note == MADE_UP
    assert story.tell(cycle_view).note == ""


@pytest.mark.parametrize(
    ("picks", "why"),
    [
        ({"picks": ()}, "the trader picked nothing"),
        ({}, "the rules vetoed 2 picks (risk needs catalyst)"),
    ],
)
def test_why_nothing_was_ordered_is_said_and_is_no_success(
    picks: dict[str, Any], why: str, cycle_view: CycleView
) -> None:
    told = one(without_orders(cycle_view, **picks))

    assert told.ending == ending.ReportEnding(f"nothing ordered: {why}", Tone.QUIET)
    assert lines(told.unordered, "Orders") == ["none"]
    assert lines(told.unordered, "Cash") == ["100,000.00 USD, unchanged"]


def test_a_decision_without_a_finding_warns_and_is_never_green(cycle_view: CycleView) -> None:
    view = with_contracts(without_orders(cycle_view, picks=()), research_report={"tickers": ()})

    assert one(view).ending == ending.ReportEnding(
        "no trade: the analyst gave no finding, so nothing could be bought", Tone.WARN
    )


def exit_report(*checks: ExitCheck) -> dict[str, Any]:
    report = ExitReport(
        cycle_id=CYCLE_ID, op_id=CYCLE_ID, as_of="2012-06-29", account="main", checks=checks
    )
    return report.model_dump(mode="json")


HOLDS = ExitCheck(ticker="AAPL", assessment="HOLD", note="nothing fired")
SELLS = ExitCheck(ticker="MSFT", assessment="STRONG EXIT (regime)", quantity=Decimal(3))
FAILS = ExitCheck(ticker="IBM", failure=Failure(code="no_history", message="too young"))


@pytest.mark.parametrize(
    ("checks", "why"),
    [
        ((HOLDS, FAILS), "nothing to sell: 2 positions checked"),
        ((HOLDS, SELLS), "nothing sold: the rules vetoed 1 exit"),
        ((), "nothing to sell: no position to check"),
    ],
)
def test_why_an_exit_cycle_sold_nothing_is_said(
    checks: tuple[ExitCheck, ...], why: str, cycle_view: CycleView
) -> None:
    view = with_contracts(cycle_view, execution_result=None, exit_report=exit_report(*checks))

    assert one(view).ending.words == why


def test_an_exit_cycle_says_what_its_prices_are(cycle_view: CycleView) -> None:
    report = {**exit_report(HOLDS), "market_source": "live, provisional; more"}
    view = with_contracts(cycle_view, signal_digest=None, exit_report=report)
    assert lines(story.tell(view).looked_at, "Prices") == ["live, provisional"]


def test_positions_to_be_sold_come_first_and_each_says_why(cycle_view: CycleView) -> None:
    told = one(with_contracts(cycle_view, exit_report=exit_report(HOLDS, FAILS, SELLS)))

    assert [(row.check.ticker, row.assessment, row.tone) for row in told.exits.items] == [
        ("MSFT", "STRONG EXIT (regime)", Tone.BAD),
        ("AAPL", "HOLD", Tone.QUIET),
        ("IBM", "not checked", Tone.WARN),
    ]
    assert [row.why for row in told.exits.items] == ["", "nothing fired", "too young"]
    assert told.tickers == ()


def sale(ticker: str, quantity: int, price: str) -> dict[str, Any]:
    decision = PortfolioDecision(
        action="sell",
        asset=ticker,
        quantity=Decimal(quantity),
        price=Money(amount=Decimal(price)),
        allocation_pct=Decimal(50),
        confidence=0.5,
        reasoning="EXIT (momentum)",
        strategy_used="exit_signals",
    )
    return decision.model_dump(mode="json")


def entered(ticker: str, quantity: int, cost: str, price: str) -> dict[str, Any]:
    plan = {
        "horizon_sessions": 60,
        "risk": {"amount": "500"},
        "risk_pct": "0.5",
        "thesis": "For: the long trend.",
        "since": "2012-05-14",
        "cycle_id": str(CYCLE_ID),
    }
    return {
        "ticker": ticker,
        "quantity": str(quantity),
        "average_cost": {"amount": cost},
        "price": {"amount": price},
        "opened_on": "2012-05-14",
        "plan": plan,
    }


def test_an_exit_tells_the_thesis_of_the_entry_and_what_came_of_it(cycle_view: CycleView) -> None:
    sells = ExitCheck(ticker="MSFT", assessment="EXIT (momentum)", quantity=Decimal(26))
    view = with_contracts(
        cycle_view,
        exit_report=exit_report(sells),
        execution_result=None,
        portfolio={"positions": [entered("MSFT", 53, "30.00", "33.00")]},
        decision_validation={"decisions": [sale("MSFT", 26, "33.00")], "passed": True},
    )

    (line,) = lines(one(view).verdicts, "Result")
    assert line == (
        "MSFT: 26 of 53 shares: +78.00 USD (+10.00%) at the close, before fees; "
        "bought on Mon 2012-05-14 (For: the long trend)"
    )


def test_an_exit_whose_result_is_known_says_it_once(cycle_view: CycleView) -> None:
    sold = OrderResult(order_id=UUID(int=9), ticker="MSFT", side=Side.SELL, status="rejected")
    view = with_contracts(
        cycle_view,
        portfolio={"positions": [entered("MSFT", 53, "30.00", "33.00")]},
        decision_validation={"decisions": [sale("MSFT", 26, "33.00")], "passed": True},
    )
    pipelines = tuple(it.model_copy(update={"results": (sold,)}) for it in view.pipelines)

    verdicts = one(view.model_copy(update={"pipelines": pipelines})).verdicts
    assert lines(verdicts, "Result") == []
    assert lines(verdicts, "Entry") == ["MSFT: bought on Mon 2012-05-14 (For: the long trend)"]


def test_a_decision_that_sells_nothing_has_nothing_that_came_of_it(cycle_view: CycleView) -> None:
    assert lines(one(cycle_view).verdicts, "Result") == []


def test_a_running_pipeline_says_where_it_is_and_whether_a_person_is_asked(
    cycle_view: CycleView,
) -> None:
    busy = one(ended(cycle_view, CycleStatus.RUNNING, "", state="analyzing"))
    asks = one(ended(cycle_view, CycleStatus.RUNNING, "", state="awaiting_approval"))

    assert (busy.ending.words, busy.ending.asks) == ("now analyzing", False)
    assert (asks.ending.words, asks.ending.asks) == ("waits for approval", True)


def test_what_waits_for_a_person_is_not_placed_yet(cycle_view: CycleView) -> None:
    waits = with_pipeline(
        with_contracts(cycle_view, execution_result=None), status=CycleStatus.RUNNING
    )

    assert lines(one(waits).unordered, "Orders") == ["not placed yet"]


def test_a_failed_cycle_names_the_step_once_and_gives_its_reason(cycle_view: CycleView) -> None:
    reason = "scanning/digest failed: 2012-06-30 is a weekend (not_a_session)"
    told = one(ended(cycle_view, CycleStatus.FAILED, reason, state="scanning"))

    assert told.ending == ending.ReportEnding(
        "2012-06-30 is a weekend (not_a_session)", Tone.BAD, "failed in scanning/digest"
    )
    assert list(told.unordered) == []


def test_where_it_stopped_is_what_the_reason_names_and_not_what_failed_after_it(
    cycle_view: CycleView, nodes: Sequence[OperationView]
) -> None:
    failed = {"status": OperationStatus.FAILED}
    later = nodes[-1].model_copy(update={**failed, "state": "memorizing", "name": "memorize"})
    reason = "analyzing/quant failed: the cycle's budget is used up (budget_exhausted)"
    view = ended(cycle_view, CycleStatus.FAILED, reason)

    after = (nodes[-1].model_copy(update=failed), later)
    told = one(view, after)

    assert story.tell(view, after).evidence.stage == "quant"
    assert told.ending.place == "failed in analyzing/quant"
    assert told.ending.words == "the cycle's budget is used up (budget_exhausted)"


def test_a_cancelled_cycle_says_where_it_was_stopped_and_why(
    cycle_view: CycleView, nodes: Sequence[OperationView]
) -> None:
    stopped = nodes[-1].model_copy(update={"status": OperationStatus.CANCELLED})

    told = one(ended(cycle_view, CycleStatus.CANCELLED, "enough"), (stopped,))

    assert told.ending == ending.ReportEnding("enough", Tone.WARN, "cancelled in analyzing/quant")
    assert told.ending.sentence == "cancelled in analyzing/quant: enough"


def test_a_persons_no_is_its_words_and_no_place(
    cycle_view: CycleView, nodes: Sequence[OperationView]
) -> None:
    told = one(ended(cycle_view, CycleStatus.REJECTED, "rejected by cli: too hot"), nodes)

    assert told.ending == ending.ReportEnding("rejected by cli: too hot", Tone.WARN)


def test_the_reason_of_a_cycle_of_two_is_none_of_its_pipelines(cycle_view: CycleView) -> None:
    (first,) = cycle_view.pipelines
    failed = first.model_copy(
        update={"status": CycleStatus.FAILED, "contracts": {}, "reason": "out of money"}
    )
    quiet = first.model_copy(update={"name": "rules", "contracts": {}})
    both = cycle_view.model_copy(update={"pipelines": (failed, quiet), "reason": "1 of 2 failed"})

    told = story.tell(both)

    assert [each.ending.words for each in told.pipelines] == ["out of money", "completed"]


def decision_view(view: CycleView, **changed: Any) -> DecisionView:
    (pipeline,) = view.pipelines
    fields = {
        "cycle_id": view.cycle_id,
        "pipeline": "claude",
        "account": "main",
        "as_of": view.as_of,
        "decided_at": view.ended_at,
        "decision": pipeline.contracts["decision_validation"],
        "execution": pipeline.contracts["execution_result"],
        **changed,
    }
    return DecisionView.model_validate(fields)


def test_a_decision_in_a_list_says_what_was_traded_or_why_nothing_was(
    cycle_view: CycleView,
) -> None:
    none: Any = cycle_view.pipelines[0].contracts["decision_validation"]
    nothing = {**none, "decisions": []}

    assert ending.of_decision(decision_view(cycle_view)) == "bought 68 AAPL for 39,782.04 USD"
    waits = decision_view(cycle_view, execution=None)
    assert ending.of_decision(waits) == "not executed"
    empty = decision_view(cycle_view, execution=None, decision=nothing)
    assert ending.of_decision(empty) == "nothing to order"
    kept = decision_view(cycle_view, execution=None, decision=nothing, kind="exit")
    assert ending.of_decision(kept) == "nothing to sell"


def test_a_decision_that_ordered_nothing_is_not_green(cycle_view: CycleView) -> None:
    unordered = with_contracts(cycle_view, execution_result={"orders": [], "fills": []})

    assert one(unordered).ending.tone is Tone.QUIET
    assert one(with_pipeline(cycle_view, contracts={})).ending.tone is Tone.QUIET
    assert one(cycle_view).ending.tone is Tone.GOOD


# --- what was looked at, and thought of it ------------------------------------------------------


def surfaced(view: CycleView, count: int) -> CycleView:
    """The view with so many candidates, each named by two sources, one of which says why."""
    candidates = [
        {
            "ticker": f"T{number}",
            "sources": ["screener", "news"],
            "reasons": {"screener": f"gainer {number}"},
        }
        for number in range(count)
    ]
    return with_contracts(view, signal_digest={"candidates": candidates})


def test_it_says_why_the_first_candidates_are_there_and_how_many_more_there_are(
    cycle_view: CycleView,
) -> None:
    few = lines(story.tell(surfaced(cycle_view, 5)).looked_at, "Surfaced by")
    many = lines(story.tell(surfaced(cycle_view, 25)).looked_at, "Surfaced by")

    assert (few[0], len(few)) == ("T0: screener: gainer 0; news", 5)
    assert (many[:5], many[5:]) == (few, ["and 20 more"])
    assert lines(story.tell(cycle_view).looked_at, "Surfaced by") == []


def test_it_says_what_was_looked_at_what_was_silent_and_what_was_dropped(
    cycle_view: CycleView,
) -> None:
    facts = story.tell(cycle_view).looked_at

    assert lines(facts, "Looked at") == ["3 candidates: AAPL GOOG IBM"]
    assert lines(facts, "Sources") == ["screener; not in this market source: news"]
    assert lines(facts, "Dropped") == ["XYZ: fewer than 20 sessions of prices"]


def test_each_stage_says_what_it_thinks_without_the_rules_signature(
    cycle_view: CycleView,
) -> None:
    signed = with_contracts(cycle_view, quant_report={"reasoning": "rules: two of three rise"})
    facts = one(signed).thoughts

    assert lines(facts, "Sentiment") == ["calm; headlines were scored for 1 of 2 tickers"]
    assert lines(facts, "Plan") == ["find a trend"]
    assert lines(facts, "Quant") == ["bullish 0.40: two of three rise"]
    assert [fact.label for fact in facts if fact.detail] == ["Question", "Trader"]
    assert lines(facts, "Numbers") == ["1 sourced, 1 unsourced: 9 (sentiment)"]


def test_a_score_of_what_nothing_is_known_of_is_none_and_no_0(cycle_view: CycleView) -> None:
    research: Any = cycle_view.pipelines[0].contracts["research_report"]
    unknown = [{**each, "fundamental_score": 0.0} for each in research["tickers"]]
    rows = one(with_contracts(cycle_view, research_report={"tickers": unknown})).tickers

    assert [row.fundamental for row in rows] == [None, None, None]


def test_the_reviewers_words_and_its_loose_figures_are_told(cycle_view: CycleView) -> None:
    picks: Any = cycle_view.pipelines[0].contracts["daily_picks"]
    review = {
        **{name: picks[name] for name in ("cycle_id", "op_id", "as_of", "pick_date", "llm")},
        "confidence": 0.5,
        "risk_notes": "rules: most of 73 is one sector",
        "loose": [{"field": "risk_notes", "start": 15, "text": "73"}],
        "adjustments": ["AAPL: 7% to 3%: for its report next week"],
    }
    told = one(with_contracts(cycle_view, pick_review=review))

    assert lines(told.verdicts, "Reviewer") == [
        "most of 73 is one sector",
        "AAPL: 7% to 3%: for its report next week",
    ]
    assert lines(told.thoughts, "Numbers")[0].endswith("9 (sentiment), 73 (review)")


# --- what was wanted, allowed and answered ------------------------------------------------------


def test_a_cut_pick_says_what_was_wanted_and_what_was_allowed(cycle_view: CycleView) -> None:
    aapl = one(cycle_view).tickers[0]

    assert (aapl.ticker, aapl.wanted, aapl.allowed) == ("AAPL", "buy 60%", "40%")
    assert (aapl.allowed_tone, aapl.shares) == (Tone.WARN, Decimal(68))
    assert aapl.mood is not None
    assert aapl.mood.score == 0.5


def test_a_pick_whose_checks_all_passed_is_no_warning(cycle_view: CycleView) -> None:
    checks = cycle_view.pipelines[0].contracts["decision_validation"]["checks"][:1]
    view = with_contracts(cycle_view, decision_validation={"checks": checks})

    assert one(view).tickers[0].allowed_tone is Tone.GOOD


def test_a_vetoed_pick_is_none_of_it_and_what_was_not_picked_says_nothing(
    cycle_view: CycleView,
) -> None:
    _, goog, ibm = one(cycle_view).tickers

    assert (goog.allowed, goog.allowed_tone, goog.shares) == ("vetoed", Tone.BAD, 0)
    assert (ibm.wanted, ibm.allowed, ibm.shares) == ("", "", None)


def test_vetoes_come_first_with_their_numbers_and_what_held_comes_apart(
    cycle_view: CycleView,
) -> None:
    told = one(cycle_view)

    found = [(each.names, each.check.rule, each.tone) for each in told.rules.items]
    assert found == [
        ("GOOG", "risk_needs_catalyst", Tone.BAD),
        ("AAPL", "position_size", Tone.WARN),
    ]
    assert [(each.check.value, each.check.limit) for each in told.rules.items] == [
        ("8.1, no catalyst", "7"),
        ("60%", "40%"),
    ]
    assert [each.check.outcome for each in told.kept] == [RuleOutcome.KEPT]


def test_rules_that_say_the_same_of_several_tickers_say_it_once(cycle_view: CycleView) -> None:
    made = cycle_view.pipelines[0].contracts["decision_validation"]
    validation = DecisionValidation.model_validate(made)
    cut = validation.checks[1]
    goog = cut.model_copy(update={"ticker": "GOOG", "reason": "GOOG too"})
    (found,) = rules.against([cut, goog])

    assert (found.names, found.reason) == ("AAPL GOOG", "because; GOOG too")
    whole = rules.against([cut.model_copy(update={"ticker": None})])
    assert [each.names for each in whole] == ["all"]


def test_a_halt_is_told_with_whom_it_stops_since_when_and_why(cycle_view: CycleView) -> None:
    halt = {"by": "cli", "reason": "crash", "since": "2026-11-22T02:00:00Z"}
    told = one(with_contracts(cycle_view, portfolio={"halt": halt}))

    assert lines(told.verdicts, "Halt") == [
        "buys of every account are halted since 2026-11-22 02:00:00 UTC by cli: crash"
    ]
    assert one(cycle_view).verdicts == []


def approved(view: CycleView, verdict: Verdict, *left: str, reason: str = "") -> CycleView:
    """The cycle, answered; `left` are the quantities that an edit left of the decisions."""
    made = view.pipelines[0].contracts["decision_validation"]
    validated = DecisionValidation.model_validate(made)
    decisions: tuple[PortfolioDecision, ...] = tuple(
        each.model_copy(update={"quantity": Decimal(quantity)})
        for each, quantity in zip(validated.decisions, left, strict=False)
    )
    approval = Approval.model_validate(
        {
            **validated.model_dump(include={"cycle_id", "op_id", "as_of"}),
            "proposal_hash": "1" * 64,
            "validated_hash": validated.proposal_hash,
            "verdict": verdict,
            "approver": "cli",
            "reason": reason,
            "decided_at": view.accepted_at,
            "expires_at": view.ended_at,
            "not_after": view.ended_at,
            "decisions": decisions,
        }
    )
    return with_contracts(view, approval=approval.model_dump(mode="json"))


@pytest.mark.parametrize(
    ("verdict", "left", "sentence", "allowed"),
    [
        (Verdict.APPROVE, (), "approved by cli, 2026-11-22 02:00 UTC; reason: go", "40%"),
        (
            Verdict.EDIT,
            ("17",),
            "approved in part by cli, 2026-11-22 02:00 UTC; AAPL 17 of 68 shares; reason: go",
            "10%",
        ),
        (
            Verdict.EDIT,
            (),
            "approved in part by cli, 2026-11-22 02:00 UTC; AAPL dropped; reason: go",
            "dropped",
        ),
        (
            Verdict.EDIT,
            ("68",),
            "approved in part by cli, 2026-11-22 02:00 UTC; AAPL as proposed; reason: go",
            "40%",
        ),
    ],
)
def test_an_answer_says_who_and_when_and_what_it_left(
    verdict: Verdict, left: tuple[str, ...], sentence: str, allowed: str, cycle_view: CycleView
) -> None:
    told = one(approved(cycle_view, verdict, *left, reason="go"))

    assert told.answer is not None
    assert told.answer.sentence == sentence
    assert told.tickers[0].allowed == allowed


# --- cost and evidence --------------------------------------------------------------------------


def test_it_says_what_the_models_cost_stage_by_stage(
    cycle_view: CycleView, nodes: Sequence[OperationView]
) -> None:
    costs = story.tell(cycle_view, nodes).costs

    assert costs.facts == []
    assert [(each.name, each.took_s) for each in costs.stages] == [
        ("scanning", 0.2),
        ("analyzing", 0.8),
    ]
    assert (costs.total.took_s, costs.total.calls["model"]) == (1.5, 1)
    assert costs.total.unpaid == "1 tool call, 2 other reads"


def test_what_was_free_costs_two_lines(
    cycle_view: CycleView, nodes: Sequence[OperationView]
) -> None:
    free = with_pipeline(cycle_view, provider="rules").model_copy(
        update={"tokens": 0, "cost_usd": Decimal(0)}
    )
    asked = [
        node.model_copy(update={"name": "rules:rules"}) if node.type == "model" else node
        for node in nodes
    ]
    costs = story.tell(free, asked).costs

    (cost,) = lines(costs.facts, "Cost")
    assert cost.startswith("0 tokens · $0, no model was asked; ")
    assert cost.endswith("; 1 call of the rules provider, 1 tool call, 2 other reads")
    assert lines(costs.facts, "Time") == ["scanning 200 ms, analyzing 800 ms"]


def test_the_evidence_begins_with_the_first_ticker_and_the_stage_that_failed(
    cycle_view: CycleView, nodes: Sequence[OperationView]
) -> None:
    whole = story.tell(cycle_view, nodes).evidence
    failed = nodes[0].model_copy(update={"status": OperationStatus.FAILED})
    broken = story.tell(cycle_view, [failed, *nodes[1:]]).evidence
    nothing = story.tell(cycle_view).evidence

    assert (whole.ticker, whole.stage, whole.stages) == ("AAPL", "quant", ["digest", "quant"])
    assert broken.stage == "digest"
    assert (nothing.stage, nothing.stages) == ("", [])


def test_a_contract_that_was_cut_leaves_the_rest_of_the_story(cycle_view: CycleView) -> None:
    cut = with_contracts(cycle_view, research_report={"tickers": "(cut)"})

    told = one(cut)

    assert told.ending.words == "bought 68 AAPL for 39,782.04 USD"
    assert [row.finding for row in told.tickers] == [None, None, None]


def test_only_what_a_cycle_learned_itself_is_its_own(cycle_view: CycleView) -> None:
    outcome = {
        "cycle_id": CYCLE_ID,
        "pipeline": "rules",
        "as_of": "2012-06-29",
        "sessions": 5,
        "session": "2012-07-09",
        "picks": [],
        "benchmark": {"counted": 0},
    }
    memory = {
        "cycle_id": cycle_view.cycle_id,
        "op_id": CYCLE_ID,
        "as_of": "2012-06-29",
        "short_term_summary": "done",
        "outcomes": [outcome],
        "track_record": ["it rose"],
    }
    assert lines(one(with_contracts(cycle_view, agent_memory=memory)).learned, "Learned")
    given = {**memory, "cycle_id": UUID(int=7)}
    assert not one(with_contracts(cycle_view, agent_memory=given)).learned
