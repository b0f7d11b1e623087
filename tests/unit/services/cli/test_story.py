"""The story of a cycle, as lines."""

import io
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pytest
from rich.console import Console

from contracts.approval import Approval, Verdict
from contracts.cycle import CycleStatus
from contracts.operation import OperationStatus, OperationView
from contracts.query import CycleView
from contracts.risk import DecisionValidation, PortfolioDecision
from libs.report.made import MADE_UP, Made, rows
from services.cli import story
from services.cli.tickers import scored

WIDTH = 110
SCREEN_LINES = 48


def _told(
    view: CycleView,
    *,
    width: int = WIDTH,
    colour: bool = False,
    nodes: Sequence[OperationView] = (),
) -> str:
    sink = io.StringIO()
    console = Console(
        file=sink,
        width=width,
        markup=False,
        highlight=False,
        force_terminal=colour,
        color_system="truecolor" if colour else None,
        legacy_windows=False,
    )
    story.tell(view, console, nodes)
    return sink.getvalue()


def _spaced(text: str) -> str:
    """Words and numbers alone: what is said, not how it is laid out."""
    return " ".join(text.split())


def _line_with(text: str, what: str) -> str:
    return next(line for line in text.splitlines() if what in line)


def test_the_head_says_what_when_and_how_it_ended(cycle_view: CycleView) -> None:
    text = _told(cycle_view)

    assert "✓ Decision of Fri 2012-06-29  completed in 1.50 s" in text
    assert "cycle 4332d851-4ebc-510c-b28d-0f5c50338936 · account main · provider claude" in text


def test_a_decision_on_made_up_prices_says_so_and_no_other_does(cycle_view: CycleView) -> None:
    first = cycle_view.pipelines[0]
    books = {**first.contracts["portfolio"], "synthetic": True}  # type: ignore[dict-item]
    changed = first.model_copy(update={"contracts": {**first.contracts, "portfolio": books}})
    made_up = cycle_view.model_copy(update={"pipelines": (changed,)})

    assert MADE_UP in _told(made_up)
    assert MADE_UP not in _told(cycle_view)


def test_a_score_of_what_nothing_is_known_of_is_a_dash_and_no_0(cycle_view: CycleView) -> None:
    first = cycle_view.pipelines[0]
    research: Any = first.contracts["research_report"]
    unknown = [{**each, "fundamental_score": 0.0} for each in research["tickers"]]
    made = {**first.contracts, "research_report": {**research, "tickers": unknown}}
    changed = first.model_copy(update={"contracts": made})
    text = _told(cycle_view.model_copy(update={"pipelines": (changed,)}))

    assert " 0.0 " not in text
    fund = next(row for row in rows(Made.by(changed)) if row.finding is not None)
    assert (fund.fundamental, scored(fund.fundamental)) == (None, "-")


def _with_reasons(view: CycleView, count: int) -> CycleView:
    """The view with so many candidates, each named by two sources, one of which says why."""
    (pipeline,) = view.pipelines
    candidates = [
        {
            "ticker": f"T{number}",
            "sources": ["screener", "news"],
            "reasons": {"screener": f"gainer {number}"},
        }
        for number in range(count)
    ]
    digest = {**dict(pipeline.contracts["signal_digest"]), "candidates": candidates}  # type: ignore[arg-type]
    made = {**pipeline.contracts, "signal_digest": digest}
    return view.model_copy(update={"pipelines": (pipeline.model_copy(update={"contracts": made}),)})


def test_it_says_why_the_first_candidates_are_there_and_where_the_rest_is(
    cycle_view: CycleView,
) -> None:
    few = _told(_with_reasons(cycle_view, 5))
    many = _told(_with_reasons(cycle_view, 25))

    assert "Named for   T0: screener: gainer 0; news" in few
    assert "more: --stage digest" not in few
    assert "and 20 more: --stage digest" in many
    assert "Named for" not in _told(cycle_view)


