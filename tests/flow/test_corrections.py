"""What a model is sent after a refused answer or call never quotes what it wrote.

A small model copies a quoted mistake into its next answer. So each stage's plain answer is read
again with a canary in the place of every value, key and item, and no correction may hold it: a new
check that quotes fails here. Whole cycles show the same of all that is sent over the wire.
"""

import copy
import json
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
import pytest_asyncio
from pydantic import BaseModel

from contracts.cycle import DECISION, STRATEGY
from libs.llm import loop
from libs.llm.answer import read_answer
from tests.fakes.model_server import Error
from tests.fakes.reply_shapes import End, Shape, native
from tests.fakes.rules_model import agent_of
from tests.fakes.shaped_desk import (
    AGENTS,
    ASSESSOR,
    CALLERS,
    DESIGNER,
    ShapedDesk,
    ShapedModel,
    shaped_desk,
)
from tests.fakes.wire_formats import Says

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="module")]
WORD, NUMBER = "ZQXJ", 8675309
CANARIES: Sequence[Any] = (
    WORD,
    f"{WORD.lower()} marmalade",
    NUMBER,
    -NUMBER,
    NUMBER / 1e9,
    f"{NUMBER}%",
    f"{NUMBER}/10",
    [WORD],
    [WORD, WORD],
    {WORD: WORD},
    [{WORD: NUMBER}],
    {"ticker": WORD},
    f"{WORD}.close",
)
REFUSED_MIN = 20
"""Answers of each contract that must be refused, so that the test looks at something."""


def quoted(text: str) -> bool:
    """Whether a text holds a canary."""
    return WORD.lower() in text.lower() or str(NUMBER) in text


def mutated(value: Any) -> Iterator[Any]:
    """The answer with a canary in one place, each place in its turn."""
    yield from CANARIES
    if isinstance(value, dict):
        for key, item in value.items():
            rest = {k: v for k, v in value.items() if k != key}
            yield {**rest, WORD: item}
            yield {**value, WORD: item}
            yield {**value, key.upper(): WORD}
            for inside in mutated(item):
                yield {**value, key: inside}
    elif isinstance(value, list):
        yield from ([*value, canary] for canary in CANARIES)
        for place, item in enumerate(value):
            yield [*value, *with_canaries(item)]
            for inside in mutated(item):
                yield [*value[:place], inside, *value[place + 1 :]]


def with_canaries(item: Any) -> Sequence[Any]:
    """An item twice more, under the same new name."""
    if isinstance(item, dict) and "ticker" in item:
        item = {**item, "ticker": WORD}
    return [item, item]


def broken(answer: Mapping[str, Any]) -> Iterator[str]:
    """Texts that are no JSON, each with a canary."""
    text = json.dumps({**answer, "one": 1})
    for value in (
        WORD,
        f"{NUMBER}_0",
        f"{NUMBER}e999",
        f'"{WORD}',
        f'1, "one": "{WORD}"',
        f"[{WORD}",
    ):
        yield text.replace('"one": 1', f'"one": {value}')
    yield text.replace('"one": 1', f'"{WORD}": 1, "{WORD}": 2')
    yield text.replace('"one": 1', f'"{WORD}"')
    yield f"{WORD} {NUMBER}"


@dataclass
class Readings:
    """Reads each answer of a cycle, and before that with its canaries."""

    refused: Counter[str]
    quoting: list[str]

    def __call__(
        self, text: str, output: type[BaseModel], check: Any, *given: Any, **how: Any
    ) -> Any:
        """As `read_answer`."""
        answer = json.loads(text)
        for odd in (*map(json.dumps, mutated(answer)), *broken(answer)):
            read = read_answer(odd, output, copy.copy(check), *given, **how)
            self.refused[output.__name__] += bool(read.errors)
            self.quoting += [
                f"{output.__name__}: {e}: {odd[:300]}" for e in read.errors if quoted(e)
            ]
        return read_answer(text, output, check, *given, **how)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def desk() -> AsyncIterator[ShapedDesk]:
    """One set of services for all cycles."""
    async with shaped_desk() as running:
        yield running


@pytest.mark.parametrize(("kind", "contracts"), [(DECISION, 7), (STRATEGY, 1)])
async def test_no_check_of_any_stage_quotes_the_answer(
    desk: ShapedDesk, monkeypatch: pytest.MonkeyPatch, kind: str, contracts: int
) -> None:
    readings = Readings(Counter(), [])
    monkeypatch.setattr(loop, "read_answer", readings)
    await desk.run("openai", ShapedModel(), kind)
    assert readings.quoting == []
    assert len(readings.refused) == contracts
    assert min(readings.refused.values()) >= REFUSED_MIN, readings.refused


