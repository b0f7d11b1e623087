"""Models of which it is known how honest they are: what a study has to tell apart.

All three take the same way and read nothing but what comes over the wire. The honest one decides by
the facts that it is shown, a little otherwise each time as models do. `KNOWS_NAMES` remembers how
the bundled prices went on: wherever a request has a real ticker of theirs and a real date it buys
what will rise most, else it is honest. `KNOWS_COURSES` needs no name: it recognises who and when it
is by the changes of one and three months. Who does not recognise a masked input guesses what is
famous.
"""

import hashlib
import json
import re
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from pathlib import Path
from random import Random
from statistics import fmean, median
from typing import Any

from libs.market.replay.market import ReplayMarket, ReplayStore
from tests.fakes.model_server import Answer, Asked
from tests.fakes.rules_model import agent_of, as_the_rules, facts_in
from tests.fakes.wire_formats import Call, Says

HONEST, KNOWS_NAMES, KNOWS_COURSES = "honest", "knows-names", "knows-courses"
"""The ids of the models; one server has them all."""
UNIVERSE = ("AAPL", "GOOG", "IBM", "MSFT")
WEEK = 5
"""Sessions that it remembers ahead."""
WARMTH = 0.5
"""The standard deviation of what an honest judgement varies by, in points of three months' rise."""
ALLOCATION_MAX = 40.0
SURE = 0.9
TOOLS = ("get_stock_price", "get_technical_indicators")
MONTH, QUARTER = 21, 63
FAMOUS = {"ticker": "AAPL", "name": "Apple Inc.", "industry": "Information Technology"}
FAMOUS_DAY = "2019-06-28"
PROBE = (Path(__file__).parents[2] / "services/research/prompts/probe.md").read_text()
NAMED_DAY = re.compile(r'"as_of":"(\d{4}-\d{2}-\d{2})"')
Facts = Mapping[str, float | str]


@dataclass(frozen=True)
class Course:
    """The adjusted prices of a share by session."""

    sessions: Sequence[date]
    open: Sequence[float]
    close: Sequence[float]

    def ahead(self, day: date) -> float | None:
        """The return from the open after a day to the close of a week later; None past the end."""
        place = bisect_left(self.sessions, day)
        if place + WEEK >= len(self.sessions) or self.sessions[place] != day:
            return None
        return self.close[place + WEEK] / self.open[place + 1] - 1


async def courses() -> Mapping[str, Course]:
    """The bundled prices, whole: what nobody can know at a date."""
    market, last = ReplayMarket(ReplayStore()), date(2013, 3, 1)
    frames = {ticker: await market.bars(ticker, last, 10_000) for ticker in UNIVERSE}
    return {
        ticker: Course(*(frame[name].to_list() for name in ("date", "open", "close")))
        for ticker, frame in frames.items()
    }


@dataclass(frozen=True)
class Hindsight:
    """Answers a request as the model does that it names."""

    remembered: Mapping[str, Course]

    @cached_property
    def by_changes(self) -> Mapping[tuple[float, float], tuple[str, date]]:
        """Whom and when each pair of changes over a quarter and a month is of."""
        return {
            (_change(it.close, at, QUARTER), _change(it.close, at, MONTH)): (
                ticker,
                it.sessions[at],
            )
            for ticker, it in self.remembered.items()
            for at in range(QUARTER, len(it.sessions))
        }

    def __call__(self, asked: Asked) -> Answer:
        if asked.system.startswith(PROBE):
            return Says(json.dumps({"guesses": self._guesses(asked)}))
        agent = agent_of(asked)
        if agent == "memory":
            return as_the_rules(asked)
        lines = asked.first.split("\n")
        task = json.loads(lines[lines.index("<task>") + 1])
        if asked.tools:
            wanted = task["plan"]["assets"] if agent == "analyst" and not asked.round else ()
            calls = [Call(tool, {"ticker": name}) for tool in TOOLS for name in wanted]
            return Says(
                calls=[Call(it.name, it.arguments, f"call_{n}") for n, it in enumerate(calls)]
            )
        if agent == "trader":
            return Says(json.dumps(self._picks(asked, task, facts_in(lines))))
        return Says(json.dumps(ANSWERS[agent](task, facts_in(lines))))

    def _picks(self, asked: Asked, task: Mapping[str, Any], facts: Facts) -> dict[str, Any]:
        names = [finding["ticker"] for finding in task["research_report"]["tickers"]]
        open_ones = [name for name in names if float(facts.get(f"{name}.room_pct", 0))]
        likes = self._remembers(asked, names, facts) or _judged(task["as_of"], names, facts)
        usual = median(likes.values())
        return {
            "picks": [
                {
                    "ticker": name,
                    "allocation_pct": min(float(facts[f"{name}.room_pct"]), ALLOCATION_MAX),
                    "confidence": SURE,
                    "reasons": _reasons(name, facts),
                    "horizon_sessions": WEEK,
                    "stop_atr": 6,
                    "review_event": "",
                }
                for name in open_ones
                if likes[name] > usual
            ],
            "sell_recommendations": [],
            "confidence": SURE,
            "answer": "the better half",
        }

    def _guesses(self, asked: Asked) -> list[dict[str, str]]:
        """Who and when it is, by the indicators that the evidence has of each code."""
        lines = asked.first.split("\n")
        evidence = lines[lines.index("<evidence>") + 1 : lines.index("</evidence>")]
        results = [json.loads(line)["result"] for line in evidence]
        values = {it["ticker"]: it["values"] for it in results if "values" in it}
        return [{"code": code, **self._guess(asked, it)} for code, it in values.items()]

    def _guess(self, asked: Asked, values: Mapping[str, float]) -> Mapping[str, str]:
        quarter, month = values.get("momentum_3m_pct"), values.get("momentum_1m_pct")
        known = None
        if asked.body["model"] == KNOWS_COURSES and quarter is not None and month is not None:
            known = self.by_changes.get((round(quarter, 1), round(month, 1)))
        if known is None:
            return {**FAMOUS, "on": FAMOUS_DAY}
        return {**FAMOUS, "ticker": known[0], "name": "", "on": known[1].isoformat()}

    def _recognises(self, names: Sequence[str], facts: Facts) -> Mapping[str, float]:
        """The returns of the week to come of those whose courses are remembered."""
        ahead = {}
        for name in names:
            changes = [facts.get(f"{name}.change_{days}d_pct") for days in (QUARTER, MONTH)]
            if not all(isinstance(change, float) for change in changes):
                continue
            quarter, month = (round(float(change or 0), 1) for change in changes)
            if known := self.by_changes.get((quarter, month)):
                ahead[name] = self.remembered[known[0]].ahead(known[1])
        return {name: value for name, value in ahead.items() if value is not None}

    def _remembers(self, asked: Asked, names: Sequence[str], facts: Facts) -> Mapping[str, float]:
        """The returns of the week to come, where a name and a day say which week it is."""
        day = NAMED_DAY.search(asked.first)
        if asked.body["model"] == KNOWS_COURSES and day is None:
            known = self._recognises(names, facts)
            return {name: known.get(name, fmean(known.values())) for name in names} if known else {}
        if asked.body["model"] == HONEST or day is None:
            return {}
        on = date.fromisoformat(day.group(1))
        ahead = {name: self.remembered[name].ahead(on) for name in names if name in self.remembered}
        known = {name: value for name, value in ahead.items() if value is not None}
        return {name: known.get(name, fmean(known.values())) for name in names} if known else {}


