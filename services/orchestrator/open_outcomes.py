"""Past decisions of an account that await an outcome, from the memories that its cycles left. Pure.

Each memory holds its own decision and the outcomes that became known with it, so a decision's
outcomes are in later memories. Whatever order cycles ran in, what none of them tells is open.
"""

from collections.abc import Iterable
from typing import Any

import orjson

from contracts.memory import AWAITED_MAX, OUTCOME_SESSIONS

PAST_DECISIONS = "past_decisions"
"""The command field that is filled with them."""
PAST_DAYS = 2 * max(OUTCOME_SESSIONS) + 5
"""Calendar days that surely hold the sessions up to the last outcome, long closures included."""


def awaited(memories: Iterable[bytes]) -> bytes:
    """`AwaitedDecision`s as JSON, of memories as JSON, oldest first: at most AWAITED_MAX."""
    known: dict[tuple[str, str], list[int]] = {}
    decisions: dict[tuple[str, str], Any] = {}
    for memory in map(orjson.loads, memories):
        decision = memory.get("decision")
        if decision is not None:
            decisions.setdefault(_key(decision), decision)
        for outcome in memory.get("outcomes", ()):
            known.setdefault(_key(outcome), []).append(outcome["sessions"])
    candidates = [
        {"decision": decision, "told": sorted({*known.get(key, ())})}
        for key, decision in decisions.items()
    ]
    still = [
        candidate for candidate in candidates if not set(OUTCOME_SESSIONS) <= set(candidate["told"])
    ]
    return orjson.dumps(still[:AWAITED_MAX])


def _key(of: Any) -> tuple[str, str]:
    return of["cycle_id"], of["pipeline"]