def test_it_says_what_was_looked_at_and_which_source_was_silent(cycle_view: CycleView) -> None:
    text = _told(cycle_view)

    assert "3 candidates: AAPL GOOG IBM" in text
    assert "screener; no answer from news (made-up prices has no news)" in text
    assert "XYZ: fewer than 20 sessions of prices" in text


def test_it_says_what_was_heard_of_the_tickers(cycle_view: CycleView) -> None:
    text = _told(cycle_view)

    assert "calm; headlines were scored for 1 of 2 tickers" in text
    assert "+0.50" in _line_with(text, "buy 60%")


def test_a_cut_pick_shows_what_was_wanted_what_was_allowed_and_the_rule_with_its_numbers(
    cycle_view: CycleView,
) -> None:
    text = _told(cycle_view)

    words = _line_with(text, "buy 60%").split()
    assert words[0] == "AAPL"
    assert words[-4:] == ["buy", "60%", "40%", "68"]
    assert "AAPL cut position_size 60% 40%" in _spaced(text)


def test_a_vetoed_pick_shows_the_rule_with_its_numbers(cycle_view: CycleView) -> None:
    text = _told(cycle_view)

    assert _line_with(text, "buy 20%").split()[-2:] == ["vetoed", "0"]
    assert "GOOG vetoed risk_needs_catalyst 8.1, no catalyst 7" in _spaced(text)


def test_rules_that_say_the_same_of_several_tickers_are_one_line(cycle_view: CycleView) -> None:
    first = cycle_view.pipelines[0]
    validation = DecisionValidation.model_validate(first.contracts["decision_validation"])
    cut = validation.checks[1]
    checks = (*validation.checks, cut.model_copy(update={"ticker": "GOOG"}))
    changed = validation.model_copy(update={"checks": checks}).model_dump(mode="json")
    made = {**first.contracts, "decision_validation": changed}
    pipeline = first.model_copy(update={"contracts": made})

    text = _told(cycle_view.model_copy(update={"pipelines": (pipeline,)}))

    assert "AAPL GOOG cut position_size 60% 40%" in _spaced(text)


def test_what_was_not_picked_is_said_too(cycle_view: CycleView) -> None:
    assert _line_with(_told(cycle_view), "IBM  ").split()[-1] == "-"


def test_orders_show_price_session_value_and_fee_and_cash_before_and_after(
    cycle_view: CycleView,
) -> None:
    text = _told(cycle_view)

    assert "bought 68 AAPL for 39,782.04 USD" in text
    assert "price USD" in text
    assert "buy AAPL filled 68 585.03 Mon 2012-07-02 39,782.04 19.89" in _spaced(text)
    money = [_line_with(text, label) for label in ("cash before", "change", "cash after")]
    assert [line.split()[-1] for line in money] == ["100,000.00", "-39,801.93", "60,198.07"]
    assert len({len(line) for line in money}) == 1, "money is aligned to the right"


def test_it_says_what_the_models_cost_stage_by_stage(
    cycle_view: CycleView, nodes: Sequence[OperationView]
) -> None:
    text = _spaced(_told(cycle_view, nodes=nodes))

    assert "stage secs USD calls in out cache r/w" in text
    assert "analyzing 0.80 0.0312 1 9.0k 1.0k 2.0k/400" in text
    assert "total 1.50 0.0312 1 9.0k 1.0k 2.0k/400 and 1 tool call, 2 other reads" in text


def test_what_was_paid_for_calls_without_a_reply_has_a_column_of_its_own(
    cycle_view: CycleView, nodes: Sequence[OperationView]
) -> None:
    usage = cycle_view.usage.model_copy(update={"unsorted_tokens": 700})
    view = cycle_view.model_copy(update={"tokens": usage.tokens, "usage": usage})

    text = _spaced(_told(view, nodes=nodes))

    assert "in out cache r/w no reply" in text
    assert "total 1.50 0.0312 1 9.0k 1.0k 2.0k/400 700" in text


