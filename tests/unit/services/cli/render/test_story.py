"""The story of a cycle in a terminal: what it says is in tests/unit/report/test_story.py."""

import io
import re
from collections.abc import Sequence
from uuid import uuid4

import pytest
from rich.console import Console

from contracts.approval import Verdict
from contracts.cycle import CycleStatus
from contracts.cycle_query import CycleView
from contracts.message import Contract
from contracts.operation import OperationView
from libs.report.cited import TextPiece
from libs.report.story import MADE_UP
from services.cli.render import story
from services.cli.render.cited import LOOSE, cut
from tests.unit.report.test_story import approved, ended, surfaced, with_contracts

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


def test_a_cut_pick_shows_what_was_wanted_what_was_allowed_and_the_rule_with_its_numbers(
    cycle_view: CycleView,
) -> None:
    text = _told(cycle_view)

    words = _line_with(text, "buy 60%").split()
    assert words[0] == "AAPL"
    assert words[-4:] == ["buy", "60%", "40%", "68"]
    assert "AAPL cut position_size 60% 40%" in _spaced(text)


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


def test_an_order_with_a_long_name_does_not_cut_the_money(cycle_view: CycleView) -> None:
    (order,) = cycle_view.pipelines[0].contracts["execution_result"]["orders"]  # type: ignore[index]
    price = {"amount": "515.02", "currency": "USD"}
    stop = {**order, "order_id": str(uuid4()), "side": "sell", "type": "stop", "stop_price": price}
    view = with_contracts(cycle_view, execution_result={"orders": [order, stop]})

    text = _told(view, width=80)

    assert "sell AAPL, stop at 515.02" in _spaced(_told(view))
    assert "…" not in text
    assert {"100,000.00", "-39,801.93", "60,198.07"} <= set(text.split())


def test_what_matters_least_goes_first_where_there_is_no_room(cycle_view: CycleView) -> None:
    assert "fund" in _told(cycle_view, width=118)
    assert "fund" not in _told(cycle_view, width=70)
    assert "risk" in _told(cycle_view, width=70)


def test_what_a_model_writes_cannot_move_the_cursor_or_hide_text(cycle_view: CycleView) -> None:
    evil = {"objective": "buy\x1b[2J\x9b1A\u202eABC\nnow"}
    first = cycle_view.pipelines[0]
    plan = {**first.contracts["plan"], **evil}  # type: ignore[dict-item]
    pipeline = first.model_copy(update={"contracts": {**first.contracts, "plan": plan}})

    text = _told(cycle_view.model_copy(update={"pipelines": (pipeline,)}))

    assert not set(text) & {"\x1b", "\x9b", "\u202e"}
    assert "buy [2J 1A ABC now" in text


def test_a_number_without_a_source_is_dimmed_also_where_the_text_is_cut() -> None:
    line = [TextPiece("it rises  9 times\nto "), TextPiece("9", loose=True), TextPiece(" of  10")]
    whole, short = cut(line, 40), cut(line, 12)

    assert whole.plain == "it rises 9 times to 9 of 10"
    assert [(span.start, span.end, span.style) for span in whole.spans] == [(20, 21, LOOSE)]
    assert (short.plain, short.spans) == ("it rises 9…", [])


def test_the_story_dims_what_has_no_source(
    cycle_view: CycleView, contracts: dict[str, Contract]
) -> None:
    quant = contracts["quant_report"].model_dump(mode="json")
    text = f"{quant['reasoning']} 58.55"
    loose = {"field": "reasoning", "start": len(text) - 5, "text": "58.55"}
    unsure = {"reasoning": text, "loose": [loose]}

    told = _told(with_contracts(cycle_view, quant_report=unsure), colour=True)

    assert re.search(r"\x1b\[2;4m58\.55\x1b\[0m", told)


def test_several_pipelines_are_told_one_after_the_other(cycle_view: CycleView) -> None:
    first = cycle_view.pipelines[0]
    second = first.model_copy(update={"name": "rules", "provider": "rules", "account": "rules"})
    both = cycle_view.model_copy(update={"pipelines": (first, second)})

    text = _told(both)

    assert text.index("✓ claude") < text.index("✓ rules")
    assert "provider rules (stated rules, no model)" in text
    assert text.count("Looked at") == 1
    assert text.count("bought 68 AAPL") == 2


def test_what_is_not_shown_whole_says_where_the_rest_is(cycle_view: CycleView) -> None:
    text = _told(surfaced(cycle_view, 25))

    assert "Surfaced by T0: screener: gainer 0; news" in text
    assert "and 20 more: --stage digest" in text


def test_a_vetoed_pick_and_a_missing_score_stand_in_their_columns(cycle_view: CycleView) -> None:
    text = _told(cycle_view)

    assert _line_with(text, "buy 20%").split()[-2:] == ["vetoed", "0"]
    assert _line_with(text, "IBM  ").split()[-1] == "-"
    assert "GOOG vetoed risk_needs_catalyst 8.1, no catalyst 7" in _spaced(text)


def test_a_cycle_that_waits_for_a_person_says_what_to_type(cycle_view: CycleView) -> None:
    waiting = ended(cycle_view, CycleStatus.RUNNING, "", state="awaiting_approval")

    told = "waits for approval\n  a person is asked: deskbus approvals list\n"
    assert told in _told(waiting)


def test_where_a_cycle_failed_and_why_are_two_lines(cycle_view: CycleView) -> None:
    reason = "scanning/digest failed: 2012-06-30 is a weekend (not_a_session)"
    text = _told(ended(cycle_view, CycleStatus.FAILED, reason))

    assert "✗ Decision of Fri 2012-06-29  failed in 1.50 s" in text
    assert "failed in scanning/digest\n  2012-06-30 is a weekend (not_a_session)\n" in text


def test_a_rejection_is_told_once_in_the_head(cycle_view: CycleView) -> None:
    answered = approved(cycle_view, Verdict.REJECT, reason="too hot")
    made = answered.pipelines[0].contracts
    rejected = ended(answered, CycleStatus.REJECTED, "rejected by cli: too hot", contracts=made)

    assert "⊘ Decision of Fri 2012-06-29  rejected in 1.50 s" in _told(rejected)
    assert _told(rejected).count("too hot") == 1
    assert "Approval    approved by cli" in _told(approved(cycle_view, Verdict.APPROVE))


def test_made_up_prices_are_told_under_the_head(cycle_view: CycleView) -> None:
    made_up = with_contracts(cycle_view, portfolio={"synthetic": True})

    assert MADE_UP in _told(made_up).splitlines()[3]


def test_what_did_not_fit_into_the_answer_is_said_at_the_end(cycle_view: CycleView) -> None:
    message = "too large for one answer: claude/research_report"

    assert _told(cycle_view.model_copy(update={"message": message})).strip().endswith(message)
