"""The script's mistakes are those of its calendar, and of no other day."""

from datetime import date, timedelta

import orjson
from pydantic import BaseModel

from libs.llm.committee.slips import SILENT_WEEK, Slip, slip_of, text_of

YEAR = [date(2009, 7, 1) + timedelta(days=7 * week) for week in range(50)]


class Answer(BaseModel):
    notes: str = "calm"


def test_a_year_has_every_mistake_and_most_weeks_have_none():
    agents = ("trader", "quant", "sentiment", "analyst")
    slips = [slip_of(agent, day) for agent in agents for day in YEAR]
    assert {slip for slip in slips if slip} == set(Slip)
    assert slips.count(None) > 0.8 * len(slips)


def test_a_day_always_has_the_same_mistake():
    assert [slip_of("trader", day) for day in YEAR] == [slip_of("trader", day) for day in YEAR]


def test_the_silent_week_never_gives_an_answer():
    day = date.fromisocalendar(*SILENT_WEEK, 3)
    assert slip_of("trader", day) is Slip.SILENT
    for tries in range(4):
        assert not text_of(Answer(), Slip.SILENT, tries, day).startswith("{")


def test_without_a_mistake_the_answer_is_the_answer():
    text = text_of(Answer(), None, 0, YEAR[0])
    assert orjson.loads(text) == {"notes": "calm"}