def test_what_was_free_costs_no_table(
    cycle_view: CycleView, nodes: Sequence[OperationView]
) -> None:
    pipeline = cycle_view.pipelines[0].model_copy(update={"provider": "rules"})
    free = cycle_view.model_copy(
        update={"tokens": 0, "cost_usd": Decimal(0), "pipelines": (pipeline,)}
    )

    text = _spaced(_told(free, nodes=nodes))

    assert "0 tokens · $0, no model was asked; 1 call of the rules provider, 1 tool call" in text
    assert "scanning 200 ms, analyzing 800 ms" in text


def test_the_evidence_is_one_command_away(
    cycle_view: CycleView, nodes: Sequence[OperationView]
) -> None:
    text = _told(cycle_view, nodes=nodes)

    assert "deskbus cycle show 4332d851 --evidence AAPL" in text
    assert "deskbus cycle show 4332d851 --stage quant" in text


def test_it_fits_on_one_screen_without_trailing_blanks(cycle_view: CycleView) -> None:
    lines = _told(cycle_view).splitlines()

    assert len(lines) <= SCREEN_LINES
    assert all(line == line.rstrip() for line in lines)
    assert all(len(line) <= WIDTH for line in lines)


def test_without_a_terminal_it_holds_no_control_codes(cycle_view: CycleView) -> None:
    assert "\x1b" not in _told(cycle_view)
    assert "\x1b" in _told(cycle_view, colour=True)


@pytest.mark.parametrize("width", [60, 80, 118])
def test_the_numbers_stay_whole_in_a_narrow_terminal(cycle_view: CycleView, width: int) -> None:
    text = _told(cycle_view, width=width)

    assert "buy 60%" in text
    assert "60,198.07" in text


@pytest.mark.parametrize("width", [80, 100, 118])
def test_on_a_usual_screen_no_word_of_a_table_is_cut(cycle_view: CycleView, width: int) -> None:
    assert "…" not in _told(cycle_view, width=width)


def test_what_matters_least_goes_first_where_there_is_no_room(cycle_view: CycleView) -> None:
    assert "fund" in _told(cycle_view, width=118)
    assert "fund" not in _told(cycle_view, width=70)
    assert "risk" in _told(cycle_view, width=70)


def test_nothing_worth_buying_is_said_to_be_that(cycle_view: CycleView) -> None:
    text = _told(_without_orders(cycle_view, picks=()))

    assert "nothing ordered: the trader picked nothing" in text
    assert "100,000.00 USD, unchanged" in text


def test_picks_that_were_all_vetoed_are_said_to_be_that(cycle_view: CycleView) -> None:
    text = _told(_without_orders(cycle_view))

    assert "nothing ordered: the rules left nothing of 2 picks" in text
    assert "100,000.00 USD, unchanged" in text


def _without_orders(view: CycleView, **picked: object) -> CycleView:
    first = view.pipelines[0]
    made = {name: each for name, each in first.contracts.items() if name != "execution_result"}
    picks = {**made["daily_picks"], **picked}  # type: ignore[dict-item]
    none = {**made["decision_validation"], "decisions": [], "passed": False}  # type: ignore[dict-item]
    changed = {**made, "decision_validation": none, "daily_picks": picks}
    return view.model_copy(update={"pipelines": (first.model_copy(update={"contracts": changed}),)})


def test_a_cancelled_cycle_says_where_it_was_stopped_and_why(
    cycle_view: CycleView, nodes: Sequence[OperationView]
) -> None:
    stopped = nodes[-1].model_copy(update={"status": OperationStatus.CANCELLED})
    pipeline = cycle_view.pipelines[0].model_copy(
        update={"status": CycleStatus.CANCELLED, "contracts": {}}
    )
    cancelled = cycle_view.model_copy(
        update={"status": CycleStatus.CANCELLED, "reason": "enough", "pipelines": (pipeline,)}
    )

    text = _told(cancelled, nodes=(stopped,))

    assert "cancelled in analyzing/quant\n  enough\n" in text


