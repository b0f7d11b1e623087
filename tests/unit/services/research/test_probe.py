"""A probe: a model is asked who and when a masked input is, and its words are held to the truth."""

import json
import re
from dataclasses import replace
from typing import Any

import pytest

from contracts.cycle import CycleRequest
from contracts.message import Pipeline
from contracts.operation import CallKind
from contracts.probe import GuessDraft, MaskProbe, ProbeInputs
from contracts.sentiment import BuildDigest, Candidate
from libs.llm.errors import ProviderNotUsable
from libs.llm.provider import ModelReply, UserMessage
from services.research import probe as of_research
from tests.fakes.scripted_model import ScriptedProvider
from tests.unit.services.conftest import Desk

UNIVERSE = ("AAPL", "IBM")
MASKED = Pipeline(name="blind", provider="scripted-model", account="study-0", masked=True)


class Guesser(ScriptedProvider):
    """Makes something of the codes that it is shown; it computes nothing, so it is masked."""

    name = "scripted-model"

    def __init__(self, make: Any) -> None:
        super().__init__([])
        self.make = make
        self.asked = ""

    async def complete(self, request: Any) -> ModelReply:
        first = request.messages[0]
        assert isinstance(first, UserMessage)
        self.asked = first.text
        codes = list(dict.fromkeys(re.findall(r"\bS\d{3}\b", first.text)))
        return ModelReply(text=json.dumps({"guesses": self.make(codes)}))


async def probed(desk: Desk, make: Any, pipeline: Pipeline = MASKED) -> tuple[MaskProbe, str]:
    """What came of the guesses that `make` makes of the codes, and what the model was shown."""
    request = CycleRequest(idempotency_key="test", universe=UNIVERSE)
    digest = await desk.do(BuildDigest, request=request)
    model = Guesser(make)
    probe = replace(desk, providers={"scripted-model": model}, pipeline=pipeline)
    return await probe.do(ProbeInputs, request=request, signal_digest=digest), model.asked


async def test_what_is_shown_has_no_name_and_no_date_and_says_what_is_asked(desk: Desk) -> None:
    _, shown = await probed(desk, lambda _: [])

    assert not re.search(r"AAPL|IBM|Apple|Business|2012|June", shown)
    assert "get_stock_history" in shown
    assert "Nobody asks you who" not in shown


async def test_a_real_name_is_heard_and_held_to_the_truth(desk: Desk) -> None:
    def guess(codes: list[str]) -> list[dict[str, str]]:
        day = {"on": "2012-07-30"}
        return [
            {"code": code, "ticker": "nasdaq:aapl", "industry": "information technology", **day}
            for code in codes
        ]

    probe, _ = await probed(desk, guess)

    apple, ibm = sorted(probe.guesses, key=lambda it: it.ticker)
    assert (apple.ticker, apple.guessed, apple.right) == ("AAPL", "AAPL", True)
    assert (ibm.ticker, ibm.guessed, ibm.right) == ("IBM", "AAPL", False)
    assert {it.days_off for it in probe.guesses} == {31}
    assert {it.industry_right for it in probe.guesses} == {True}


async def test_a_company_is_recognised_by_its_name_too(desk: Desk) -> None:
    probe, _ = await probed(
        desk, lambda codes: [{"code": code, "name": "Apple, Inc."} for code in codes]
    )

    assert {it.guessed for it in probe.guesses} == {"AAPL"}


@pytest.mark.parametrize(
    ("listed", "said", "meant"),
    [
        ("Apple Inc.", "Apple", "AAPL"),
        ("Apple", "Apple Computer, Inc.", "AAPL"),
        ("Siemens AG", "siemens", "AAPL"),
        ("Apple Inc.", "App", "App"),
        ("Group", "Ford", "Ford"),
    ],
)
def test_a_legal_form_makes_no_other_company(listed: str, said: str, meant: str) -> None:
    candidate = Candidate(ticker="AAPL", name=listed, sources=())
    assert of_research._whom(GuessDraft(code="S001", name=said), [candidate]) == meant


async def test_a_code_is_no_guess_and_silence_is_none(desk: Desk) -> None:
    probe, _ = await probed(desk, lambda codes: [{"code": codes[0], "ticker": codes[0]}])

    assert {it.ticker for it in probe.guesses} == {*UNIVERSE}
    assert not any(it.right for it in probe.guesses)
    assert {it.on for it in probe.guesses} == {None}


async def test_a_probe_is_one_paid_call_and_asks_nobody_anew_once_it_is_on_record(
    desk: Desk,
) -> None:
    def guess(codes: list[str]) -> list[dict[str, str]]:
        return [{"code": code, "ticker": "AAPL"} for code in codes]

    first, shown = await probed(desk, guess)
    calls = [it for it in desk.journals["probeinputs"] if it.kind is CallKind.MODEL]
    again, nothing = await probed(desk, None)

    assert [call.name for call in calls] == ["scripted:large"], "the model that trades"
    assert (again, nothing) == (first, "")
    assert shown


async def test_who_is_not_masked_is_not_probed(desk: Desk) -> None:
    named = MASKED.model_copy(update={"masked": False})

    with pytest.raises(ProviderNotUsable):
        await probed(desk, lambda _: [], named)
