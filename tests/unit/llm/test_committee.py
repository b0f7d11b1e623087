"""The demo's script: its mistakes are those of its calendar, and its answers are labelled."""

from datetime import date, timedelta
from typing import Any
from uuid import UUID

import orjson
import pytest

from libs.llm.committee import (
    LABEL,
    SILENT_WEEK,
    WHYS,
    CommitteeProvider,
    Slip,
    Wordings,
    slip_of,
)
from libs.llm.provider import AssistantMessage, ModelRequest, UserMessage

YEAR = [date(2009, 7, 1) + timedelta(days=7 * week) for week in range(50)]
CALM = next(day for day in YEAR if slip_of("sentiment", day) is None)
BROKEN = next(day for day in YEAR if slip_of("sentiment", day) is Slip.BROKEN)

DIGEST = {
    "cycle_id": str(UUID(int=1)),
    "op_id": str(UUID(int=2)),
    "as_of": CALM.isoformat(),
    "candidates": [],
}


def request(day: date, tries: int = 0) -> ModelRequest:
    """What the sentiment agent is asked, after so many refused answers."""
    refused = [AssistantMessage(text="{}"), UserMessage(text="again")] * tries
    return ModelRequest(
        agent="sentiment",
        model="scripted-small",
        system="read the news",
        system_sha256="0" * 64,
        messages=(UserMessage(text="score"), *refused),
        task={"as_of": day.isoformat(), "signal_digest": DIGEST},
    )


async def answer(day: date, tries: int = 0) -> dict[str, Any]:
    reply = await CommitteeProvider().complete(request(day, tries))
    assert reply.usage.cost_usd > 0
    body: dict[str, Any] = orjson.loads(reply.text)
    return body


def test_a_year_has_every_mistake_and_most_weeks_have_none():
    agents = ("trader", "quant", "sentiment", "analyst")
    slips = [slip_of(agent, day) for agent in agents for day in YEAR]
    assert {slip for slip in slips if slip} == set(Slip)
    assert slips.count(None) > 0.8 * len(slips)
    assert slip_of("trader", date.fromisocalendar(*SILENT_WEEK, 3)) is Slip.SILENT


async def test_an_answer_is_under_the_scripts_label():
    assert (await answer(CALM))["notes"].startswith(LABEL)


@pytest.mark.parametrize("tries", [1, 2])
async def test_a_broken_answer_is_corrected_after_it_was_refused(tries: int):
    assert "market_mood" not in await answer(BROKEN)
    assert "market_mood" in await answer(BROKEN, tries)


async def test_the_same_request_has_the_same_reply_at_the_same_price():
    provider = CommitteeProvider()
    first, second = [await provider.complete(request(CALM)) for _ in range(2)]
    assert first == second
    reserve = provider.reserve(request(CALM))
    assert reserve is not None
    assert reserve.cost_usd is not None
    assert first.usage.cost_usd <= reserve.cost_usd


def test_the_same_fact_has_other_words_for_each_ticker_of_an_answer():
    wordings = Wordings("analyst/2009-07-01")
    said = [wordings.why("close", against=False) for _ in range(4)]
    assert len({*said[:3]}) == 3
    assert said[3] == said[0]
    assert wordings.why("nothing_known", against=True) == ""
    every = [line for sides in WHYS.values() for lines in sides for line in lines]
    assert len({*every}) == len(every)
    assert not any(character.isdigit() for line in every for character in line)
