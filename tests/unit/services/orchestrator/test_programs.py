"""A provider that is a program: on record as one, and not asked about what may be looked up."""

from datetime import date

import pytest
from nats.errors import NoRespondersError

from contracts.cycle import CycleRequest, StudyCell
from contracts.message import Pipeline
from contracts.stages import Substitute, Why
from libs.market.errors import MarketError
from libs.runtime.model_settings import EndpointSettings
from services.orchestrator.machine.stages import staged
from services.orchestrator.preflight import AdmissionCheck

LATEST, PAST = date(2012, 6, 29), date(2012, 6, 28)
PROGRAM = EndpointSettings(command=("agent",))
PROVIDERS = {
    "local": PROGRAM,
    "vendor": EndpointSettings(command=("agent",), sandbox={"only_vendor": True}),
    "lab": EndpointSettings(base_url="http://lab", stages={"trader": "local"}),
    "careful": EndpointSettings(base_url="http://lab", fallback={"trader": "local"}),
}


class Sessions:
    """A calendar whose newest session may be unknown."""

    def __init__(self, latest):
        self._latest = latest

    async def require(self, as_of):
        """Each day is one."""

    async def latest(self):
        """The newest one."""
        if self._latest is None:
            raise MarketError("the calendar is away")
        return self._latest


class Silent:
    """A bus on which nobody answers."""

    async def request(self, *_, **__):
        """Nobody is there."""
        raise NoRespondersError


def asked(*providers, **fields):
    pipelines = tuple(Pipeline(name=name, provider=name) for name in providers)
    return CycleRequest(idempotency_key="k", pipelines=pipelines, **fields)


async def refusal(request, as_of, latest=LATEST):
    door = AdmissionCheck(Silent(), Sessions(latest), None, (), PROVIDERS)
    return (await door("cli", request, as_of)).rejection


@pytest.mark.parametrize("name", ["local", "lab", "careful"])
async def test_a_past_date_is_refused_whoever_gives_it_a_stage(name):
    refused = await refusal(asked(name), PAST)
    assert (refused.code, refused.suggestion) == ("outside_tools", "2012-06-29")
    assert "may know data after 2012-06-28" in refused.message
    assert await refusal(asked(name), LATEST) is None


async def test_one_among_other_pipelines_is_enough():
    assert (await refusal(asked("rules", "local"), PAST)).code == "outside_tools"
    assert await refusal(asked("rules"), PAST) is None


async def test_where_the_newest_session_is_not_known_none_is_asked():
    refused = await refusal(asked("local"), LATEST, latest=None)
    assert "the newest session is not known" in refused.message


async def test_a_study_is_refused_for_each_of_its_dates():
    cell = StudyCell.model_construct(dry_run=True)
    request = asked("local").model_copy(update={"study": cell})
    assert "studies do not use it" in (await refusal(request, LATEST)).message


async def test_what_reaches_its_vendor_alone_is_asked_about_the_past():
    assert await refusal(asked("vendor"), PAST) is None


def test_the_desk_says_which_are_programs_and_no_request():
    forged = Pipeline(name="a", provider="lab", programs=("lab",))
    hidden = Pipeline(name="b", provider="rules", stages={"risk": "vendor"})
    request = CycleRequest(idempotency_key="k", pipelines=(forged, hidden))
    lab, rules = staged(request, PROVIDERS).pipelines
    assert (lab.programs, rules.programs) == (("local",), ("vendor",))


def test_a_decision_says_that_outside_tools_are_not_excluded():
    one = Substitute(stage="trader", by="local", why=Why.OUTSIDE_TOOLS)
    assert one.in_words == "picks by local (outside tools: not excluded)"