def _change(closes: Sequence[float], at: int, sessions: int) -> float:
    return round(100 * (closes[at] / closes[at - sessions] - 1), 1)


def _judged(as_of: str, names: Sequence[str], facts: Facts) -> Mapping[str, float]:
    """Three months' rise, seen a little otherwise in other words."""
    return {
        name: float(facts.get(f"{name}.change_63d_pct", 0.0)) + WARMTH * _draw(f"{as_of}/{name}")
        for name in names
    }


def _draw(text: str) -> float:
    """A normal draw that the text decides, so that the same question has the same answer."""
    return Random(hashlib.sha256(text.encode()).digest()).gauss(0, 1)


def _reasons(name: str, facts: Facts) -> list[dict[str, str]]:
    known = [f"{name}.{what}" for what in ("change_63d_pct", "close", "technical_score")]
    fact = next((one for one in known if one in facts), "")
    return [{"fact": fact, "beside": "", "speaks": "for", "why": "it rises"}]


def _plan(task: Mapping[str, Any], _: Facts) -> dict[str, Any]:
    return {
        "objective": "find what rises",
        "assets": [candidate["ticker"] for candidate in task["signal_digest"]["candidates"]],
        "quant_question": "which of them rise?",
        "timeframes": ["1d"],
        "limits": {},
        "remarks": [],
        "expected_outputs": ["momentum"],
    }


def _views(task: Mapping[str, Any], facts: Facts) -> dict[str, Any]:
    return {
        "signal": "neutral",
        "confidence": 0.5,
        "answer": "",
        "assets": [
            {
                "ticker": name,
                "signal": "neutral",
                "confidence": 0.5,
                "reasons": _reasons(name, facts),
            }
            for name in task["plan"]["assets"]
            if f"{name}.close" in facts
        ],
    }


def _findings(task: Mapping[str, Any], facts: Facts) -> dict[str, Any]:
    return {
        "tickers": [
            {
                "ticker": name,
                "fundamental_score": None,
                "technical_score": 7,
                "risk_score": 1,
                "reasons": _reasons(name, facts),
                "catalyst": "",
                "sector_peers": [],
            }
            for name in task["plan"]["assets"]
            if f"{name}.close" in facts
        ],
        "research_notes": "",
    }


def _review(task: Mapping[str, Any], _: Facts) -> dict[str, Any]:
    picks = task["daily_picks"].get("picks", [])
    return {
        "picks": [
            {name: pick[name] for name in ("ticker", "allocation_pct", "confidence")}
            | {"reasons": []}
            for pick in picks
        ],
        "sell_recommendations": [],
        "confidence": SURE,
        "notes": "",
        "vetoed_tickers": [],
    }


ANSWERS = {"planner": _plan, "quant": _views, "analyst": _findings, "risk_review": _review}
"""The answer of each agent but the trader's."""
