"""The memory of a cycle: what happened and nothing else, however it ended."""

from contracts.assessment import Memorize
from contracts.cycle import CycleStatus
from libs.llm.scripted import ScriptedProvider, says


async def test_a_failed_cycle_is_remembered_with_its_reason(desk):
    memory = await desk.do(
        Memorize, outcome=CycleStatus.FAILED, reason="no_candidates: widen the universe"
    )
    assert "ended failed" in memory.short_term_summary
    assert "widen the universe" in memory.short_term_summary
    assert memory.active_hypotheses == ()
    assert memory.pending_orders == ()
    assert "mend first" in memory.next_steps[0]


async def test_a_decision_is_remembered_with_its_picks_and_directions(desk):
    memory = (await desk.cycle())["memory"]
    assert "MSFT 40.00%" in memory.short_term_summary
    assert any("GOOG is bearish at 2012-06-29" in line for line in memory.active_hypotheses)


async def test_an_empty_summary_is_sent_back(desk):
    desk.providers = {
        "rules": ScriptedProvider(
            [says({"short_term_summary": ""}), says({"short_term_summary": "done"})]
        )
    }
    memory = await desk.do(Memorize, outcome=CycleStatus.COMPLETED)
    assert memory.short_term_summary == "done"
