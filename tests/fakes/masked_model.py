"""A model that works with the codes that it reads over the wire, and with nothing else.

Before each of its answers it gives one with a stranger, an unknown fact and a real name that it has
guessed, so that what the desk says to mistakes goes over the wire too.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from libs.llm.rules.analyst import TICKER_TOOLS
from tests.fakes.model_server import Answer, Asked
from tests.fakes.rules_model import agent_of, facts_in
from tests.fakes.wire_formats import Call, Says

STRANGER = "S000"
CODE = re.compile(r"\bS\d{3}\b")


@dataclass(frozen=True)
class MaskedModel:
    """`guess` is the real ticker that it names where it was not told any."""

    guess: str

    def __call__(self, asked: Asked) -> Answer:
        agent = agent_of(asked)
        lines = asked.first.split("\n")
        task = json.loads(lines[lines.index("<task>") + 1])
        codes = list(dict.fromkeys(CODE.findall(json.dumps(_choice(agent, task)))))
        if asked.tools:
            return Says(calls=[] if asked.round else _calls(agent, codes, self.guess))
        answer = ANSWERS[agent](codes, facts_in(lines), task)
        if not asked.round:
            spoiled = json.dumps(answer).replace(f'"{codes[0]}"', f'"{STRANGER}"', 1)
            return Says(spoiled.replace("S-GUESS", self.guess))
        return Says(json.dumps(answer).replace("S-GUESS", self.guess))


def _choice(agent: str, task: Mapping[str, Any]) -> Any:
    """The part of the task that says what there is to choose from."""
    match agent:
        case "planner":
            return task["signal_digest"]
        case "quant" | "analyst":
            return task["plan"]["assets"]
        case "trader":
            return task["research_report"]["tickers"]
        case _:
            return task["daily_picks"]["picks"]


def _calls(agent: str, codes: Sequence[str], guess: str) -> list[Call]:
    """All tools that the agent has, of every code; one of a stranger's, one of a guessed ticker."""
    tools = {"analyst": [name for name, _ in TICKER_TOOLS]}.get(agent, ["get_stock_price"])
    calls = [Call(tool, {"ticker": code}) for tool in tools for code in codes]
    odd = [Call("get_stock_price", {"ticker": name}) for name in (STRANGER, guess)]
    more = ["get_earnings_calendar"] if agent == "analyst" else ["get_portfolio"]
    numbered = [*calls, *odd, *(Call(name, {}) for name in more)]
    return [Call(call.name, call.arguments, f"call_{n}") for n, call in enumerate(numbered)]


def _reasons(code: str, facts: Mapping[str, object]) -> list[dict[str, str]]:
    own = [name for name in facts if name.startswith(f"{code}.")]
    dated = [name for name in own if "@" in name][:1]
    named = [name for name in own if name.endswith((".close", ".technical_score"))][:1] + dated
    return [
        {"fact": name, "beside": "", "speaks": "for", "why": f"{code} may be S-GUESS"}
        for name in named
    ] + [{"fact": f"{code}.no_such_fact", "beside": "", "speaks": "against", "why": ""}]


def _plan(codes: Sequence[str], _: Mapping[str, object], __: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "objective": f"find out about {codes[0]}, which may be S-GUESS",
        "assets": list(codes),
        "quant_question": f"is {codes[0]} rising?",
        "timeframes": ["1d"],
        "limits": {"max_positions": "3"},
        "remarks": ["S-GUESS reports in July"],
        "expected_outputs": ["rsi"],
    }


def _views(
    codes: Sequence[str], facts: Mapping[str, object], _: Mapping[str, Any]
) -> dict[str, Any]:
    return {
        "signal": "bullish",
        "confidence": 0.5,
        "answer": f"{codes[0]} leads",
        "assets": [
            {
                "ticker": code,
                "signal": "bullish",
                "confidence": 0.5,
                "reasons": _reasons(code, facts),
            }
            for code in codes
            if f"{code}.close" in facts
        ],
    }


def _findings(
    codes: Sequence[str], facts: Mapping[str, object], _: Mapping[str, Any]
) -> dict[str, Any]:
    return {
        "tickers": [
            {
                "ticker": code,
                "fundamental_score": 6,
                "technical_score": 7,
                "risk_score": 3,
                "reasons": _reasons(code, facts),
                "catalyst": "",
                "sector_peers": [other for other in codes if other != code],
            }
            for code in codes
        ],
        "research_notes": f"{codes[0]} is S-GUESS",
    }


def _picks(
    codes: Sequence[str], facts: Mapping[str, object], _: Mapping[str, Any]
) -> dict[str, Any]:
    open_ones = [code for code in codes if f"{code}.room_pct" in facts][:2]
    return {
        "picks": [
            {
                "ticker": code,
                "allocation_pct": 10,
                "confidence": 0.5,
                "reasons": _reasons(code, facts),
                "horizon_sessions": 20,
                "stop_atr": 3,
                "review_event": "",
            }
            for code in open_ones
        ],
        "sell_recommendations": [],
        "confidence": 0.5,
        "answer": f"{codes[0]} is strong",
    }


def _review(
    _: Sequence[str], facts: Mapping[str, object], task: Mapping[str, Any]
) -> dict[str, Any]:
    picks = task["daily_picks"]["picks"]
    return {
        "picks": [
            {
                "ticker": pick["ticker"],
                "allocation_pct": 5,
                "confidence": 0.4,
                "reasons": _reasons(pick["ticker"], facts),
            }
            for pick in picks
        ],
        "sell_recommendations": [],
        "confidence": 0.4,
        "notes": "smaller is safer",
        "vetoed_tickers": [],
    }


ANSWERS: Mapping[str, Any] = {
    "planner": _plan,
    "quant": _views,
    "analyst": _findings,
    "trader": _picks,
    "risk_review": _review,
}
"""What each agent answers in the end; nobody else is asked in a masked pipeline."""
