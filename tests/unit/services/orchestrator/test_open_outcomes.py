"""Which past decisions still await an outcome, from the memories that an account's cycles left."""

from typing import Any

import orjson

from contracts.assessment import Memorize
from contracts.memory import AWAITED_MAX, OUTCOME_SESSIONS
from libs.market.calendar import exchange_calendar
from services.orchestrator.open_outcomes import PAST_DAYS, PAST_DECISIONS, awaited


def memory(number: int | None, *told: tuple[int, int], pipeline: str = "rules") -> bytes:
    """A memory with the decision of a cycle, and outcomes (cycle, sessions) that it tells."""
    decision = None if number is None else {"cycle_id": str(number), "pipeline": pipeline}
    outcomes = [
        {"cycle_id": str(cycle), "pipeline": pipeline, "sessions": sessions}
        for cycle, sessions in told
    ]
    return orjson.dumps({"decision": decision, "outcomes": outcomes, "short_term_summary": "x"})


def found(*memories: bytes) -> list[tuple[str, list[int]]]:
    given: list[dict[str, Any]] = orjson.loads(awaited(memories))
    return [(each["decision"]["cycle_id"], each["told"]) for each in given]


def test_a_decision_awaits_until_its_last_outcome_is_told() -> None:
    assert found(memory(1)) == [("1", [])]
    assert found(memory(1), memory(2, (1, 5))) == [("1", [5]), ("2", [])]
    assert found(memory(1), memory(2, (1, 5)), memory(3, (1, 20))) == [("2", []), ("3", [])]


def test_cycles_of_the_same_day_await_each_on_its_own() -> None:
    assert found(memory(1), memory(2), memory(3, (1, 5), (2, 5))) == [
        ("1", [5]),
        ("2", [5]),
        ("3", []),
    ]


def test_an_outcome_told_twice_counts_once() -> None:
    assert found(memory(1), memory(2, (1, 5)), memory(3, (1, 5)))[0] == ("1", [5])


def test_pipelines_of_one_cycle_are_told_apart() -> None:
    other = memory(None, (1, 5), (1, 20), pipeline="other")
    assert found(memory(1, pipeline="rules"), memory(1, pipeline="other"), other) == [("1", [])]


def test_a_cycle_without_a_decision_and_a_memory_of_an_older_release_await_nothing() -> None:
    assert found(memory(None), orjson.dumps({"short_term_summary": "old"})) == []


def test_the_oldest_are_given_where_there_are_too_many() -> None:
    given = found(*(memory(number) for number in range(AWAITED_MAX + 5)))
    assert [number for number, _ in given] == [str(number) for number in range(AWAITED_MAX)]


def test_the_field_that_is_filled_is_one_of_the_command() -> None:
    assert PAST_DECISIONS in Memorize.model_fields


def test_the_days_looked_back_hold_every_outcomes_session() -> None:
    sessions = exchange_calendar().sessions(
        exchange_calendar().first, exchange_calendar().last.replace(year=2026)
    )
    last = max(OUTCOME_SESSIONS)
    spans = zip(sessions, sessions[last:], strict=False)
    assert max((after - before).days for before, after in spans) < PAST_DAYS
