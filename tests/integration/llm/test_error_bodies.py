"""How real endpoints word their refusals, and what the desk makes of each, over the real SDKs.

tests/data/error_bodies.jsonl has one wording a line. Its `source` says how it is known: `quoted`
names a public issue that shows the body (or the line that a client printed of it), `documented` a
vendor's page or a server's own source, `memory` is written as it is remembered. The desk itself has
seen none of them: no endpoint could be reached. Ids in them are made up.
"""

from collections import Counter
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import orjson
import pytest
import pytest_asyncio
from pydantic import BaseModel, SecretStr

from libs.llm.agent import Agent, AgentLimits
from libs.llm.endpoints.endpoint import PRESETS, PRICES
from libs.llm.endpoints.remote import RemoteProvider
from libs.llm.errors import AnswerInvalid, ModelError
from libs.llm.loop import generate
from libs.llm.prompt import Prompt, Task
from libs.runtime.journal import Journal
from tests.fakes.model_server import KEY, Body, ModelServer, model_server

TRIES = 3
CALLS = {"provider_unavailable": TRIES, "reply_unreadable": TRIES}
"""How often it is asked, where not once: an outage again, a bad answer with what was wrong."""


@dataclass(frozen=True)
class Wording:
    """One answer, the error that it becomes, and what must stand in what a person reads."""

    vendor: str
    status: int
    body: Any
    code: str
    told: str
    source: str
    wire: str = "openai"

    def answer(self) -> Body:
        """As the endpoint sends it."""
        if isinstance(self.body, str):
            return Body(self.body.encode(), self.status, "text/html")
        return Body(orjson.dumps(self.body), self.status)

    @property
    def calls(self) -> int:
        """A wait beyond the limit is not waited for."""
        return 1 if "it asks to wait" in self.told else CALLS.get(self.code, 1)


LINES = (Path(__file__).parents[2] / "data/error_bodies.jsonl").read_text().splitlines()
WORDINGS = [Wording(**orjson.loads(line)) for line in LINES]


class Answered(BaseModel):
    word: str


async def _record(*_: object) -> None: ...


@dataclass
class Endpoints:
    """One server, with a provider for each wire; `answer` is what it says."""

    server: ModelServer
    providers: Mapping[str, RemoteProvider] = field(default_factory=dict)
    answer: Body = Body(b"")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def endpoints() -> AsyncIterator[Endpoints]:
    found = Endpoints(ModelServer(lambda _: found.answer))
    async with model_server(found.server) as server:
        urls = {"claude": server.url, "openai": server.openai_url}
        found.providers = {wire: _provider(wire, url) for wire, url in urls.items()}
        yield found
        for each in found.providers.values():
            await each.close()


def _provider(wire: str, url: str) -> RemoteProvider:
    preset = PRESETS["claude" if wire == "claude" else "compatible"]
    endpoint = replace(preset, base_url=url, free=True, timeout_s=60.0)
    return RemoteProvider(endpoint, SecretStr(KEY), PRICES)


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.usefixtures("no_waits")
@pytest.mark.parametrize("wording", WORDINGS, ids=lambda w: f"{w.vendor} {w.status} {w.code}")
async def test_every_wording_has_its_outcome_and_tells_a_person_what_to_do(
    endpoints: Endpoints, wording: Wording
) -> None:
    endpoints.answer = wording.answer()
    endpoints.server.asked.clear()
    limits = AgentLimits(attempts_max=TRIES, repairs_max=TRIES - 1)
    provider = endpoints.providers[wording.wire]
    agent = Agent("tester", provider, "m", Prompt.of("Be brief."), 1, limits)
    with pytest.raises(ModelError) as caught:
        await generate(agent, Task(data={}), Answered, Journal([], _record))
    assert len(endpoints.server.asked) == wording.calls
    if wording.code == "reply_unreadable":
        assert isinstance(caught.value, AnswerInvalid)
    else:
        assert caught.value.code == wording.code
    assert wording.told in caught.value.message
    assert len(caught.value.message) < 800


def test_every_wording_says_how_it_is_known() -> None:
    kinds = Counter(wording.source.split()[0] for wording in WORDINGS)
    assert kinds.keys() == {"quoted", "documented", "memory"}
    assert len(WORDINGS) >= 48
    assert all(w.source.count("#") == 1 for w in WORDINGS if w.source.startswith("quoted"))
