"""The user's own risk rules, asked once: what they say is on record."""

from collections.abc import Sequence

import structlog
from pydantic import JsonValue, TypeAdapter

from contracts.operation import CallKind
from contracts.plugins import BuyQuestion, PluginVerdict
from libs.quant.risk.plugins import verdict_of
from libs.runtime.journal import Call, Journal, Reply
from libs.runtime.plugin_process import ask_named

_VERDICTS = TypeAdapter(tuple[PluginVerdict, ...])
log = structlog.get_logger()


async def verdicts_read(
    journal: Journal,
    plugins: Sequence[str],
    questions: Sequence[BuyQuestion],
    allowed: Sequence[str],
) -> Sequence[PluginVerdict]:
    """The verdict of each plug-in on each buy, put on record. Only those that are `allowed` run."""
    calls = [_call(plugin, questions, allowed) for plugin in plugins]
    replies = await journal.calls(calls)
    return [verdict for reply in replies for verdict in _VERDICTS.validate_python(reply)]


def _call(plugin: str, questions: Sequence[BuyQuestion], allowed: Sequence[str]) -> Call:
    asked: list[JsonValue] = [question.model_dump(mode="json") for question in questions]

    async def run() -> Reply:
        answered = await ask_named(plugin, asked, allowed)
        verdicts = tuple(
            verdict_of(plugin, answered.sha256, question, answer.value, answer.problem)
            for question, answer in zip(questions, answered.answers, strict=True)
        )
        for verdict in verdicts:
            if verdict.failed:
                log.warning("risk.plugin_failed", plugin=plugin, reason=verdict.reason)
        return Reply(_VERDICTS.dump_python(verdicts, mode="json"))

    return Call(CallKind.READ, f"plug-in {plugin}", {"plugin": plugin, "buys": asked}, run)
