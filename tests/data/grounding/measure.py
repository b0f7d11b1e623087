# ruff: noqa: T201  (it is a command, and prints)
"""Measure the grounding checker on the labelled claims: `python -m tests.data.grounding.measure`.

Prints rates only. A statement of an unseen part must never be shown, and its rates only once, when
a checker is finished: `--unseen` (README.md).
"""

import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache

from libs.quant.grounding.check import Checked, check_map, check_number, check_text
from libs.quant.grounding.facts import Facts, Given, read
from tests.data.grounding.labelled import PARTS, UNSEEN, Claim, Statement, evidence, statements


@dataclass
class Rates:
    """False alarms and misses of one part, as README.md defines them."""

    sound: int = 0
    alarms: int = 0
    unsound: int = 0
    missed: int = 0
    kinds: Counter[str] = field(default_factory=Counter)

    @property
    def alarm_rate(self) -> float:
        """False alarms out of all that must pass."""
        return self.alarms / self.sound

    @property
    def miss_rate(self) -> float:
        """Ungrounded claims that no finding touches, out of all of them."""
        return self.missed / self.unsound

    def __str__(self) -> str:
        return (
            f"false alarms {self.alarms} of {self.sound} ({self.alarm_rate:.1%}), "
            f"misses {self.missed} of {self.unsound} ({self.miss_rate:.1%})"
        )


def rates(part: str) -> Rates:
    """The checker's rates on one part."""
    found = Rates()
    for statement in statements(part):
        marks = [each for each in checked(statement) if not each.grounded]
        for claim in statement.claims:
            _judge(claim, any(_touches(mark, claim) for mark in marks), found)
        stray = [m for m in marks if not any(_touches(m, claim) for claim in statement.claims)]
        found.alarms += len(stray)
        found.kinds["stray alarm"] += len(stray)
    return found


def _judge(claim: Claim, touched: bool, found: Rates) -> None:
    if claim.label == "ungrounded":
        found.unsound += 1
        found.missed += not touched
        found.kinds[f"miss {claim.kind}"] += not touched
    else:
        found.sound += 1
        found.alarms += touched
        found.kinds[f"alarm {claim.kind}"] += touched


def checked(statement: Statement) -> Sequence[Checked]:
    """What the checker says of one statement, read as the field that it stands in is read."""
    facts, text, about = _facts(statement.evidence), statement.text, statement.about
    match statement.field.rpartition(".")[2]:
        case "technical_indicators":
            return check_map(text, facts, about)
        case "current_price":
            return (Checked(0, len(text), text, check_number(text, facts, about, "close")),)
        case _:
            return check_text(text, facts, about)


@cache
def _facts(name: str) -> Facts:
    return read([Given(each.id, each.tool, each.result) for each in evidence(name)])


def _touches(mark: Checked, claim: Claim) -> bool:
    return mark.start < claim.end and claim.start < mark.end


if __name__ == "__main__":
    for each_part in UNSEEN if sys.argv[1:] == ["--unseen"] else PARTS:
        measured = rates(each_part)
        print(f"{each_part}: {measured}")
        print("  " + ", ".join(f"{kind} {n}" for kind, n in sorted(measured.kinds.items()) if n))
