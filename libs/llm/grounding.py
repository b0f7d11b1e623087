"""The check that follows every model answer: which of its figures come from its evidence.

It runs in code, after the answer has been validated, on the same evidence that the model was given;
its result travels with the contract. The rules of the check are in `libs.quant.grounding`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic

import orjson
import structlog
from pydantic import BaseModel, JsonValue

from contracts.grounding import MARKS_MAX, Grounding, MarkKind, Ungrounded
from libs.llm.answer import AnswerCheck, T
from libs.llm.prompt import Task
from libs.llm.provider import Evidence
from libs.quant.grounding.check import Checked, check_map, check_number, check_text
from libs.quant.grounding.facts import Facts, Given, read

TEXTS = frozenset(
    {
        *("objective", "quant_question", "reasoning", "market_summary", "risk_notes", "summary"),
        *("news_summary", "earnings_outlook", "research_notes", "notes"),
        "adjustments",
    }
)
"""Fields in which a model writes freely."""
MAPS = frozenset({"technical_indicators"})
NUMBERS = {"current_price": "close"}
GIVEN = (
    "signal_digest",
    "sentiment_report",
    "portfolio",
    "quant_report",
    "research_report",
    "daily_picks",
)
"""Parts of a task that are data from code or from reports already checked. The rest (the plan, a
memory, limits, wishes) are words of the task, and no evidence."""
CLAIMS_MAX = 400
"""Figures checked in one answer; about a millisecond each. Texts past it are counted as unread."""
DEPTH_MAX = 6
UNREAD = frozenset({"grounding", "figures", "loose", "why"})
"""Parts of a report that say where its texts are from, and a model's words for its reasons."""

log = structlog.get_logger()


@dataclass
class Grounder(Generic[T]):
    """An answer check that also remembers the evidence, for the check of grounding afterwards."""

    task: Task
    problems: AnswerCheck[T]
    evidence: Sequence[Evidence] = field(default=(), init=False)

    def __call__(self, answer: T, evidence: Sequence[Evidence]) -> Sequence[str]:
        """What is wrong with an answer; see `AnswerCheck`."""
        self.evidence = evidence
        return self.problems(answer, evidence)

    def grounding(self, answer: T) -> Grounding:
        """Which figures of the answer the evidence does not say."""
        found = ground(answer, self.task.data, self.evidence or self.task.evidence)
        log.info(
            "llm.grounded",
            output=type(answer).__name__,
            checked=found.checked,
            ungrounded=len(found.ungrounded) + found.marks_omitted,
        )
        return found


def ground(
    answer: BaseModel, task: Mapping[str, JsonValue], evidence: Sequence[Evidence]
) -> Grounding:
    """Check an answer against tool results and the checked data of its task."""
    facts = read([*(Given(each.id, each.tool, each.result) for each in evidence), *_given(task)])
    checked = 0
    unread = 0
    marks: list[Ungrounded] = []
    for name, about, value in _claims(answer.model_dump(mode="json"), "", None, 0):
        if checked >= CLAIMS_MAX:
            unread += 1
            continue
        for each in _check(name, about, value, facts):
            checked += 1
            if not each.grounded:
                marks.append(_mark(each, name, about))
    return Grounding(
        checked=checked,
        ungrounded=tuple(marks[:MARKS_MAX]),
        marks_omitted=max(0, len(marks) - MARKS_MAX),
        unread=unread,
    )


def _mark(each: Checked, name: str, about: str | None) -> Ungrounded:
    kind = MarkKind.TICKER if each.is_ticker else MarkKind.FIGURE
    return Ungrounded(
        figure=each.text[:100], kind=kind, field=name, about=about, sought=each.sought[:400]
    )


def _claims(
    value: JsonValue, name: str, about: str | None, depth: int
) -> Iterator[tuple[str, str | None, JsonValue]]:
    """Every field that may hold claims: its place, the ticker it is about, its value."""
    last = name.rpartition(".")[2]
    if (last in TEXTS and isinstance(value, str)) or last in MAPS or last in NUMBERS:
        yield name, about, value
    elif isinstance(value, dict) and depth < DEPTH_MAX:
        ticker = value.get("ticker")
        about = ticker if isinstance(ticker, str) else about
        for key, item in value.items():
            yield from _claims(item, f"{name}.{key}".lstrip("."), about, depth + 1)
    elif isinstance(value, list) and depth < DEPTH_MAX:
        for item in value:
            yield from _claims(item, name, about, depth + 1)


def _check(name: str, about: str | None, value: JsonValue, facts: Facts) -> Sequence[Checked]:
    last = name.rpartition(".")[2]
    if isinstance(value, dict):
        return check_map(orjson.dumps(value).decode(), facts, about)
    if last in NUMBERS:
        text = str(value)
        grounded = check_number(text, facts, about, NUMBERS[last])
        # A finding without a price says 0, and claims none.
        known = float(text) != 0
        return [Checked(0, len(text), text, grounded, f"{last} of {about}")] if known else ()
    return check_text(str(value), facts, about)


def _given(task: Mapping[str, JsonValue]) -> Iterator[Given]:
    as_of = task.get("as_of")
    for name in GIVEN:
        part = task.get(name)
        if isinstance(part, dict):
            result = {**_without_marked(part), "as_of": as_of}
            yield Given(name, name, result)


def _without_marked(report: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """A report without the fields in which an earlier check found something ungrounded, or that
    hold numbers from no fact; nor its reasons' words, which are the model's own."""
    grounding = report.get("grounding")
    marks = grounding.get("ungrounded") if isinstance(grounding, dict) else None
    listed = marks if isinstance(marks, list) else []
    marked = {
        (str(mark.get("field")), mark.get("about")) for mark in listed if isinstance(mark, dict)
    }
    loose = report.get("loose")
    marked |= {_place_of(report, each) for each in (loose if isinstance(loose, list) else [])}
    kept = {key: item for key, item in report.items() if key not in UNREAD}
    return {
        key: _drop(item, key, None, marked)
        for key, item in kept.items()
        if (key, None) not in marked
    }


def _place_of(report: Mapping[str, JsonValue], loose: JsonValue) -> tuple[str, JsonValue]:
    """The field of a loose number without its places (`tickers.0.rationale`), and of whom it is."""
    steps = str(loose.get("field")).split(".") if isinstance(loose, dict) else []
    about: JsonValue = None
    value: JsonValue = dict(report)
    for step in steps:
        if isinstance(value, dict):
            value = value.get(step)
        elif isinstance(value, list) and step.isdecimal() and int(step) < len(value):
            value = value[int(step)]
        about = value.get("ticker", about) if isinstance(value, dict) else about
    return ".".join(step for step in steps if not step.isdecimal()), about


def _drop(
    value: JsonValue, name: str, about: JsonValue, marked: set[tuple[str, JsonValue]]
) -> JsonValue:
    if isinstance(value, dict):
        about = value.get("ticker", about)
        return {
            key: _drop(item, f"{name}.{key}", about, marked)
            for key, item in value.items()
            if (f"{name}.{key}", about) not in marked and key not in UNREAD
        }
    if isinstance(value, list):
        return [_drop(item, name, about, marked) for item in value]
    return value
