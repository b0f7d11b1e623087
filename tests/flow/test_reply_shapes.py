"""Every shape of reply x every agent that it matters for, through whole cycles over the wire.

The table is `tests/fakes/reply_shapes.py`. In one cycle each agent replies in a shape of its own.
Each shape that is read is tried with an agent or more, each that is asked about with all; of the
shapes of a strategy cycle's agents a sample is tried. `tests/chaos/reply_matrix.py` tries each with
all on both wires.
"""

from collections.abc import AsyncIterator, Mapping, Sequence

import pytest
import pytest_asyncio

from contracts.cycle import STRATEGY, CycleStatus
from tests.fakes.reply_shapes import ANSWERS, CALLS, PLAIN, End, Shape
from tests.fakes.shaped_desk import (
    AGENTS,
    ASSESSOR,
    CALLERS,
    DESIGNER,
    Outcome,
    ShapedDesk,
    ShapedModel,
    problem,
    shaped_desk,
)

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="module")]
READ = [shape for shape in ANSWERS if shape.end is End.READ]
READ_CALLS = [shape for shape in CALLS if shape.end is End.READ]
ASKED = [shape for shape in ANSWERS if shape.end is End.ASKED]
TYPED = [shape for shape in ANSWERS if shape.end is End.TYPED]
BY_CODE = [shape for shape in CALLS if shape.end is End.BY_CODE]
MOST_READ = max(len(READ), len(READ_CALLS))
OPENAI_EVERY = 3
CLAUDE_EVERY = 5
DESIGN_EVERY = 6
OF_DECISIONS = [shape for shape in [*ASKED, *TYPED] if shape.agents != (DESIGNER,)]
OF_DESIGNS = [shape for shape in [*ASKED, *TYPED] if DESIGNER in (shape.agents or [DESIGNER])]
OF_DESIGNS_ALONE = [shape for shape in OF_DESIGNS if DESIGNER in shape.agents]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def desk() -> AsyncIterator[ShapedDesk]:
    """One set of services for all cycles."""
    async with shaped_desk() as running:
        yield running


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def plain(desk: ShapedDesk) -> Mapping[str, Outcome]:
    """The cycle of plain replies, by wire format."""
    return {wire: await desk.run(wire, ShapedModel()) for wire in ("openai", "claude")}


def dealt(shapes: Sequence[Shape], first: int, agents: Sequence[str]) -> Mapping[str, Shape]:
    """A shape for each agent, other ones at each start."""
    return {agent: shapes[(first + n) % len(shapes)] for n, agent in enumerate(agents)}


def suiting(shapes: Mapping[str, Shape]) -> Mapping[str, Shape]:
    """Those that are for their agents."""
    return {agent: each for agent, each in shapes.items() if agent in (each.agents or [agent])}


async def test_the_table_holds_as_many_shapes_as_were_promised_and_each_is_tried() -> None:
    assert len(READ) + len(READ_CALLS) >= 180
    assert len(ASKED) + len(TYPED) + len(BY_CODE) >= 50
    for table in (ANSWERS, CALLS):
        assert len({shape.name for shape in table}) == len(table)
    for shapes, agents in ((READ, AGENTS), (READ_CALLS, CALLERS)):
        tried = [suiting(dealt(shapes, n, agents)) for n in range(0, MOST_READ, OPENAI_EVERY)]
        assert {each.name for one in tried for each in one.values()} == {it.name for it in shapes}


@pytest.mark.parametrize(
    ("wire", "first"),
    [
        *(("openai", n) for n in range(0, MOST_READ, OPENAI_EVERY)),
        *(("claude", n) for n in range(0, MOST_READ, CLAUDE_EVERY)),
    ],
)
async def test_shapes_that_are_read_trade_as_the_plain_ones_and_cost_no_call_more(
    desk: ShapedDesk, plain: Mapping[str, Outcome], wire: str, first: int
) -> None:
    answers, calls = suiting(dealt(READ, first, AGENTS)), dealt(READ_CALLS, first, CALLERS)
    outcome = await desk.run(wire, ShapedModel(answers, calls))
    names = {agent: shape.name for agent, shape in (*answers.items(), *calls.items())}
    assert problem(PLAIN, outcome, plain[wire]) == "", names


@pytest.mark.parametrize("first", range(len(ASKED)))
async def test_a_shape_that_may_mean_two_things_is_asked_about_once(
    desk: ShapedDesk, plain: Mapping[str, Outcome], first: int
) -> None:
    model = ShapedModel(suiting(dealt(ASKED, first, AGENTS)), times=1)
    outcome = await desk.run("openai", model)
    names = {agent: shape.name for agent, shape in model.answers.items()}
    assert outcome.status is CycleStatus.COMPLETED, (names, outcome.reason)
    assert outcome.orders == plain["openai"].orders, names
    assert outcome.calls - plain["openai"].calls == len(outcome.shaped), names


@pytest.mark.parametrize("shape", OF_DECISIONS, ids=lambda shape: shape.name)
async def test_a_model_that_repeats_it_ends_its_pipeline_with_the_reason(
    desk: ShapedDesk, plain: Mapping[str, Outcome], shape: Shape
) -> None:
    agents = [agent for agent in AGENTS if agent in (shape.agents or AGENTS)]
    for agent in (*agents[len(shape.name) % len(agents) :], *agents):
        outcome = await desk.run("openai", ShapedModel({agent: shape}))
        if outcome.shaped:
            assert problem(shape, outcome, plain["openai"]) == "", agent
            return
    pytest.fail("it changes no agent's answer")


@pytest.mark.parametrize("shape", BY_CODE, ids=lambda shape: shape.name)
async def test_code_reads_for_a_model_whose_calls_cannot_be_read_and_the_decision_says_so(
    desk: ShapedDesk, plain: Mapping[str, Outcome], shape: Shape
) -> None:
    for agent in shape.agents:
        outcome = await desk.run("openai", ShapedModel(calls={agent: shape}))
        assert problem(shape, outcome, plain["openai"]) == "", agent


@pytest.mark.parametrize("first", range(0, MOST_READ, DESIGN_EVERY))
async def test_shapes_that_are_read_design_and_judge_as_the_plain_ones(
    desk: ShapedDesk, first: int
) -> None:
    plain = await desk.run("openai", ShapedModel(), STRATEGY)
    assert plain.status is CycleStatus.COMPLETED, plain.reason
    answers = suiting(dealt(READ, first, [DESIGNER]))
    calls = dealt(READ_CALLS, first, [ASSESSOR])
    outcome = await desk.run("openai", ShapedModel(answers, calls), STRATEGY)
    names = [shape.name for shape in (*answers.values(), *calls.values())]
    assert problem(PLAIN, outcome, plain) == "", names


@pytest.mark.parametrize(
    "shape", OF_DESIGNS[::DESIGN_EVERY] + OF_DESIGNS_ALONE, ids=lambda shape: shape.name
)
async def test_a_designer_that_repeats_what_may_mean_two_things_ends_with_the_reason(
    desk: ShapedDesk, shape: Shape
) -> None:
    plain = await desk.run("openai", ShapedModel(), STRATEGY)
    once = await desk.run("openai", ShapedModel({DESIGNER: shape}, times=1), STRATEGY)
    if not once.shaped:
        assert once.orders == plain.orders
        return
    if shape.end is End.ASKED:
        assert (once.orders, once.calls) == (plain.orders, plain.calls + 1)
    repeated = await desk.run("openai", ShapedModel({DESIGNER: shape}), STRATEGY)
    assert problem(shape, repeated, plain) == ""
