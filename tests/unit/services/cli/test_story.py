"""The story of a cycle, as lines."""

import io

import pytest
from rich.console import Console

from contracts.cycle import CycleStatus
from contracts.query import CycleView
from services.cli import story

WIDTH = 110
SCREEN_LINES = 40


def _told(view: CycleView, *, width: int = WIDTH, colour: bool = False) -> str:
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
    story.tell(view, console)
    return sink.getvalue()


def _line_with(text: str, what: str) -> str:
    return next(line for line in text.splitlines() if what in line)


def test_the_head_says_what_when_and_how_it_ended(cycle_view: CycleView) -> None:
    text = _told(cycle_view)

    assert "✓ Decision of Fri 2012-06-29  completed in 1.50 s" in text
    assert "cycle 4332d851-4ebc-510c-b28d-0f5c50338936 · account main · provider claude" in text


def test_it_says_what_was_looked_at_and_which_source_was_silent(cycle_view: CycleView) -> None:
    line = _line_with(_told(cycle_view), "Looked at")

    assert "AAPL  GOOG  IBM" in line
    assert "3 candidates" in line
    assert "no answer from news" in line


def test_a_cut_pick_shows_what_was_wanted_what_was_allowed_and_the_rule_with_its_numbers(
    cycle_view: CycleView,
) -> None:
    line = _line_with(_told(cycle_view), "AAPL  bullish")

    assert "buy 60%" in line
    assert "40% = 68 sh" in line
    assert "cut by position_size: 60%, limit 40%" in line


def test_a_vetoed_pick_shows_the_rule_with_its_numbers(cycle_view: CycleView) -> None:
    text = _told(cycle_view)

    assert "vetoed  vetoed by risk_needs_catalyst: 8.1, no catalyst," in text
    assert "limit 7" in text


def test_what_was_not_picked_is_said_too(cycle_view: CycleView) -> None:
    assert _line_with(_told(cycle_view), "IBM   bearish").endswith("not picked")


def test_orders_show_price_session_value_and_fee_and_cash_before_and_after(
    cycle_view: CycleView,
) -> None:
    text = _told(cycle_view)

    filled = "buy 68 AAPL  filled at 585.03 on Mon 2012-07-02's open = 39,782.04, fee 19.89"
    assert filled in text
    assert "100,000.00 → 60,198.07 USD  (-39,801.93)" in text


def test_it_says_what_the_models_cost(cycle_view: CycleView) -> None:
    assert "12,400 tokens · $0.0312" in _told(cycle_view)


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

    assert "40% = 68 sh" in text
    assert "60,198.07" in text


def test_a_failed_cycle_gives_its_reason(cycle_view: CycleView) -> None:
    pipeline = cycle_view.pipelines[0].model_copy(
        update={"status": CycleStatus.FAILED, "contracts": {}}
    )
    failed = cycle_view.model_copy(
        update={
            "status": CycleStatus.FAILED,
            "reason": "scanning/digest failed: 2012-06-30 is a weekend (not_a_session)",
            "pipelines": (pipeline,),
        }
    )

    text = _told(failed)

    assert "✗ Decision of Fri 2012-06-29  failed in 1.50 s" in text
    assert "scanning/digest failed: 2012-06-30 is a weekend (not_a_session)" in text
    assert "Orders" not in text


def test_a_running_cycle_says_where_it_is(cycle_view: CycleView) -> None:
    pipeline = cycle_view.pipelines[0].model_copy(
        update={"status": CycleStatus.RUNNING, "state": "analyzing", "contracts": {}}
    )
    running = cycle_view.model_copy(
        update={"status": CycleStatus.RUNNING, "ended_at": None, "pipelines": (pipeline,)}
    )

    assert _line_with(_told(running), "Now").split() == ["Now", "analyzing"]


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
    assert text.count("buy 68 AAPL") == 2


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

    assert "buy 68 AAPL" in text
    assert "too large for one answer: claude/research_report" in text
