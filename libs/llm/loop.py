"""The one loop for all providers: a tooling pass, then an output pass that cannot call tools.

Tools and structured output never share a call. The tooling pass lets the model ask for tools until
it asks for none, or a limit is reached. The output pass starts on a fresh transcript that holds the
task and the tool results only, so that nothing but evidence reaches the answer; it is also the
final call without tools that follows the last allowed round. Every model call and every tool call
goes through the journal: an operation that starts again pays for none of them twice.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

import orjson
import structlog
from pydantic import BaseModel, JsonValue

from contracts.operation import CallKind
from libs.llm.agent import RECORDED_AT_ONCE_MAX, Agent
from libs.llm.answer import AnswerCheck, ReadAnswer, read_answer
from libs.llm.asking import (
    assistant_turn,
    first_message,
    gives_reasons,
    on_record,
    request_of,
)
from libs.llm.errors import (
    AnswerInvalid,
    BadToolArguments,
    ModelError,
    ProviderFault,
    ReplyTooLarge,
    ReplyUnreadable,
    TaskTooLarge,
    ToolLimitReached,
    ToolResultBad,
    ToolResultTooLarge,
    Truncated,
)
from libs.llm.json_values import canonical, storable
from libs.llm.masking.reader import Reader, reader_of
from libs.llm.naming import THIS_TICKER
from libs.llm.prompt import NO_CALL, Task, render_errors, render_unread
from libs.llm.provider import (
    AssistantMessage,
    ModelMessage,
    ModelReply,
    StopReason,
    ToolCall,
    ToolEvidence,
    ToolMessage,
    ToolResult,
    UserMessage,
    is_error,
)
from libs.llm.reading.replies import unspoken, with_calls, without_calls
from libs.llm.reasoning import Reasoning, facts_for
from libs.llm.toolbox import CODE_ONLY, Toolbox
from libs.llm.turn import NAME_CHARS_MAX, declined, refuse_declined, take_turn
from libs.runtime.errors import DeskError
from libs.runtime.journal import Call, Journal, Reply

LOOK_AHEAD = "look_ahead"
"""The code of the one tool error that ends the operation: a leak from the future."""
UNKNOWN_TOOL = "unknown_tool"
"""Stands in the evidence for the name of a tool that is not offered."""
UNREAD = AssistantMessage(text="(a reply that could not be read)")
"""Stands in the transcript for what the model wrote and its server threw away."""

T = TypeVar("T", bound=BaseModel)
A = TypeVar("A")
StandardReads = Sequence[tuple[str, Mapping[str, JsonValue]]]
"""Tool calls, by name and arguments, that code makes for a model that makes none."""
log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Answered(Generic[A]):
    """An answer, how many tool calls it stands on, and why code made these; empty where the model
    did."""

    answer: A
    calls: int
    reads: str = ""


async def generate(
    agent: Agent,
    task: Task,
    output: type[T],
    journal: Journal,
    *,
    check: AnswerCheck[T] | None = None,
) -> T:
    """The agent's answer to a task, without tools, as a validated `output`.

    Raises AnswerInvalid after the last repair turn, Refused, Truncated, TaskTooLarge and what the
    provider raises.
    """
    return await _output_pass(agent, task, task.evidence, output, journal, check)


async def generate_with_tools(
    agent: Agent,
    task: Task,
    output: type[T],
    journal: Journal,
    tools: Toolbox,
    *,
    check: AnswerCheck[T] | None = None,
    standard: StandardReads = (),
) -> Answered[T]:
    """The agent's answer after it has used its tools, and how many tool calls were made.

    A model that calls no tool is told once; then code makes the `standard` reads in its place, as
    it does at once where no rounds are allowed. A
    tool that cannot answer, a refused tool and unreadable arguments are told to the model; only
    a look-ahead error of a tool ends the operation. Otherwise as `generate`.
    """
    desk = _Tooling(agent, task, tools, journal, standard)
    await desk.run()
    return Answered(await _concluded(desk, agent, output, check), desk.calls_made, desk.reads)


async def sample_with_tools(
    agent: Agent,
    task: Task,
    output: type[T],
    journal: Journal,
    tools: Toolbox,
    *,
    count: int,
    check: AnswerCheck[T] | None = None,
    standard: StandardReads = (),
) -> Answered[Sequence[T]]:
    """`count` answers on the same evidence, each by a seed of its own; the tools are used once.

    Otherwise as `generate_with_tools`.
    """
    desk = _Tooling(agent, task, tools, journal, standard)
    await desk.run()
    agents = [replace(agent, seed=agent.seed + number) for number in range(count)]
    answers = [await _concluded(desk, sampled, output, check) for sampled in agents]
    return Answered(answers, desk.calls_made, desk.reads)


async def _concluded(
    desk: "_Tooling", agent: Agent, output: type[T], check: AnswerCheck[T] | None
) -> T:
    """The answer on what the tooling pass has gathered."""
    evidence = tuple(desk.evidence)
    try:
        return await _output_pass(agent, desk.task, evidence, output, desk.journal, check)
    except AnswerInvalid as error:
        if desk.ended is None:
            raise
        # What is missing in the answer was never fetched: say so where people look.
        cause = f"its tools had ended early: {desk.ended.message}"
        raise AnswerInvalid(agent.name, agent.model, error.corrections, (cause,)) from None


async def call_tools(
    agent: Agent, task: Task, journal: Journal, tools: Toolbox
) -> Sequence[ToolEvidence]:
    """The tooling pass alone, for an agent whose answer is a tool call: what its tools gave.

    Raises as `generate_with_tools` does before its output pass.
    """
    # Its answer is a call, so one round is the least.
    limits = replace(agent.limits, rounds_max=max(agent.limits.rounds_max, 1))
    desk = _Tooling(replace(agent, limits=limits), task, tools, journal)
    await desk.run()
    if desk.ended is not None and not desk.evidence:
        raise desk.ended
    return desk.evidence


@dataclass
class _Tooling:
    """The tooling pass of one operation and what it has gathered.

    `ended` says what ended it before the model did, if anything.
    """

    agent: Agent
    task: Task
    tools: Toolbox
    journal: Journal
    standard: StandardReads = ()
    evidence: list[ToolEvidence] = field(default_factory=list)
    calls_made: int = 0
    ended: ModelError | None = None
    reads: str = ""
    reader: Reader = field(init=False)
    _known: dict[str, ToolResult] = field(default_factory=dict)
    _bytes: int = 0
    _unrecorded: int = 0

    def __post_init__(self) -> None:
        self.reader = reader_of(self.agent.masking, self.task)

    async def run(self) -> None:
        """Ask for tools, round by round, until the model wants none or a limit is reached.

        Where it has read nothing by then, code makes the standard reads. Raises AnswerInvalid where
        there is nothing to read either: an answer would stand on nothing.
        """
        await self._rounds()
        if self.standard and not self._has_read:
            await self._read_by_code()
            if not self._has_read:
                why = "no tool answered the model, and none answered the reads of code"
                raise AnswerInvalid(self.agent.name, self.agent.model, (why,))

    @property
    def _has_read(self) -> bool:
        """Whether a tool has answered of those that code would ask."""
        wanted = {name for name, _ in self.standard}
        return any(item.tool in wanted and not is_error(item.result) for item in self.evidence)

    async def _rounds(self) -> None:
        limits = self.agent.limits
        self.evidence.extend(self.task.evidence)
        messages: list[ModelMessage] = [
            first_message(self.agent, self.task, self.evidence, self.reader)
        ]
        new = 0
        repeated = 0
        unread = 0
        was_prompted = False
        for _ in range(limits.rounds_max):
            try:
                reply = await self._ask(messages, new)
            except ReplyUnreadable as error:
                unread += 1
                if unread > limits.unread_max:
                    return self._end("unreadable", error)
                new = len(messages)
                messages += [UNREAD, UserMessage(text=render_unread(error.corrections))]
                continue
            except (ProviderFault, ReplyTooLarge, Truncated, TaskTooLarge) as error:
                return self._stop("fault", error)
            unread = 0
            if not reply.tool_calls:
                if (
                    was_prompted
                    or self.calls_made
                    or not self.standard
                    or reply.stop_reason is StopReason.REFUSAL
                ):
                    return self._stop_at_end(reply)
                was_prompted = True
                new = len(messages)
                messages += [assistant_turn(reply), UserMessage(text=NO_CALL)]
                continue
            results, fresh = await self._answer(self.reader.heard(reply).tool_calls)
            new = len(messages)
            messages += [assistant_turn(reply), ToolMessage(results=results)]
            repeated = 0 if fresh else repeated + 1
            if repeated >= limits.repeated_rounds_max or self._exhausted():
                break
        log.info("llm.tooling_limited", agent=self.agent.name, calls=self.calls_made)
        return None

    def _stop_at_end(self, reply: ModelReply) -> None:
        if reply.stop_reason is StopReason.REFUSAL:
            self._stop("refusal", declined(self.agent, reply))

    def _stop(self, why: str, error: ModelError) -> None:
        # With results in hand the output pass may still give an answer that stands on them; without
        # any it would be an answer out of nothing.
        if not self.evidence:
            raise error
        self._end(why, error)

    def _end(self, why: str, error: ModelError) -> None:
        """Go on to the answer with the evidence there is; its check says whether that will do."""
        self.ended = error
        log.warning("llm.tooling_ended", agent=self.agent.name, why=why, error=error.message)

    async def _ask(self, messages: Sequence[ModelMessage], new: int) -> ModelReply:
        request = request_of(
            self.agent,
            self.task,
            messages,
            tuple(self.evidence),
            self.reader,
            tools=self.tools,
        )
        await self._make_room(1)
        reply = await take_turn(self.agent, request, self.journal, on_record(request, new))
        return with_calls(reply, request.tools)

    async def _read_by_code(self) -> None:
        """The standard reads, on record as tool calls, for a model that has read nothing."""
        calls_before = self.calls_made
        calls = [
            ToolCall(id=f"code_{place}", name=name, arguments=dict(arguments))
            for place, (name, arguments) in enumerate(self.standard)
        ]
        most = self.agent.limits.calls_per_round_max
        for start in range(0, len(calls), most):
            await self._answer(calls[start : start + most])
        reads = self.calls_made - calls_before
        if calls_before:
            why = f"the model's {calls_before} tool calls read nothing"
        elif self.agent.limits.rounds_max:
            why = "the model called no tool"
        else:
            why = "model.tool_rounds_max is 0"
        self.reads = f"code made {reads} reads, as {why}"
        log.warning("llm.read_by_code", agent=self.agent.name, reads=reads)

    async def _answer(self, calls: Sequence[ToolCall]) -> tuple[tuple[ToolResult, ...], bool]:
        """Results in the calls' order; True where at least one was not known already."""
        fresh: dict[str, Call] = {}
        about: dict[str, str] = {}
        limited: dict[str, ToolResult] = {}
        for call in calls:
            key = _key(call)
            if key in self._known or key in fresh:
                continue
            limit = self._limit(len(fresh))
            if limit:
                limited[key] = self._result(call.name, _error(ToolLimitReached(limit)))
            else:
                fresh[key] = self._journalled(call)
                about[key] = str(call.arguments.get("ticker", "")).upper()
        await self._make_room(len(fresh))
        values = await self.journal.calls(list(fresh.values()))
        for (key, fresh_call), value in zip(fresh.items(), values, strict=True):
            self._keep(key, fresh_call.name, value, about[key])
        answers = {**limited, **self._known}
        results = tuple(
            answers[_key(call)].model_copy(update={"call_id": call.id, "name": call.name})
            for call in calls
        )
        return results, bool(fresh)

    def _limit(self, place: int) -> str:
        """The reason to refuse the `place`-th new call of a round; empty where it may be made."""
        limits = self.agent.limits
        if self._exhausted(place):
            return f"no more tools: {limits.calls_max} calls, or the room for results, are used up"
        if place >= limits.calls_per_round_max:
            return "too many calls in one round; ask for the rest in the next one"
        return ""

    def _exhausted(self, place: int = 0) -> bool:
        limits = self.agent.limits
        return (
            self.calls_made + place >= limits.calls_max or self._bytes >= limits.evidence_bytes_max
        )

    async def _make_room(self, coming: int) -> None:
        """Record what waits where `coming` more would not fit into one batch of the record."""
        if self._unrecorded + coming > RECORDED_AT_ONCE_MAX:
            await self.journal.flush()
            self._unrecorded = 0
        self._unrecorded += coming

    def _keep(self, key: str, name: str, value: JsonValue, about: str) -> None:
        size = len(orjson.dumps(value))
        if self._bytes + size > self.agent.limits.evidence_bytes_max:
            value = _error(ToolLimitReached("no room for this result; answer with what you have"))
        self._bytes += size
        self.calls_made += 1
        if is_error(value) and about and not self._stands_in_task(about):
            value = without_name(value, about)
        self._known[key] = self._result(name, value)
        place = len(self.evidence)
        tool = name if self._is_offered(name) else UNKNOWN_TOOL
        self.evidence.append(ToolEvidence(id=f"E{place}", tool=tool, result=value, about=about))

    def _stands_in_task(self, ticker: str) -> bool:
        """Whether the model has the name from the desk: from its task or from a tool's answer."""
        answers = (item.result for item in self.evidence if not is_error(item.result))
        return any(f'"{ticker}"' in canonical(text) for text in (dict(self.task.data), *answers))

    def _is_offered(self, name: str) -> bool:
        return any(tool.name == name for tool in self.tools.definitions)

    def _result(self, name: str, value: JsonValue) -> ToolResult:
        shown = self.reader.result(name, value)
        if isinstance(shown, dict) and CODE_ONLY in shown:
            shown = {key: part for key, part in shown.items() if key != CODE_ONLY}
        return ToolResult(call_id="", name=name, content=canonical(shown), is_error=is_error(value))

    def _journalled(self, call: ToolCall) -> Call:
        """The call as the journal makes it; a refused one runs nothing but is on record too."""

        async def run() -> Reply:
            try:
                if call.error:
                    tool = f"{call.name}: " if self._is_offered(call.name) else ""
                    raise BadToolArguments(f"{tool}{call.error}")
                return Reply(await self._run_tool(call))
            except DeskError as error:
                if error.code == LOOK_AHEAD:
                    raise
                return Reply(_error(error))

        request: JsonValue = {"arguments": call.arguments, "unread": call.error}
        return Call(CallKind.TOOL, call.name[:NAME_CHARS_MAX] or "unnamed", request, run)

    async def _run_tool(self, call: ToolCall) -> JsonValue:
        result = await self.tools.call(call.name, call.arguments)
        try:
            value = storable(dict(result))
            size = len(orjson.dumps(value))
        except (ValueError, TypeError) as error:
            raise ToolResultBad(f"{call.name}: {error}; leave this tool out") from error
        limit = self.agent.limits.result_bytes_max
        if size > limit:
            raise ToolResultTooLarge(
                f"{call.name}: the result has {size} bytes, the limit is {limit}; ask for less"
            )
        return value


