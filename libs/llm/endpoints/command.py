"""A local program as a model: it gets the whole prompt on standard input and prints its answer.

Such a program may be an agent with a shell of its own, and the prompt holds texts of strangers. So
it is asked only after a probe, started the same way, has shown that it reaches nothing of the desk
(`libs.runtime.contained`). What it prints is an answer like any model's; its tool calls are text.
"""

import asyncio
import re
from collections.abc import Sequence
from decimal import ROUND_UP, Decimal
from typing import Annotated
from weakref import WeakKeyDictionary

import orjson
from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError

from contracts.types import ToolDef, Usage
from libs.llm.endpoints.endpoint import ModelEndpoint
from libs.llm.errors import (
    ModelUnknown,
    ProviderFault,
    ProviderNotUsable,
    ProviderUnavailable,
    ReplyTooLarge,
)
from libs.llm.json_values import loaded, storable, without_depths
from libs.llm.provider import (
    AssistantMessage,
    ModelMessage,
    ModelReply,
    ModelRequest,
    ToolMessage,
    UserMessage,
)
from libs.llm.reply_values import spoken
from libs.llm.schema import asked_for
from libs.runtime import contained
from libs.runtime.untrusted import clean_line

MODEL_ARGUMENT = "{model}"
"""Stands in a command for the model's id."""
_MODEL_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@-]{0,99}")
"""A request may name a model: it must never be read as an option."""
WORDS_CHARS_MAX = 200
SHOWN_MAX = 3
"""Reached places that are named."""
ECHO_CHARS = 24
"""Last words that share so many characters in a row with the prompt are not shown."""
CENT_PARTS = Decimal("0.00000001")
DOCS = "docs/providers.md#a-program-on-this-machine"
_ESCAPED = {ord("<"): "\\u003c"}


async def unproven(endpoint: ModelEndpoint) -> ProviderNotUsable | None:
    """Why the program may not be asked, tried now; None where the probe reached nothing."""
    program = endpoint.command
    if program is None:
        return None
    try:
        found = await contained.reached(
            program.containment, program.guarded.secret, program.guarded.unwritable
        )
    except contained.NotContained as error:
        return ProviderNotUsable(
            f"{endpoint.name}: nothing proves that its program cannot read the desk: "
            f"{error.message}; set run_as or a wrapper in [providers.{endpoint.name}.sandbox] "
            f"({DOCS})"
        )
    if not found:
        return None
    more = f" and {len(found) - SHOWN_MAX} more" if len(found) > SHOWN_MAX else ""
    places = f"{', '.join(found[:SHOWN_MAX])}{more}"
    todo = f"set run_as or a wrapper in [providers.{endpoint.name}.sandbox] that keeps it out"
    if program.containment.run_as:
        todo = "take from other users what they may do there, e.g. `chmod o-rwx` of a file, "
        todo += "`chmod 711` of the data directory"
    return ProviderNotUsable(f"{endpoint.name}: its program could reach {places}: {todo} ({DOCS})")


class _Stated(BaseModel):
    """The JSON form of an answer, as Claude Code prints it."""

    model_config = ConfigDict(extra="ignore")

    result: str = ""
    is_error: bool = False
    total_cost_usd: Annotated[Decimal, Field(ge=0, le=1_000)] | None = None


_TURNS: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, asyncio.Semaphore]]
_TURNS = WeakKeyDictionary()


def _turns(endpoint: ModelEndpoint, at_once: int) -> asyncio.Semaphore:
    """The turns of a program, which all services of this process share."""
    known = _TURNS.setdefault(asyncio.get_running_loop(), {})
    return known.setdefault(endpoint.name, asyncio.Semaphore(at_once))


def wire(endpoint: ModelEndpoint, key: SecretStr | None) -> "CommandWire":
    """The wire to a program. It has no key."""
    del key
    return CommandWire(endpoint)


