"""An agent with a scripted provider, a table of tools that counts its calls, journals in lists."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from pydantic import BaseModel, JsonValue

from contracts.account import Portfolio
from contracts.message import Command, Pipeline
from contracts.operation import JournalEntry, Reserve
from contracts.types import Money, ToolDef
from libs.llm.agent import Agent, AgentLimits
from libs.llm.loop import generate, generate_with_tools
from libs.llm.prompt import Prompt, Task
from libs.llm.toolbox import Toolbox
from libs.runtime.errors import DeskError
from libs.runtime.journal import Journal
from tests.fakes.scripted_model import ScriptedProvider


class Answer(BaseModel):
    """What the agents of these tests must say."""

    word: str
    number: int = 0


class Leak(DeskError):
    """As the market layer's error of the same code."""

    code = "look_ahead"


@dataclass
class CountingTools:
    """Tools that echo; `failing` ones raise, `huge` answers with more than a result may hold."""

    failing: Mapping[str, Exception] = field(default_factory=dict)
    names: Sequence[str] = ("price", "news", "huge", "order")
    runs: list[tuple[str, dict[str, JsonValue]]] = field(default_factory=list)
    at_once: int = 0
    _running: int = 0

    def definitions(self) -> Sequence[ToolDef]:
        return [
            ToolDef(name=name, description=name, parameters={"type": "object"})
            for name in self.names
        ]

    async def call(self, name: str, arguments: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
        self.runs.append((name, dict(arguments)))
        self._running += 1
        self.at_once = max(self.at_once, self._running)
        await asyncio.sleep(0)
        self._running -= 1
        if name in self.failing:
            raise self.failing[name]
        return {"tool": name, **arguments, **({"big": "x" * 40_000} if name == "huge" else {})}


@dataclass
class Bench:
    """One operation that can be run again on what it has recorded."""

    provider: ScriptedProvider
    tools: CountingTools = field(default_factory=CountingTools)
    allowed: frozenset[str] = frozenset({"price", "news", "huge"})
    limits: AgentLimits = AgentLimits()
    entries: list[JournalEntry] = field(default_factory=list)
    reserves: list[Reserve | None] = field(default_factory=list)
    task: Task = Task(data={"as_of": "2012-06-29"})

    async def plain(self, **options: Any) -> Answer:
        journal = self._journal()
        try:
            return await generate(self._agent(), self.task, Answer, journal, **options)
        finally:
            await journal.flush()

    async def with_tools(self, **options: Any) -> tuple[Answer, int]:
        journal = self._journal()
        box = Toolbox((self.tools,), self.allowed)
        try:
            answered = await generate_with_tools(
                self._agent(), self.task, Answer, journal, box, **options
            )
            return answered.answer, answered.calls
        finally:
            await journal.flush()

    def again_after(self, entries: int, provider: ScriptedProvider) -> "Bench":
        """The same operation after a crash, with the first `entries` on record."""
        return replace(
            self, provider=provider, tools=CountingTools(), entries=self.entries[:entries]
        )

    def _agent(self) -> Agent:
        return Agent("tester", self.provider, "m1", Prompt.of("Be brief."), 1, self.limits)

    def _journal(self) -> Journal:
        async def record(
            entries: Sequence[JournalEntry], reserve: Reserve | None, _: object
        ) -> None:
            self.reserves.append(reserve)
            self.entries.extend(
                JournalEntry.model_validate_json(entry.model_dump_json()) for entry in entries
            )

        return Journal(list(self.entries), record)


@pytest.fixture
def bench() -> Any:
    """Makes a bench from replies (and other fields of it)."""

    def make(replies: Any, *, faults: Any = None, paid: bool = False, **fields: Any) -> Bench:
        reserved = Reserve(tokens=100, cost_usd=Decimal("0.01")) if paid else None
        provider = ScriptedProvider(replies, faults=faults or {}, reserved=reserved)
        return Bench(provider, **fields)

    return make


@pytest.fixture
def leak() -> Leak:
    """A look-ahead error."""
    return Leak("a bar of tomorrow")


@pytest.fixture
def failing_tools() -> Any:
    """Makes tools of which some fail."""
    return CountingTools


@pytest.fixture
def desk_portfolio() -> Portfolio:
    """An account with cash only."""
    cash = Money(amount=Decimal(1_000))
    return Portfolio(
        cycle_id=UUID(int=1),
        op_id=UUID(int=2),
        as_of=date(2012, 6, 29),
        account="main",
        cash=cash,
        equity=cash,
    )


@pytest.fixture
def make_plan_command() -> Any:
    """Makes a command of a pipeline with these fields."""

    def make(**pipeline: Any) -> Command:
        return Command(
            cycle_id=UUID(int=1),
            op_id=UUID(int=2),
            as_of=date(2012, 6, 29),
            now=datetime(2026, 1, 2, tzinfo=UTC),
            pipeline=Pipeline(name="one", **pipeline),
            state="planning",
            step="plan",
            workflow_version=1,
            seed=1,
        )

    return make
