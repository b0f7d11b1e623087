"""One turn of a model: calls that are journalled one by one, until one of them gives a reply.

The one place where calls are tried again. The SDKs' own retries are off, and every try is an entry
of its own in the journal, with its reservation, its cost and what went wrong: no call is paid
without being on record, and an operation that starts again repeats none of them.
"""

import contextlib
import hashlib
import random
import time
from collections.abc import Iterator, Mapping

import orjson
import structlog
from pydantic import JsonValue

from contracts.operation import FAULTS, CallKind, Reserve, fault_in
from contracts.types import Usage
from libs.llm.agent import Agent, AgentLimits
from libs.llm.asking import RequestRecord
from libs.llm.errors import (
    AccountExhausted,
    FieldRefused,
    KeyRefused,
    ModelError,
    ModelRefused,
    ModelUnknown,
    ProviderFault,
    ProviderNotUsable,
    ProviderUnavailable,
    ReplyTooLarge,
    ReplyUnreadable,
    RequestRefused,
    TaskTooLarge,
    Truncated,
)
from libs.llm.json_values import storable
from libs.llm.provider import ROOM_MAX, ModelReply, ModelRequest, StopReason
from libs.runtime.journal import Call, Journal, Reply

NAME_CHARS_MAX = 100
TOKENS = (
    "input_tokens",
    "output_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
    "unsorted_tokens",
)
WAIT_S_FIRST = 0.5
"""The first wait without a word from the provider; it doubles, and a random half comes off."""
FIELDS_REFUSED_MAX = 6
"""Times that one call is made again without a field that its endpoint refused: it has no more."""

KINDS: Mapping[str, type[ModelError]] = {
    kind.code: kind
    for kind in (
        AccountExhausted,
        FieldRefused,
        KeyRefused,
        ModelUnknown,
        ProviderFault,
        ProviderNotUsable,
        ModelRefused,
        ReplyTooLarge,
        ReplyUnreadable,
        RequestRefused,
        TaskTooLarge,
        Truncated,
    )
}

log = structlog.get_logger()


async def take_turn(
    agent: Agent, request: ModelRequest, journal: Journal, asked: RequestRecord
) -> ModelReply:
    """The model's whole reply. `asked` is what goes on record of the request.

    One that ends at the output limit is asked for once more, with more room. Raises Truncated where
    that is not enough either, TaskTooLarge where the model's context is full, ProviderUnavailable
    and ProviderFault after their last try, other ModelErrors at once.
    """
    reply = await _tried(agent, request, journal, asked)
    if reply.stop_reason is StopReason.OUTPUT_LIMIT:
        log.warning("llm.reply_truncated", agent=agent.name, model=agent.model)
        reply = await _with_more_room(agent, request, journal)
    if reply.stop_reason is StopReason.CONTEXT_LIMIT:
        raise TaskTooLarge(
            "ask for fewer tickers, or use a model with a longer context; the context of "
            f"{who(agent)} was full before its reply was whole"
        )
    return reply


async def _with_more_room(agent: Agent, request: ModelRequest, journal: Journal) -> ModelReply:
    roomier = request.model_copy(update={"room": ROOM_MAX})
    why = f"at {ROOM_MAX} times its output limit too"
    brief: JsonValue = {
        "agent": agent.name,
        "system_sha256": request.system_sha256,
        "room": ROOM_MAX,
    }
    try:
        reply = await _tried(agent, roomier, journal, RequestRecord(brief))
        if reply.stop_reason is not StopReason.OUTPUT_LIMIT:
            return reply
    except (RequestRefused, TaskTooLarge) as error:
        why = f"and more room was refused: {error.message}"
    raise Truncated(
        f"raise output_tokens_max or lower effort in [providers.{agent.provider.name}] of "
        f"deskbus.toml, or ask for fewer tickers; the reply of {who(agent)} ended at its output "
        f"limit, {why}"
    )


async def _tried(
    agent: Agent, request: ModelRequest, journal: Journal, asked: RequestRecord
) -> ModelReply:
    failed = 0
    while True:
        value = await journal.call(_call(agent, request, asked))
        error = _error_in(value)
        if error is None:
            return ModelReply.model_validate(value)
        failed += 1
        log.warning(
            "llm.call_failed",
            agent=agent.name,
            provider=agent.provider.name,
            model=agent.model,
            code=error.code,
            failed=failed,
            error=error.message,
        )
        await journal.pause(_wait_s(error, failed, agent.limits))
        brief: JsonValue = {
            "agent": agent.name,
            "system_sha256": request.system_sha256,
            "again": failed,
        }
        asked = RequestRecord(brief)


def _call(agent: Agent, request: ModelRequest, asked: RequestRecord) -> Call:
    reserve = agent.provider.reserve(request)
    name = f"{agent.provider.name}:{agent.model}"[:NAME_CHARS_MAX]
    if reserve is not None:
        reserve = reserve.model_copy(update={"addresses": (_address(name, request),)})

    async def run() -> Reply:
        with _logged(agent) as outcome:
            try:
                reply = await agent.provider.complete(request)
            except ModelError as error:
                outcome |= {"outcome": error.code}
                return Reply(_recorded(error), _forfeit(error, reserve))
            outcome |= {"outcome": reply.stop_reason.value, **_spent(reply.usage)}
        return Reply(storable(reply.model_dump(mode="json", exclude={"usage"})), reply.usage)

    return Call(
        kind=CallKind.MODEL,
        name=name,
        request=request,
        run=run,
        new=asked.brief,
        reserve=reserve,
        texts=asked.texts,
    )