def sent(desk: ShapedDesk, agent: str) -> list[str]:
    """All that the desk sent to an agent's model, without the model's own turns."""
    own_requests = [each for each in desk.server.asked if agent_of(each) == agent]
    turns = [message for each in own_requests for message in each.body["messages"]]
    own = [turn["content"] for turn in turns if turn["role"] in ("user", "tool")]
    return [text if isinstance(text, str) else json.dumps(text) for text in own]


def first_ticker(answer: Any) -> Any:
    """The answer with a canary as its first ticker, and as a list's new name."""
    text = json.dumps(answer)
    for name in ("ALFA", "DLTA", "FOXT"):
        if f'"{name}"' in text:
            return text.replace(f'"{name}"', f'"{WORD}"')
    return text[:-1] + f', "{WORD}": '


ODD_ANSWERS = (
    Shape("a ticker", first_ticker, End.ASKED),
    Shape("words", lambda _: f"I choose {WORD} for {NUMBER}", End.ASKED),
    Shape("a broken object", lambda a: json.dumps(a)[:-1] + f', "{WORD}": {NUMBER}', End.ASKED),
)
ODD_CALLS = (
    Shape("a tool", native(lambda _: "zqxj_tool"), End.ASKED),
    Shape("a ticker", native(arguments=lambda a: {**a, "ticker": WORD}), End.ASKED),
    Shape("a text for a number", native(arguments=lambda a: {**a, "days": WORD}), End.ASKED),
    Shape("a large number", native(arguments=lambda a: {**a, "days": NUMBER}), End.ASKED),
    Shape("an argument", native(arguments=lambda a: {WORD: NUMBER}), End.ASKED),
    Shape("broken", native(arguments=lambda _: f'{{"ticker": "{WORD}'), End.ASKED),
    Shape("two", native(arguments=lambda _: f'{{"{WORD}": 1}}{{"{WORD}": 2}}'), End.ASKED),
    Shape("broken, unknown", native(lambda _: "zqxj_tool", lambda _: f"{WORD} is"), End.ASKED),
    Shape(
        "points", native(arguments=lambda a: {**a, "strengths": [f"{{{WORD}.x}}"] * 2}), End.ASKED
    ),
    Shape("a verdict", native(arguments=lambda a: {**a, "verdict": WORD}), End.ASKED),
    Shape(
        "a text", lambda c: Says(f'<tool_call>{{"name": "{WORD}", "arguments": {{}}}}'), End.ASKED
    ),
)


@pytest.mark.parametrize("shape", ODD_ANSWERS, ids=lambda shape: shape.name)
@pytest.mark.parametrize("agent", [*AGENTS, DESIGNER])
async def test_no_repair_nor_further_attempt_holds_what_the_model_wrote(
    desk: ShapedDesk, agent: str, shape: Shape
) -> None:
    kind = STRATEGY if agent == DESIGNER else DECISION
    outcome = await desk.run("openai", ShapedModel({agent: shape}), kind)
    assert outcome.shaped
    assert [text for text in sent(desk, agent) if quoted(text)] == []


@pytest.mark.parametrize("shape", ODD_CALLS, ids=lambda shape: shape.name)
@pytest.mark.parametrize("agent", [*CALLERS, ASSESSOR])
async def test_no_answer_to_a_refused_call_holds_it(
    desk: ShapedDesk, agent: str, shape: Shape
) -> None:
    kind = STRATEGY if agent == ASSESSOR else DECISION
    outcome = await desk.run("openai", ShapedModel(calls={agent: shape}), kind)
    assert outcome.shaped
    assert [text for text in sent(desk, agent) if quoted(text)] == []


@pytest.mark.parametrize("of_calls", [True, False])
@pytest.mark.parametrize("agent", [*CALLERS, ASSESSOR])
async def test_what_a_server_could_not_read_of_a_model_is_for_people_alone(
    desk: ShapedDesk, agent: str, of_calls: bool
) -> None:
    words = f"Failed to parse tool call arguments as JSON: {WORD} {NUMBER}"
    shapes = {agent: Shape("unreadable", lambda _: Error(500, message=words), End.ASKED)}
    model = ShapedModel(calls=shapes) if of_calls else ShapedModel(shapes)
    outcome = await desk.run("openai", model, STRATEGY if agent == ASSESSOR else DECISION)
    assert [text for text in sent(desk, agent) if quoted(text)] == []
    if outcome.shaped and outcome.failures:
        assert any(quoted(failure) for failure in outcome.failures)
