"""Every shape of reply with every agent, on both wire formats.

    python -m tests.chaos.reply_matrix

The suite deals the shapes out to the agents (`tests/flow/test_reply_shapes.py`). Here each cycle
has one shape, and one agent where it is not read.
"""

import asyncio
import logging
import sys
from collections.abc import Iterator, Mapping, Sequence

import structlog

from contracts.cycle import DECISION, STRATEGY
from tests.fakes.reply_shapes import ANSWERS, CALLS, End, Shape
from tests.fakes.shaped_desk import (
    AGENTS,
    ASSESSOR,
    CALLERS,
    DESIGNER,
    ShapedModel,
    problem,
    shaped_desk,
)

WIRES = ("openai", "claude")


TRIED = (
    (DECISION, ANSWERS, AGENTS),
    (DECISION, CALLS, CALLERS),
    (STRATEGY, ANSWERS, (DESIGNER,)),
    # Code reads nothing for an assessor, whose answer is a call.
    (STRATEGY, [shape for shape in CALLS if shape.end is End.READ], (ASSESSOR,)),
)
"""The tables of shapes by the kind of cycle, and the agents that they are for."""


def models() -> Iterator[tuple[str, Shape, ShapedModel]]:
    """Each shape with the kind of cycle and the models that reply in it: all agents at once where
    it is read."""
    for kind, table, agents in TRIED:
        for shape in table:
            own = [agent for agent in agents if agent in (shape.agents or agents)]
            for group in groups(shape, own):
                shapes: Mapping[str, Shape] = dict.fromkeys(group, shape)
                calls = table is not ANSWERS
                yield kind, shape, ShapedModel(calls=shapes) if calls else ShapedModel(shapes)


def groups(shape: Shape, agents: Sequence[str]) -> Sequence[Sequence[str]]:
    """The agents that reply so in one cycle."""
    if not agents:
        return []
    return [agents] if shape.end is End.READ else [(agent,) for agent in agents]


async def main() -> int:
    """Run all; print each that did not come to its end, and return how many."""
    count, problems = 0, 0
    async with shaped_desk() as desk:
        for wire in WIRES:
            plain = {k: await desk.run(wire, ShapedModel(), k) for k in (DECISION, STRATEGY)}
            for kind, shape, model in models():
                if wire not in shape.wires:
                    continue
                outcome = await desk.run(wire, model, kind)
                if not outcome.shaped:
                    continue
                count += 1
                why = problem(shape, outcome, plain[kind])
                problems += bool(why)
                if why:
                    sys.stdout.write(f"{wire} {[*outcome.shaped]} {why}\n")
    sys.stdout.write(f"{count} cycles, {problems} of them not as they should be\n")
    return problems


if __name__ == "__main__":
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    sys.exit(bool(asyncio.run(main())))