@contextlib.contextmanager
def _logged(agent: Agent) -> Iterator[dict[str, object]]:
    """A line when a call begins and one when it ends, with what the block puts into the mapping.

    Names and numbers alone: no text that was sent, none that came back.
    """
    names = {"agent": agent.name, "provider": agent.provider.name, "model": agent.model}
    log.debug("llm.call_began", **names)
    began = time.perf_counter()
    outcome: dict[str, object] = {"outcome": "stopped"}  # unless the block says another
    try:
        yield outcome
    finally:
        seconds = round(time.perf_counter() - began, 3)
        log.info("llm.call_ended", **names, seconds=seconds, **outcome)


def _spent(usage: Usage) -> dict[str, object]:
    """All tokens, those of each sort that there are any of, and the cost where it is known."""
    sorts = {name: count for name, count in usage.model_dump(include={*TOKENS}).items() if count}
    cost = {} if usage.cost_usd is None else {"cost_usd": str(usage.cost_usd)}
    return {"tokens": usage.tokens, **sorts, **cost}


SENT = {"system", "messages", "tools", "output_schema", "room", "seed"}
"""The fields of a request that a language model is sent."""


def _address(name: str, request: ModelRequest) -> str:
    """The hash of all that the model is sent: the same question has the same."""
    parts = [name, request.model_dump(mode="json", include=SENT)]
    return hashlib.sha256(orjson.dumps(parts, option=orjson.OPT_SORT_KEYS)).hexdigest()


def _forfeit(error: ModelError, reserve: Reserve | None) -> Usage:
    """As after a crash: what was held back for a call that may have been paid counts as spent."""
    if reserve is None or not error.may_have_cost:
        return Usage()
    return Usage(unsorted_tokens=reserve.tokens, cost_usd=reserve.cost_usd)


def _recorded(error: ModelError) -> JsonValue:
    fault: dict[str, JsonValue] = {"code": error.code, "message": error.message}
    if isinstance(error, ProviderUnavailable):
        fault["retry_after_s"] = error.retry_after_s
    return storable({FAULTS[CallKind.MODEL]: fault})


def _error_in(value: JsonValue) -> ModelError | None:
    """The error that an entry records. It is read back on the first run too, so that what follows
    is the same when the operation starts again."""
    fault = fault_in(CallKind.MODEL, value)
    if not fault:
        return None
    code, message, after = fault.get("code"), str(fault.get("message")), fault.get("retry_after_s")
    if code == ProviderUnavailable.code:
        wanted = float(after) if isinstance(after, int | float) else None
        return ProviderUnavailable(message, retry_after_s=wanted)
    return KINDS.get(str(code), ModelError)(message)


def _wait_s(error: ModelError, failed: int, limits: AgentLimits) -> float:
    """The wait before the next try; raises the error where there is none."""
    if isinstance(error, ProviderFault) and failed <= limits.faults_max:
        return 0.0
    if isinstance(error, FieldRefused) and failed <= FIELDS_REFUSED_MAX:
        return 0.0
    if not isinstance(error, ProviderUnavailable):
        raise error
    if failed >= limits.attempts_max:
        raise ProviderUnavailable(f"{error.message}; gave up after {failed} tries, try again later")
    if error.retry_after_s is None:
        longest = min(WAIT_S_FIRST * 2 ** (failed - 1), limits.wait_s_max)
        return random.uniform(longest / 2, longest)  # noqa: S311 - it only spreads the callers
    if error.retry_after_s > limits.wait_s_max:
        raise ProviderUnavailable(
            f"{error.message}; it asks to wait {error.retry_after_s:g} s and the limit is "
            f"{limits.wait_s_max:g} s (DESKBUS_MODEL_WAIT_S_MAX); try again later"
        )
    # A little more than asked, each its own: all who were refused would come back at once.
    spread = min(0.1 * error.retry_after_s, 1.0)
    return error.retry_after_s + random.uniform(0, spread)  # noqa: S311


def who(agent: Agent) -> str:
    """The agent with its provider and model, as errors name it."""
    return f"{agent.name} ({agent.provider.name}: {agent.model})"


def refuse_declined(agent: Agent, reply: ModelReply) -> None:
    """Raise ModelRefused where the model declined to answer."""
    if reply.stop_reason is StopReason.REFUSAL:
        raise declined(agent, reply)


def declined(agent: Agent, reply: ModelReply) -> ModelRefused:
    """The failure of a refusal, with the words of the model and the endpoint, if there are any."""
    words = " - ".join(part for part in (reply.text[:200], reply.why[:200]) if part)
    return ModelRefused(
        f"{who(agent)} declined to answer: {words or 'it gave no reason'}; "
        f"try another model for this stage, or look at what it was given"
    )
