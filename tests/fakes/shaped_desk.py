"""A desk whose model replies in shapes: whole cycles in process, replies over the real wire.

The model answers as the desk's rules do (`rules_model`), each reply in the shape that a test sets.
"""

import json
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import orjson

from contracts.account import OpenBooks, Portfolio, Position
from contracts.cycle import DECISION, CycleRequest, CycleStatus
from contracts.message import Command, Pipeline
from contracts.operation import CallKind
from contracts.strategy_cycle import BacktestStrategy, TrainStrategy
from contracts.strategy_result import BacktestResult, TrainingResult
from contracts.subjects.commands import BACKTEST_STRATEGY, OPEN_BOOKS, TRAIN_STRATEGY
from contracts.types import Money
from libs.bus.route import Route, on_command
from libs.llm.registry import providers_of
from libs.market.sources import market_of
from libs.runtime.journal import Journal
from libs.runtime.model_settings import EndpointSettings
from libs.runtime.settings import Settings
from services.assessment import app as assessment
from services.research import app as research
from services.risk import app as risk
from services.sentiment import app as sentiment
from services.strategy import app as strategy
from services.trader import app as trader
from tests.data.fixture_market.make_fixture import HERE
from tests.fakes import wire_streams
from tests.fakes.in_process_desk import CASH, InProcessDesk, broker_of_the_imagination
from tests.fakes.model_server import KEY, Answer, Asked, ModelServer, model_server
from tests.fakes.reply_shapes import End, Shape
from tests.fakes.rules_model import agent_of, as_the_rules
from tests.fakes.wire_formats import Says
from tests.unit.services.strategy_results import ASSESSED, backtest, training

AS_OF = date(2024, 3, 15)
HELD = "FOXT"
UNIVERSE = ("ALFA", "DLTA", HELD)
"""One that is bought, one that is left, and one that is held and sold."""
LINE = "p"
ALWAYS = 1_000_000
KEY_VARIABLE = "SHAPED_DESK_KEY"
AGENTS = ("sentiment", "planner", "quant", "analyst", "trader", "risk_review", "memory")
CALLERS = ("planner", "analyst", "trader")
"""Those that have tools."""
DESIGNER, ASSESSOR = "designer", "assessor"
"""The agents of a strategy cycle; the assessor's answer is a call."""


class _Again(Asked):
    """A request whose rounds without a result do not count: the habit comes again."""

    @property
    def round(self) -> int:
        """Rounds of tools that were answered with results."""
        return int("tool_result" in str(self.body["messages"]) or self._has_tool_turn)

    @property
    def _has_tool_turn(self) -> bool:
        return any(message["role"] == "tool" for message in self.body["messages"])


def _plain(asked: Asked) -> Answer:
    """The rules' reply, computed once for each question."""
    key = json.dumps([asked.first, asked.tools, asked.round])
    if key not in _KNOWN:
        _KNOWN[key] = as_the_rules(asked)
    return _KNOWN[key]


_KNOWN: dict[str, Answer] = {}


@dataclass
class ShapedModel:
    """The rules' replies; the first `times` of an agent in the shapes that are set for its answers
    and its calls. `shaped` counts those by agent."""

    answers: Mapping[str, Shape] = field(default_factory=dict)
    calls: Mapping[str, Shape] = field(default_factory=dict)
    times: int = ALWAYS
    count: int = 0
    shaped: dict[str, int] = field(default_factory=dict)

    def __call__(self, asked: Asked) -> Answer:
        """The reply to a request."""
        self.count += 1
        again = _Again(asked.wire, asked.body, asked.headers, asked.number)
        plain = _plain(again)
        assert isinstance(plain, Says)
        agent = agent_of(asked)
        given: Any = plain.calls
        if not asked.tools:
            given = orjson.loads(plain.text.partition("\n")[2])
            plain = Says(orjson.dumps(given).decode())
        shape = (self.calls if asked.tools else self.answers).get(agent)
        if shape is None or not given or self.shaped.get(agent, 0) >= self.times:
            return plain
        reply = shape.change(given) if asked.wire in shape.wires else None
        if reply is None:
            return plain
        self.shaped[agent] = self.shaped.get(agent, 0) + 1
        return Says(reply) if isinstance(reply, str) else reply


@dataclass(frozen=True)
class Outcome:
    """What came of one cycle: its orders, the model calls that it made, and its record."""

    desk: InProcessDesk
    calls: int
    shaped: Mapping[str, int]

    @property
    def status(self) -> CycleStatus:
        """How its pipeline ended."""
        [cycle] = self.desk.cycles.values()
        return CycleStatus(cycle.state.lanes[LINE].status)

    @property
    def reason(self) -> str:
        """Why it ended so."""
        [cycle] = self.desk.cycles.values()
        ending = cycle.state.lanes[LINE].ending
        return f"{cycle.state.reason} {ending.reason if ending else ''}"

    @property
    def failures(self) -> Sequence[str]:
        """Why operations failed."""
        found = self.desk.operations.values()
        return [each.failure.message for each in found if each.failure is not None]

    @property
    def orders(self) -> Any:
        """What the rules let be ordered; of a strategy cycle, its design and how it was judged.
        None where it never came to that."""
        [cycle] = self.desk.cycles.values()
        if cycle.kind == DECISION:
            decision = self._made("validate")
            return decision and decision["decisions"]
        design, judged = self._made("design"), self._made("assess")
        # The folder of strategies gives each cycle's design a name of its own.
        spec = design and {**design["spec"], "name": ""}
        return spec, judged and [judged[name] for name in ASSESSED]

    @property
    def notes(self) -> str:
        """What the decision says of who answered its stages."""
        return str((self._made("validate") or {}).get("substitutes", ""))

    def _made(self, step: str) -> dict[str, Any] | None:
        """What the last operation of a step gave, if it did."""
        found = [each for each in self.desk.operations.values() if each.row.step == step]
        if not found or found[-1].result is None:
            return None
        return dict(orjson.loads(found[-1].result))

    @property
    def errors(self) -> Sequence[str]:
        """What the checks of answers found wrong, as it stands on record."""
        checks = [
            entry.reply
            for each in self.desk.operations.values()
            for entry in each.journal
            if entry.kind is CallKind.READ and entry.name.startswith("check of")
        ]
        return [error for check in checks if isinstance(check, dict) for error in check["errors"]]


