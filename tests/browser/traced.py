"""Cycles whose traces are worth a look: a model's with all that can happen to it, one that fails,
one that has waited for hours."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from uuid import UUID, uuid4

from libs.servers.embedded_thread import held_in_thread
from tests.fakes.model_server import KEY, Answer, Asked, Error, model_server
from tests.fakes.rules_model import agent_of, as_the_rules
from tests.fakes.wire_formats import Says
from tests.integration.desk.caller import Caller, Json, operation_of, wish
from tests.integration.desk.conftest import Desk

HOSTILE = "</script><img src=x onerror=alert(1)> **bold** [click](https://evil.example/)"
"""What the model says beside its tool calls: it must stay text."""
CACHED = {"cache_read_input_tokens": 5_200, "cache_creation_input_tokens": 300}
WRONG = '{"tickers": "all of them"}'
ANSWERS_WRONG = 3
"""Of the analyst: an answer and its two repairs, so that its first attempt fails."""
WAITED = "interval '2 hours 10 minutes'"
OF_CYCLE = {
    "cycles": ("accepted_at", "cycle_id = $1"),
    "operations": ("created_at, started_at, finished_at", "cycle_id = $1"),
    "journal": (
        "recorded_at",
        "op_id in (select op_id from operations where cycle_id = $1)",
    ),
}
"""By table: its times, and which of its rows are a cycle's."""
KEYS = {"ANTHROPIC_API_KEY": KEY, "LAB_API_KEY": "none-that-is-taken"}


@dataclass(frozen=True)
class Traced:
    """The cycles by what is to be seen in them."""

    modelled: str
    refused: str
    analyst: str
    trader: str


@dataclass
class _Model:
    """Answers as the rules do, with one of each fault: a lost call, a wrong answer, an attempt of
    wrong answers."""

    asked: dict[str, int] = field(default_factory=dict)

    def __call__(self, asked: Asked) -> Answer:
        agent = agent_of(asked)
        what = f"{agent} {'tools' if asked.tools else 'answer'}"
        number = self.asked[what] = self.asked.get(what, 0) + 1
        if what == "planner answer" and number == 1:
            return Error(529, "overloaded_error", "Overloaded", {"retry-after": "0.05"})
        wrong = {"quant answer": 1, "analyst answer": ANSWERS_WRONG}.get(what, 0)
        if number <= wrong:
            return Says(WRONG, usage=CACHED)
        answer = as_the_rules(asked)
        if not isinstance(answer, Says):
            return answer
        text = HOSTILE if asked.tools else answer.text
        return Says(text, answer.calls, usage=CACHED)


@contextmanager
def model() -> Iterator[Mapping[str, object]]:
    """The providers of a desk: `claude` on a model of this machine, `lab` whose key is refused."""
    with held_in_thread(lambda: model_server(_Model())) as server:
        lab = dict.fromkeys(("small", "medium", "large"), "lab-1")
        yield {
            "claude": {"base_url": server.url, "rate": {}},
            "lab": {"base_url": server.openai_url, "models": lab, "free": True},
        }


async def traced(desk: Desk, caller: Caller, waiting: str) -> Traced:
    """Run the cycles; `waiting` is one that waits for a person, and has done so for long."""
    whole = await caller.run(by("claude"))
    assert whole["status"] == "completed", whole["reason"]
    refused = await caller.accepted(by("lab"))
    await caller.ended(refused)
    nodes = (await caller.query("operations", cycle_id=whole["cycle_id"]))["operations"]
    trader = operation_of(nodes, "picks")
    await fenced(desk, trader)
    await waited(desk, waiting)
    # The newest of its attempts.
    analyst = operation_of([*reversed(nodes)], "analyst")
    return Traced(str(whole["cycle_id"]), refused, str(analyst), str(trader))


def by(provider: str) -> Json:
    """A cycle of one pipeline on a provider."""
    account = f"a{uuid4().hex[:12]}"
    return wish(pipelines=[{"name": provider, "provider": provider, "account": account}])


async def fenced(desk: Desk, op_id: UUID) -> None:
    """As if the operation's process had been frozen after two calls, and another went on."""
    async with desk.postgres() as db:
        await db.execute("update operations set epoch = 2 where op_id = $1", op_id)
        await db.execute("update journal set epoch = 2 where op_id = $1 and index >= 2", op_id)


async def waited(desk: Desk, cycle_id: str) -> None:
    """As if all of the cycle had been done hours ago, up to the question to a person."""
    async with desk.postgres() as db:
        for table, (times, which) in OF_CYCLE.items():
            earlier = ", ".join(f"{time} = {time} - {WAITED}" for time in times.split(", "))
            await db.execute(f"update {table} set {earlier} where {which}", UUID(cycle_id))
