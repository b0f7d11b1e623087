"""A model that answers as the desk's rules do, from what it reads over the wire and nothing else.

It knows its part by its system prompt, its data by the `<task>` and `<evidence>` of the first turn.
A pipeline on it must come to the decision of the `rules` pipeline: whatever the wire lost on the
way would show.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from json import JSONDecoder
from pathlib import Path
from typing import Any
from uuid import UUID

import orjson

from libs.llm.provider import ToolEvidence
from libs.llm.rules.provider import RULE_SETS
from libs.llm.rules.rule_set import EvidenceIndex, ToolRequest
from tests.fakes.model_server import Answer, Asked
from tests.fakes.wire_formats import Call, Says

NOBODY = str(UUID(int=0))


@dataclass(frozen=True)
class Appetite:
    """How many tools an agent asks for in all, and in one round; the rules ask for all at once."""

    tools_max: int = 1_000
    round_max: int = 1_000


MANNERS = Appetite()
NEVER = "1970-01-01T00:00:00Z"
SERVICES = Path(__file__).parents[2] / "services"


@cache
def parts() -> Mapping[str, str]:
    """Each agent by its system prompt."""
    return {
        path.read_text(encoding="utf-8"): path.stem
        for path in SERVICES.glob("*/prompts/*.md")
        if path.stem in RULE_SETS
    }


def agent_of(asked: Asked) -> str:
    """Whose prompt the request has."""
    return next(name for prompt, name in parts().items() if asked.system.startswith(prompt))


def as_the_rules(asked: Asked, appetites: Mapping[str, Appetite] | None = None) -> Answer:
    """The reply of the rules to a request, with appetites by agent where they differ."""
    agent = agent_of(asked)
    lines = asked.first.split("\n")
    task = _with_ids(orjson.loads(lines[lines.index("<task>") + 1]))
    rules = RULE_SETS[agent]
    if asked.tools:
        wanted = _course(rules.ask(task), asked.round, (appetites or {}).get(agent, MANNERS))
        return Says(calls=[Call(ask.tool, dict(ask.arguments)) for ask in wanted])
    evidence: list[ToolEvidence] = []
    if "<evidence>" in lines:
        first, last = lines.index("<evidence>") + 1, lines.index("</evidence>")
        evidence = [ToolEvidence.model_validate_json(line) for line in lines[first:last]]
    answer = rules.answer(task, EvidenceIndex(evidence, facts_in(lines), publishers_in(lines)))
    return Says(f"Here it is:\n{answer.model_dump_json()}")


def facts_in(lines: Sequence[str]) -> dict[str, float | str]:
    """The facts of a prompt by name, with the numbers as they are written."""
    return {name: _value(written) for name, written in _told(lines)}


def publishers_in(lines: Sequence[str]) -> dict[str, str]:
    """Who published each headline among the facts of a prompt."""
    told = {name: _text(written)[1] for name, written in _told(lines) if written[0] == '"'}
    return {name: publisher for name, publisher in told.items() if publisher is not None}


def _told(lines: Sequence[str]) -> Iterator[tuple[str, str]]:
    if "<facts>" not in lines:
        return
    for line in lines[lines.index("<facts>") + 1 : lines.index("</facts>")]:
        name, _, written = line.partition(" = ")
        yield name, written


def _text(written: str) -> tuple[str, str | None]:
    """A text as it stands between quotes, and who published it, if that is told."""
    text, end = JSONDecoder().raw_decode(written)
    by = written[end:].removeprefix(" by ")
    return text, orjson.loads(by) if by else None


def _value(written: str) -> float | str:
    first = written.split(" ", 1)[0]
    if written.startswith('"'):
        return _text(written)[0]
    return float(first) if re.fullmatch(r"-?\d+(\.\d+)?", first) else written


def _course(
    wanted: Sequence[ToolRequest], number: int, appetite: Appetite
) -> Sequence[ToolRequest]:
    """What is asked for in the round of that number; nothing once all has been."""
    first = number * appetite.round_max
    return wanted[: appetite.tools_max][first : first + appetite.round_max]


def _with_ids(value: Any) -> Any:
    """The ids that no model is told, in every contract: the rules read whole contracts."""
    if isinstance(value, list):
        return [_with_ids(each) for each in value]
    if not isinstance(value, dict):
        return value
    known = {name: _with_ids(each) for name, each in value.items()}
    if "as_of" in value:
        known |= {"cycle_id": NOBODY, "op_id": NOBODY, "account": "main", "now": NEVER}
    known |= {"cycle_id": NOBODY} if "thesis" in value else {}
    return known | ({"order_id": NOBODY} if "asset" in value else {})
