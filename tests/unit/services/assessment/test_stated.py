"""What came of stated confidences: which buys count, from when on, and what a memory carries on."""

from datetime import timedelta

import pytest

from contracts.account import Side
from contracts.memory import STATED_MAX, AgentMemory, PickFate, StatedOutcome
from contracts.message import Pipeline
from tests.unit.services.assessment.conftest import DAY, SESSIONS, Past, pick, remembered

OWN = {"cycle_id": "0" * 32, "op_id": "1" * 32, "as_of": DAY, "short_term_summary": "s"}


def past(*picks, universe=("UP", "DOWN"), **fields) -> Past:
    return Past(list(picks), list(universe), provider="rules", **fields)


@pytest.fixture
def two(market):
    """UP gains 30 % in 20 sessions, DOWN loses 10 %."""
    market.share("UP", {0: 100, 5: 90, 20: 130})
    market.share("DOWN", {0: 100, 5: 110, 20: 90})
    return market


def known(memory: AgentMemory) -> list[tuple[float, bool]]:
    return [(row.stated, row.beat) for row in memory.stated]


async def test_a_buy_is_judged_against_the_benchmark_at_its_twentieth_session(two):
    decided = past(pick("UP", confidence=0.6), pick("DOWN", confidence=0.5))
    for early in (5, 19):
        assert (await remembered(two.desk(), early, decided)).stated == ()
    memory = await remembered(two.desk(), 20, decided)
    assert known(memory) == [(0.6, True), (0.5, False)]
    assert {row.known_on for row in memory.stated} == {SESSIONS[20]}
    assert {row.on for row in memory.stated} == {DAY}
    assert {row.provider for row in memory.stated} == {"rules"}
    assert all(row.known_on <= memory.as_of for row in memory.stated)


async def test_what_was_vetoed_was_stated_all_the_same(two):
    decided = past(pick("UP", confidence=0.6, fate=PickFate.VETOED))
    assert known(await remembered(two.desk(), 20, decided)) == [(0.6, True)]


async def test_what_cannot_be_judged_does_not_count(two):
    for decided in (
        past(pick("UP", confidence=0.6, action=Side.SELL)),
        past(pick("UP")),  # of a memory that was written before confidences were kept
        past(pick("NONE", confidence=0.6)),
        past(pick("UP", confidence=0.6), universe=["UP"]),
        Past([pick("UP", confidence=0.6)], ["UP", "DOWN"]),  # nobody knows who stated it
    ):
        memory = await remembered(two.desk(), 20, decided)
        assert len(memory.outcomes) == 2
        assert memory.stated == ()


async def test_of_two_decisions_of_one_session_the_later_counts(two):
    decided = past(pick("UP", confidence=0.6)), past(pick("UP", confidence=0.4), number=2)
    assert known(await remembered(two.desk(), 20, *decided)) == [(0.4, True)]


async def test_a_memory_carries_on_what_the_last_one_knew_and_the_oldest_gives_way(two):
    old = [
        StatedOutcome(
            on=DAY - timedelta(days=60 + age),
            known_on=DAY - timedelta(days=30 + age),
            provider="rules",
            stated=0.3,
            beat=False,
        )
        for age in range(STATED_MAX, 0, -1)
    ]
    last = AgentMemory(**OWN, stated=old)
    same = await remembered(two.desk(), 3, agent_memory=last)
    assert same.stated == last.stated
    more = await remembered(two.desk(), 20, past(pick("UP", confidence=0.6)), agent_memory=last)
    assert more.stated[:-1] == last.stated[1:]
    assert known(more)[-1] == (0.6, True)


async def test_a_studys_account_knows_nothing(two):
    desk = two.desk()
    desk.pipeline = Pipeline(name="rules", account="study-one-rules-1")
    decided = past(pick("UP", confidence=0.6))
    memory = await remembered(desk, 20, decided)
    assert memory.outcomes
    assert memory.stated == ()