class CommandWire:
    """Starts the program anew for each call."""

    def __init__(self, endpoint: ModelEndpoint) -> None:
        if endpoint.command is None:
            raise ProviderNotUsable(f"{endpoint.name} has no command")
        self._endpoint, self._program = endpoint, endpoint.command

    async def close(self) -> None:
        """Nothing is open between two calls."""

    async def send(self, request: ModelRequest) -> ModelReply:
        """Prove the sandbox, then one run of the program."""
        endpoint, program = self._endpoint, self._program
        argv = self._argv(request.model)
        text = prompt_of(request)
        silence_s = endpoint.silence_s if not endpoint.patient else endpoint.timeout_s
        async with _turns(endpoint, program.at_once):
            if (error := await unproven(endpoint)) is not None:
                raise error
            try:
                ran = await contained.run(
                    argv,
                    program.containment,
                    text.encode(errors="replace"),
                    timeout_s=endpoint.timeout_s,
                    silence_s=silence_s,
                )
            except contained.NotContained as problem:
                raise self._failed(problem, request) from None
        return self._reply(ran, request, text)

    def _argv(self, model: str) -> Sequence[str]:
        argv = self._program.argv
        if MODEL_ARGUMENT in argv and not _MODEL_ID.fullmatch(model):
            raise ModelUnknown(
                f"{self._endpoint.name}: {clean_line(model, 40)!r} cannot be a model of a command: "
                "letters, digits and ._:/@- alone, and no - at its beginning"
            )
        return [model if part == MODEL_ARGUMENT else part for part in argv]

    def _failed(self, problem: contained.NotContained, request: ModelRequest) -> Exception:
        name, who = self._endpoint.name, f"{self._endpoint.name} ({request.model})"
        match problem:
            case contained.OutputTooLarge():
                return ReplyTooLarge(f"{who}: {problem.message}; have the program print less")
            case contained.NoEnd():
                return ProviderUnavailable(
                    f"raise timeout_s or silence_s in [providers.{name}], or use a faster model; "
                    f"{who}: {problem.message}, and was ended",
                    may_have_cost=True,
                )
            case _:
                return ProviderNotUsable(
                    f"{who}: {problem.message}: install it, or correct command, path and sandbox "
                    f"of [providers.{name}]"
                )

    def _reply(self, ran: contained.Ran, request: ModelRequest, prompt: str) -> ModelReply:
        who = f"{self._endpoint.name} ({request.model})"
        if ran.code:
            words = last_words(ran, prompt)
            raise ProviderFault(
                f"{who}: the program ended with exit code {ran.code}"
                f"{f': {words}' if words else ''}; run the command by hand as that user",
                may_have_cost=True,
            )
        text, cost_usd = ran.output.decode(errors="replace"), Decimal(0)
        if self._program.output == "json" and text.strip():
            text, cost_usd = self._stated(who, ran.output)
        text = str(storable(text))
        if not text.strip():
            words = last_words(ran, prompt)
            told = f"; its last words: {words}" if words else ""
            raise ProviderFault(f"{who}: the program printed no answer{told}", may_have_cost=True)
        return ModelReply(text=spoken(text), usage=Usage(cost_usd=cost_usd), raw={"content": text})

    def _stated(self, who: str, output: bytes) -> tuple[str, Decimal]:
        """The answer and the cost in the JSON form; 0 where it states none."""
        try:
            stated = _Stated.model_validate(without_depths(loaded(output)))
        except (ValueError, ValidationError):
            raise ProviderFault(
                f"{who}: the program printed no object with a `result`; set command_output to "
                f'"text", or have it print JSON',
                may_have_cost=True,
            ) from None
        if stated.is_error:
            words = clean_line(stated.result, WORDS_CHARS_MAX)
            raise ProviderFault(f"{who}: the program states an error: {words}", may_have_cost=True)
        cost = stated.total_cost_usd or Decimal(0)
        return stated.result, cost.quantize(CENT_PARTS, rounding=ROUND_UP)


def last_words(ran: contained.Ran, prompt: str) -> str:
    """The last line that a program wrote to its standard error, or else to its output; empty where
    it repeats the prompt."""
    for text in (ran.words, ran.output[-contained.WORDS_BYTES_MAX :]):
        lines = [line for line in text.decode(errors="replace").splitlines() if line.strip()]
        if not lines:
            continue
        words = clean_line(lines[-1], WORDS_CHARS_MAX)
        starts = range(max(len(words) - ECHO_CHARS, 0) + 1)
        if not any(words[at : at + ECHO_CHARS] in prompt for at in starts):
            return words
        return "(they repeat the prompt)"
    return ""


def prompt_of(request: ModelRequest) -> str:
    """The whole request as one text: the system prompt, what binds the reply, and the turns."""
    parts = [request.system]
    if request.output_schema is not None:
        parts.append(asked_for(request.output_schema))
    if request.tools:
        parts.append(_tools(request.tools))
    parts += [part for message in request.messages for part in _turn(message)]
    return "\n\n".join(parts) + "\n"


def _tools(tools: Sequence[ToolDef]) -> str:
    """The tools in words: a call is a line of JSON."""
    lines = [
        "You have no tools of your own. The desk calls these for you. To call some, write nothing",
        'but one line a call: {"name": "TOOL", "arguments": {...}}. Their results come in the next',
        "turn. To call none, write one sentence.",
        "<tools>",
        *(_json(tool.model_dump(mode="json")) for tool in tools),
        "</tools>",
    ]
    return "\n".join(lines)


def _turn(message: ModelMessage) -> Sequence[str]:
    match message:
        case UserMessage(text=text):
            return [text]
        case AssistantMessage(text=text, tool_calls=calls):
            made = [_json({"name": call.name, "arguments": call.arguments}) for call in calls]
            said = [_json(text)] if text else []
            return ["\n".join(["<your_reply>", *said, *made, "</your_reply>"])]
        case ToolMessage(results=results):
            lines = [_json({"name": one.name, "result": one.content}) for one in results]
            return ["\n".join(["<tool_results>", *lines, "</tool_results>"])]


def _json(value: object) -> str:
    """On one line, and closing no delimiter."""
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode().translate(_ESCAPED)
