"""Read the labelled claims and what they are judged against; README.md has the guide."""

from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import orjson

from libs.llm.provider import Evidence

HERE = Path(__file__).parent
PARTS = (
    "development",
    "held_out",
    "held_out_2",
    "held_out_3",
    "held_out_4",
    "held_out_5",
    "held_out_6",
    "held_out_7",
    "held_out_8",
    "held_out_9",
)
"""What a checker may be built with: read, print and search it freely."""
PARAPHRASED = "paraphrased"
"""Sound fields of the parts said again in other words: for building, with `mutated`'s faults."""
UNSEEN: tuple[str, ...] = ("held_out_10", "held_out_11")
"""What a checker is measured with, once: run it for its rates only (README.md)."""


@dataclass(frozen=True)
class Claim:
    """One figure, date, count or ticker of a text, with its label and how the label was found.

    `how` is an operation on the places named by `origins`; its result is what the evidence says
    of the quantity, and `value` is what the text says, in the evidence's unit, give or take
    `within`. All four are empty where the evidence says nothing of the quantity.
    """

    id: str
    figure: str
    start: int
    kind: str
    label: str
    fault: str = ""
    by: tuple[str, ...] = ()
    how: str = "none"
    origins: tuple[str, ...] = ()
    value: float | str | None = None
    within: float = 0.0
    note: str = ""

    @property
    def end(self) -> int:
        """Where the figure ends in the text."""
        return self.start + len(self.figure)


@dataclass(frozen=True)
class Statement:
    """One text of a report: the field it stands in, the ticker that field is about, its claims."""

    id: str
    evidence: str
    field: str
    about: str | None
    text: str
    claims: tuple[Claim, ...]


def part_of(statement_id: str) -> str:
    """The rule of the first split: a third by hash, so that nobody chose what was held out."""
    held_out = int(sha256(statement_id.encode()).hexdigest(), 16) % 3 == 0
    return "held_out" if held_out else "development"


def statements(part: str) -> tuple[Statement, ...]:
    """All statements of one part, by its name in `PARTS` or `UNSEEN`, or `PARAPHRASED`."""
    lines = (HERE / f"{part}.jsonl").read_bytes().splitlines()
    return tuple(_statement(orjson.loads(line)) for line in lines)


def _statement(row: dict[str, Any]) -> Statement:
    return Statement(**{**row, "claims": tuple(_claim(claim) for claim in row["claims"])})


def _claim(row: dict[str, Any]) -> Claim:
    given = {key: row[key] for key in row.keys() - {"by", "from"}}
    return Claim(**given, by=tuple(row.get("by", ())), origins=tuple(row.get("from", ())))


@cache
def evidence(name: str) -> tuple[Evidence, ...]:
    """One set of tool results as an agent gets them: without the arguments of the calls."""
    lines = (HERE / "evidence" / f"{name}.jsonl").read_bytes().splitlines()
    return tuple(Evidence.model_validate_json(line) for line in lines)