def problem(shape: Shape, outcome: Outcome, plain: Outcome) -> str:
    """Why a cycle with a shape did not come to its end; empty where it did."""
    told = f"{outcome.reason} {[*outcome.errors][:3]} {outcome.notes[:300]}"
    if shape.end in (End.ASKED, End.TYPED):
        # What follows the execution does not judge it: its own operation says what went wrong.
        over = outcome.status is CycleStatus.FAILED or [*outcome.shaped] == ["memory"]
        is_so = over and any(shape.says in failure for failure in outcome.failures)
        return "" if is_so else f"{shape.name}: {outcome.status}, not typed: {told}"
    if outcome.status is not CycleStatus.COMPLETED or outcome.orders != plain.orders:
        return f"{shape.name}: {outcome.status}, {outcome.orders}: {told}"
    if shape.end is End.READ and outcome.calls != plain.calls:
        return f"{shape.name}: {outcome.calls} calls for {plain.calls}: {told}"
    if shape.end is End.BY_CODE and "code made" not in outcome.notes:
        return f"{shape.name}: nothing says that code read: {told}"
    return ""


@dataclass
class ShapedDesk:
    """Runs cycles on one set of services; `server` is what they ask."""

    settings: Settings
    routes: Sequence[Route]
    server: ModelServer

    async def run(self, wire: str, model: ShapedModel, kind: str = DECISION) -> Outcome:
        """One cycle, with the replies of this model."""
        self.server.answers = model
        self.server.asked.clear()
        self.server.refused.clear()
        desk = InProcessDesk(self.routes, self.settings)
        line = Pipeline(name=LINE, provider=wire)
        await desk.run(
            CycleRequest(
                idempotency_key="k", kind=kind, as_of=AS_OF, universe=UNIVERSE, pipelines=(line,)
            )
        )
        assert self.server.refused == []
        return Outcome(desk, model.count, model.shaped)


async def _books(command: OpenBooks, _: Journal) -> Portfolio:
    price = Money(amount=Decimal(60))
    held = Position(ticker=HELD, quantity=Decimal(50), average_cost=price, price=price)
    equity = Money(amount=CASH.amount + held.value)
    account = command.pipeline.account
    return Portfolio.of(command, account=account, cash=CASH, equity=equity, positions=(held,))


async def _trained(command: TrainStrategy, _: Journal) -> TrainingResult:
    return training(**_of(command))


async def _tested(command: BacktestStrategy, _: Journal) -> BacktestResult:
    return backtest(**_of(command))


def _of(command: Command) -> dict[str, Any]:
    return {name: getattr(command, name) for name in ("cycle_id", "op_id", "as_of")}


@asynccontextmanager
async def shaped_desk() -> AsyncIterator[ShapedDesk]:
    """The thinking services on a model server, each wire format as a provider of its name."""
    async with model_server((), None) as server, AsyncExitStack() as stack:
        folder = stack.enter_context(TemporaryDirectory())
        stack.enter_context(patch.dict(os.environ, {KEY_VARIABLE: KEY}))
        # Fewer pieces: what comes in pieces of seven characters is tested elsewhere.
        stack.enter_context(patch.object(wire_streams, "PIECE_CHARS", 211))
        models = dict.fromkeys(("small", "medium", "large"), "local")
        settings = Settings(
            market={"replay_dir": HERE},
            strategies_dir=Path(folder),
            providers={
                "openai": EndpointSettings(
                    preset="compatible", base_url=server.openai_url, models=models, free=True
                ),
                "claude": EndpointSettings(
                    base_url=server.url, models=models, free=True, key_variable=KEY_VARIABLE
                ),
            },
        )
        routes: list[Route] = []
        for app in (sentiment, research, trader, risk, assessment):
            routes += (await stack.enter_async_context(app.service(settings))).commands
        providers = await stack.enter_async_context(providers_of(settings))
        routes.append(strategy.designing(market_of(settings), providers, settings))
        execution = [each for each in broker_of_the_imagination() if each.hears is not OPEN_BOOKS]
        routes += (*execution, on_command(OPEN_BOOKS, _books))
        routes += (on_command(TRAIN_STRATEGY, _trained), on_command(BACKTEST_STRATEGY, _tested))
        yield ShapedDesk(settings, routes, server)