async def _output_pass(
    agent: Agent,
    task: Task,
    evidence: tuple[ToolEvidence, ...],
    output: type[T],
    journal: Journal,
    check: AnswerCheck[T] | None,
) -> T:
    facts = None
    if gives_reasons(output):
        facts = (
            check.facts_on(evidence) if isinstance(check, Reasoning) else facts_for(task, evidence)
        )
    reader = reader_of(agent.masking, task)
    messages: list[ModelMessage] = [first_message(agent, task, evidence, reader, facts)]
    new = 0
    errors: tuple[str, ...] = ()
    causes: tuple[str, ...] = ()
    last = ""
    for _ in range(agent.limits.repairs_max + 1):
        request = request_of(agent, task, messages, evidence, reader, output=output, facts=facts)
        read: ReadAnswer[T] = ReadAnswer(None)
        causes = ()
        try:
            taken = await take_turn(agent, request, journal, on_record(request, new))
            reply = without_calls(taken)
            refuse_declined(agent, reply)
            turn, text = assistant_turn(reply), reader.heard(reply).text
            read = read_answer(
                text,
                output,
                check,
                evidence,
                thoughts=[*_thoughts(reply, reader)],
                closes=not agent.trades,
            )
            errors = read.errors
        except ReplyUnreadable as error:
            turn, text, errors, causes = UNREAD, "", tuple(error.corrections), (error.message,)
        await journal.call(_validation(output, errors, read))
        if read.notes:
            log.info("llm.answer_changed", agent=agent.name, model=agent.model, notes=read.notes)
        if read.value is not None:
            return read.value
        log.info("llm.answer_invalid", agent=agent.name, model=agent.model, errors=errors)
        if text and text == last:
            # The same words again: a third time would bring them once more.
            raise AnswerInvalid(agent.name, agent.model, errors, ("it gave the same answer twice",))
        last = text
        new = len(messages)
        messages += [turn, UserMessage(text=render_errors(reader.errors(errors)))]
    raise AnswerInvalid(agent.name, agent.model, errors, causes)


