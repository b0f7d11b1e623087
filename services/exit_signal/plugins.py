"""The user's own exit rules, asked once: what they say is on record."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import structlog
from pydantic import JsonValue, TypeAdapter

from contracts.account import Portfolio, Position
from contracts.operation import CallKind
from contracts.plugins import ExitAnswer, ExitQuestion, PluginSource
from libs.quant.exits.plugins import answer_of, own_rule
from libs.quant.exits.rules import ExitFacts, ExitRule
from libs.runtime.journal import Call, Journal, Reply
from libs.runtime.plugin_process import ask_named

POSITIONS_A_CALL = 200
_ANSWERS = TypeAdapter(tuple[ExitAnswer, ...])
log = structlog.get_logger()


@dataclass(frozen=True)
class OwnRules:
    """The rules by ticker, what was asked, and a sentence for each that gave no answer."""

    rules: Mapping[str, Sequence[ExitRule]]
    sources: tuple[PluginSource, ...]
    warnings: Sequence[str]


def question_of(position: Position, facts: ExitFacts, books: Portfolio) -> ExitQuestion:
    """The question about a position that the account holds."""
    return ExitQuestion(
        as_of=books.as_of,
        account=books.account,
        currency=position.price.currency,
        equity=float(books.equity.amount),
        ticker=position.ticker,
        quantity=float(position.quantity),
        price=facts.price,
        average_cost=facts.average_cost,
        value=float(position.value),
        sector=position.sector,
        opened_on=facts.opened_on,
        sessions_held=facts.sessions_held,
        close=facts.close,
        months=tuple(facts.months),
    )


async def own_rules(
    journal: Journal,
    plugins: Sequence[str],
    questions: Sequence[ExitQuestion],
    allowed: Sequence[str],
) -> OwnRules:
    """Each plug-in with its answers, put on record. Only those that are `allowed` run."""
    parts = [
        (plugin, questions[first : first + POSITIONS_A_CALL])
        for plugin in plugins
        for first in range(0, len(questions), POSITIONS_A_CALL)
    ]
    replies: Sequence[Any] = await journal.calls([_call(*part, allowed) for part in parts])
    rules: dict[str, list[ExitRule]] = {}
    failed: Counter[str] = Counter()
    sources = []
    for (plugin, asked), reply in zip(parts, replies, strict=True):
        sources.append(PluginSource(plugin=plugin, sha256=reply["sha256"]))
        answers = _ANSWERS.validate_python(reply["answers"])
        for question, answer in zip(asked, answers, strict=True):
            rules.setdefault(question.ticker, []).append(own_rule(plugin, answer))
            failed[plugin] += answer.failed
    # Without the reason, which may be anybody's words: people are sent these sentences.
    warnings = [
        f"exit rule {plugin} gave no answer that counts on {count} of {len(questions)} positions; "
        "the other rules checked them all the same"
        for plugin, count in failed.items()
        if count
    ]
    return OwnRules(rules, tuple(dict.fromkeys(sources)), warnings)


def _call(plugin: str, questions: Sequence[ExitQuestion], allowed: Sequence[str]) -> Call:
    asked: list[JsonValue] = [question.model_dump(mode="json") for question in questions]

    async def run() -> Reply:
        answered = await ask_named(plugin, asked, allowed)
        answers = tuple(answer_of(it.value, it.problem) for it in answered.answers)
        if any(it.failed for it in answers):
            log.warning("exit_signal.plugin_failed", plugin=plugin)
        return Reply(
            {"sha256": answered.sha256, "answers": _ANSWERS.dump_python(answers, mode="json")}
        )

    return Call(CallKind.READ, f"plug-in {plugin}", {"plugin": plugin, "positions": asked}, run)