def test_where_it_stopped_is_what_the_reason_names_and_not_what_failed_after_it(
    cycle_view: CycleView, nodes: Sequence[OperationView]
) -> None:
    failed = {"status": OperationStatus.FAILED}
    quant = next(node for node in nodes if node.type == "operation" and node.name == "quant")
    later = quant.model_copy(update={**failed, "state": "memorizing", "name": "memorize"})
    reason = "analyzing/quant failed: the cycle's budget is used up (budget_exhausted)"
    pipeline = cycle_view.pipelines[0].model_copy(
        update={"status": CycleStatus.FAILED, "reason": reason, "contracts": {}}
    )
    view = cycle_view.model_copy(
        update={"status": CycleStatus.FAILED, "reason": reason, "pipelines": (pipeline,)}
    )

    text = _told(view, nodes=(quant.model_copy(update=failed), later))

    assert "failed in analyzing/quant\n  the cycle's budget is used up" in text


def test_a_failed_cycle_gives_its_reason(
    cycle_view: CycleView, nodes: Sequence[OperationView]
) -> None:
    pipeline = cycle_view.pipelines[0].model_copy(
        update={"status": CycleStatus.FAILED, "contracts": {}}
    )
    node = nodes[0].model_copy(update={"status": OperationStatus.FAILED})
    failed = cycle_view.model_copy(
        update={
            "status": CycleStatus.FAILED,
            "reason": "scanning/digest failed: 2012-06-30 is a weekend (not_a_session)",
            "pipelines": (pipeline,),
        }
    )

    text = _told(failed, nodes=(node,))

    assert "✗ Decision of Fri 2012-06-29  failed in 1.50 s" in text
    assert "failed in scanning/digest\n  2012-06-30 is a weekend (not_a_session)\n" in text
    assert "deskbus cycle show 4332d851 --stage digest" in text
    assert "Orders" not in text


def test_a_running_cycle_says_where_it_is(cycle_view: CycleView) -> None:
    pipeline = cycle_view.pipelines[0].model_copy(
        update={"status": CycleStatus.RUNNING, "state": "analyzing", "contracts": {}}
    )
    running = cycle_view.model_copy(
        update={"status": CycleStatus.RUNNING, "ended_at": None, "pipelines": (pipeline,)}
    )

    assert "  now analyzing\n" in _told(running)


def test_a_cycle_that_waits_for_a_person_says_what_to_type(cycle_view: CycleView) -> None:
    pipeline = cycle_view.pipelines[0].model_copy(
        update={"status": CycleStatus.RUNNING, "state": "awaiting_approval"}
    )
    waiting = _without_orders(
        cycle_view.model_copy(update={"ended_at": None, "pipelines": (pipeline,)})
    )

    assert "now awaiting_approval\n  a person is asked: deskbus approvals list\n" in _told(waiting)


def test_a_halt_is_told_beside_what_it_vetoed(cycle_view: CycleView) -> None:
    first = cycle_view.pipelines[0]
    halt = {"by": "cli", "reason": "crash", "since": "2026-11-22T02:00:00Z"}
    books = {**first.contracts["portfolio"], "halt": halt}  # type: ignore[dict-item]
    pipeline = first.model_copy(update={"contracts": {**first.contracts, "portfolio": books}})

    text = _told(cycle_view.model_copy(update={"pipelines": (pipeline,)}))

    told = "HALTED every account since 2026-11-22 02:00:00 UTC by cli: crash"
    assert told in _line_with(text, "Halt  ")
    assert "Halt  " not in _told(cycle_view)


def _approved(view: CycleView, verdict: Verdict, *left: str, reason: str = "") -> CycleView:
    """The cycle, answered; `left` are the quantities that an edit left of the decisions."""
    first = view.pipelines[0]
    validated = DecisionValidation.model_validate(first.contracts["decision_validation"])
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
    made = {**first.contracts, "approval": approval.model_dump(mode="json")}
    return view.model_copy(update={"pipelines": (first.model_copy(update={"contracts": made}),)})