def _thoughts(reply: ModelReply, reader: Reader) -> Iterator[str]:
    """The texts of the reply beside what it said, in real names."""
    for text in unspoken(reply):
        yield reader.heard(reply.model_copy(update={"text": text})).text


def _validation(output: type[BaseModel], errors: Sequence[str], read: ReadAnswer[T]) -> Call:
    """The outcome of a validation: nothing is asked, it only stands on record."""
    outcome: dict[str, JsonValue] = {"passed": not errors, "errors": list(errors)}
    if read.notes:
        outcome["notes"] = list(read.notes)
    if read.repaired:
        outcome["repaired"] = storable(read.repaired)

    async def outcome_reply() -> Reply:
        return Reply(outcome, passed=not errors)

    name = f"check of {output.__name__}"
    return Call(CallKind.READ, name, outcome, outcome_reply, new={"contract": output.__name__})


def without_name(value: JsonValue, ticker: str) -> JsonValue:
    """A tool's error as its model is sent it: without the ticker that the model made up, which it
    would use again. The record of the call has it."""
    error = value["error"] if isinstance(value, dict) else None
    if not isinstance(error, dict):
        return value
    name = rf"(?<![\w.^=-]){re.escape(ticker)}(?![\w^=-])"
    message = re.sub(name, THIS_TICKER, str(error.get("message", "")), flags=re.IGNORECASE)
    return {"error": {**error, "message": message}}


def _error(error: DeskError) -> JsonValue:
    return {"error": {"code": error.code, "message": error.message}}


def _key(call: ToolCall) -> str:
    return f"{call.name} {canonical(call.arguments)}"
