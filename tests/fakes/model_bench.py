"""An agent that speaks to a model server through one of the two SDKs, and what it has on record."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic import BaseModel, SecretStr

from contracts.operation import JournalEntry, Reserve
from contracts.types import ToolDef
from libs.llm.agent import Agent, AgentLimits
from libs.llm.endpoints.endpoint import PRESETS, PRICES
from libs.llm.endpoints.remote import RemoteProvider
from libs.llm.loop import call_tools, generate, generate_with_tools
from libs.llm.prompt import Prompt, Task
from libs.llm.provider import ToolEvidence
from libs.llm.toolbox import Toolbox
from libs.runtime.journal import Journal
from tests.fakes.model_server import KEY, Answer, ModelServer, Script, model_server
from tests.fakes.wire_formats import Says

TIMEOUT_S = 5.0
WIRES = ("claude", "openai")
GOOD = Says('{"word": "yes", "number": 3}')
PROMPT = Prompt.of("Be brief.")


class Answered(BaseModel):
    word: str
    number: int = 0


class Prices:
    """One tool, which counts its calls."""

    def __init__(self) -> None:
        self.asked: list[Any] = []

    def definitions(self) -> Sequence[ToolDef]:
        parameters = {"type": "object", "properties": {"ticker": {"type": "string"}}}
        return [ToolDef(name="price", description="the price", parameters=parameters)]

    async def call(self, name: str, arguments: Any) -> dict[str, Any]:
        self.asked.append(arguments)
        return {"tool": name, **arguments}


@dataclass
class Bench:
    """An agent that speaks to a server, and what it has on record."""

    server: ModelServer
    agent: Agent
    entries: list[JournalEntry] = field(default_factory=list)
    reserves: list[Reserve] = field(default_factory=list)
    tools: Prices = field(default_factory=Prices)

    async def plain(self) -> Answered:
        journal = self._journal()
        try:
            return await generate(self.agent, Task(data={"as_of": "x"}), Answered, journal)
        finally:
            await journal.flush()

    async def with_tools(self) -> tuple[Answered, int]:
        box = Toolbox((self.tools,), frozenset({"price"}))
        task = Task(data={"as_of": "x"})
        done = await generate_with_tools(self.agent, task, Answered, self._journal(), box)
        return done.answer, done.calls

    async def tools_alone(self) -> Sequence[ToolEvidence]:
        box = Toolbox((self.tools,), frozenset({"price"}))
        return await call_tools(self.agent, Task(data={"as_of": "x"}), self._journal(), box)

    def _journal(self) -> Journal:
        async def record(
            entries: Sequence[JournalEntry], reserve: Reserve | None, _: object
        ) -> None:
            self.entries.extend(entries)
            self.reserves.extend([reserve] if reserve else [])

        return Journal(self.entries, record)


Speaking = Callable[..., AbstractAsyncContextManager[Bench]]


def bench_of(
    wire: str,
) -> Speaking:
    """Makes a bench over an SDK; fields of its endpoint may be given."""

    @asynccontextmanager
    async def speak(
        answers: Sequence[Answer] | Script,
        timeout_s: float = TIMEOUT_S,
        key: str = KEY,
        **changes: Any,
    ) -> AsyncIterator[Bench]:
        async with model_server(answers) as server:
            url = server.url if wire == "claude" else server.openai_url
            can = {"capabilities": replace(PRESETS[wire].capabilities, **changes.pop("can", {}))}
            endpoint = replace(
                PRESETS[wire], **{"base_url": url, "timeout_s": timeout_s, **can, **changes}
            )
            provider = RemoteProvider(endpoint, SecretStr(key), PRICES)
            model = endpoint.models["medium"]
            limits = AgentLimits(attempts_max=3)
            try:
                yield Bench(server, Agent("tester", provider, model, PROMPT, 1, limits))
                assert server.refused == []
            finally:
                await provider.close()

    return speak