def test_an_approval_is_told_with_who_and_when(cycle_view: CycleView) -> None:
    text = _told(_approved(cycle_view, Verdict.APPROVE, reason="go"))

    assert "Approval    approved by cli, 2026-11-22 02:00 UTC; reason: go" in _narrow(text)
    assert "40%" in _line_with(text, "buy 60%")


def test_an_edit_shows_what_it_left_of_what_the_rules_allowed(cycle_view: CycleView) -> None:
    text = _told(_approved(cycle_view, Verdict.EDIT, "17", reason="less"))

    assert "approved with less by cli" in text
    assert "AAPL 17 of 68 shares" in text
    assert _line_with(text, "buy 60%").split()[-2:] == ["10%", "17"]


def test_a_decision_that_a_person_dropped_is_none(cycle_view: CycleView) -> None:
    text = _told(_approved(cycle_view, Verdict.EDIT))

    assert "AAPL dropped" in text
    assert _line_with(text, "buy 60%").split()[-2:] == ["0%", "0"]


def test_a_rejected_cycle_gives_the_persons_words_and_no_place(
    cycle_view: CycleView, nodes: Sequence[OperationView]
) -> None:
    answered = _approved(cycle_view, Verdict.REJECT, reason="too hot")
    made = {
        name: each
        for name, each in answered.pipelines[0].contracts.items()
        if name != "execution_result"
    }
    pipeline = answered.pipelines[0].model_copy(
        update={"status": CycleStatus.REJECTED, "contracts": made}
    )
    rejected = answered.model_copy(
        update={
            "status": CycleStatus.REJECTED,
            "reason": "rejected by cli: too hot",
            "pipelines": (pipeline,),
        }
    )

    text = _told(rejected, nodes=nodes)

    assert "⊘ Decision of Fri 2012-06-29  rejected in 1.50 s" in text
    assert text.count("too hot") == 1
    assert "rejected in memorizing" not in text
    assert "Orders      none" in _narrow(text)


def _narrow(text: str) -> str:
    """The lines without the blanks at their begin."""
    return "\n".join(line.strip() for line in text.splitlines())


def test_what_a_model_writes_cannot_move_the_cursor_or_hide_text(cycle_view: CycleView) -> None:
    evil = {"objective": "buy\x1b[2J\x9b1A\u202eABC\nnow"}
    first = cycle_view.pipelines[0]
    plan = {**first.contracts["plan"], **evil}  # type: ignore[dict-item]
    pipeline = first.model_copy(update={"contracts": {**first.contracts, "plan": plan}})

    text = _told(cycle_view.model_copy(update={"pipelines": (pipeline,)}))

    assert not set(text) & {"\x1b", "\x9b", "\u202e"}
    assert "buy [2J 1A ABC now" in text


def test_several_pipelines_are_told_one_after_the_other(cycle_view: CycleView) -> None:
    first = cycle_view.pipelines[0]
    second = first.model_copy(update={"name": "rules", "provider": "rules", "account": "rules"})
    both = cycle_view.model_copy(update={"pipelines": (first, second)})

    text = _told(both)

    assert text.index("✓ claude") < text.index("✓ rules")
    assert "provider rules (stated rules, no model)" in text
    assert text.count("Looked at") == 1
    assert text.count("bought 68 AAPL") == 2


def test_a_contract_that_was_cut_leaves_the_rest_of_the_story(cycle_view: CycleView) -> None:
    first = cycle_view.pipelines[0]
    without = {**first.contracts, "research_report": {"cut": True, "size_bytes": 1}}
    view = cycle_view.model_copy(
        update={
            "pipelines": (first.model_copy(update={"contracts": without}),),
            "message": "too large for one answer: claude/research_report",
        }
    )

    text = _told(view)

    assert "bought 68 AAPL" in text
    assert "too large for one answer: claude/research_report" in text
