"""Run a past cycle again from its record: no model call, no data call, nothing written.

The state machine decides the order as it did then. Every handler that thinks runs again on its
recorded command and journal and must give the recorded contract; execution, whose effects happened
once, is answered from the record. A difference names the operation and, where it is one, the call.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any
from uuid import UUID

from pydantic import BaseModel, JsonValue, computed_field

from contracts.cycle_query import CycleView, Recording
from contracts.operation import CallKind
from contracts.stages import RULES
from contracts.types import Failure
from libs.bus.route import Route
from libs.llm.recorded import RecordedProvider
from libs.market.exit_terms import DeskExitRules
from libs.market.sources import market_of
from libs.runtime import ids
from libs.runtime.data_version import reading
from libs.runtime.errors import DeskError
from libs.runtime.journal import CallNotRecorded, RecordedJournal
from libs.runtime.own_code import source_sha256
from libs.runtime.settings import Settings
from services.assessment import app as assessment
from services.exit_signal import app as exit_signal
from services.exit_signal.reads import ExitReads
from services.orchestrator.machine.logic import (
    Cycle,
    Input,
    Start,
    Started,
    StepDone,
    StepFailed,
    advance,
    begin,
)
from services.orchestrator.machine.workflow import Workflow
from services.orchestrator.machine.workflows import as_recorded
from services.research import app as research
from services.risk import app as risk
from services.sentiment import app as sentiment
from services.strategy import app as strategy
from services.trader import app as trader

# Ends that the clock or a process gave, not the handler: they are taken from the record.
GIVEN_FAILURES = frozenset({"timed_out", "poison", "not_storable", "internal_error"})


class ReplayDifference(BaseModel):
    """Where the replay and the record part."""

    op_id: UUID
    step: str
    what: str


class ReplayReport(BaseModel):
    """The steps that ran again, and whether all of them came out as recorded. `changed` are
    plug-ins that are not what they were; their answers were taken from the record."""

    cycle_id: UUID
    status: str
    operations: int = 0
    calls: int = 0
    from_record: int = 0
    differences: list[ReplayDifference] = []
    changed: Sequence[str] = ()

    @computed_field  # type: ignore[prop-decorator]
    @property
    def same(self) -> bool:
        """Whether the replay decided what the cycle decided."""
        return not self.differences


async def replay(
    view: CycleView, recordings: Sequence[Recording], settings: Settings
) -> ReplayReport:
    """Replay one cycle of the decision desk. Raises LookupError for an unknown workflow."""
    if view.cycle_id is None:
        raise LookupError(view.message or "no cycle of this id")
    by_id = {recording.op_id: recording for recording in recordings if recording.op_id is not None}
    report = ReplayReport(
        cycle_id=view.cycle_id, status=view.status or "", changed=changed_plugins(recordings)
    )
    # The rules answer the stages of a masked pipeline that read texts: docs/masking.md.
    names = dict.fromkeys((*_answering(recordings), RULES))
    providers = {name: RecordedProvider(name) for name in names}
    routes = _thinking(providers, settings)
    await _Replay(_workflow(view, recordings), view, by_id, routes, report, providers).run()
    return report


def changed_plugins(recordings: Sequence[Recording]) -> Sequence[str]:
    """A sentence for each plug-in whose code is not that on record. None of them is loaded."""
    recorded: set[tuple[str, str]] = set()
    for recording in recordings:
        result = recording.result if isinstance(recording.result, dict) else {}
        verdicts = result.get("plugins")
        # The hash of a rule is in the result, that of a tool among the calls of its step.
        calls = [entry.reply for entry in recording.journal if entry.kind is CallKind.READ]
        for known in (*(verdicts if isinstance(verdicts, list) else ()), *calls):
            if isinstance(known, dict) and {"plugin", "sha256"} <= known.keys():
                recorded.add((str(known["plugin"]), str(known["sha256"])))
    return [
        f"plug-in {name} has changed: its source was {then[:12] or 'not there'}, and is "
        f"{now[:12] or 'not there'}"
        for name, then in sorted(recorded)
        if (now := source_sha256(name.partition(":")[0])) != then
    ]


def _answering(recordings: Sequence[Recording]) -> Iterator[str]:
    """The providers that answered a stage: each pipeline's own, and those in its place."""
    for recording in recordings:
        command = recording.command if isinstance(recording.command, dict) else {}
        pipeline = command.get("pipeline")
        if isinstance(pipeline, dict):
            yield str(pipeline["provider"])
            stages = pipeline.get("stages")
            yield from map(str, stages.values() if isinstance(stages, dict) else ())


def _thinking(
    providers: Mapping[str, RecordedProvider], settings: Settings
) -> Mapping[type, Route]:
    """The handlers that run again. Execution's effects happened once and are not repeated, nor is
    the computing of trainings and backtests, which reads prices: their results are as recorded."""
    market = market_of(settings)
    served = (
        sentiment.routes(market, providers, settings),
        research.routes(market, providers, settings),
        risk.routes(market, providers, settings),
        trader.routes(market, providers, settings),
        assessment.routes(market, providers, settings),
    )
    exits = exit_signal.commands(ExitReads(market), DeskExitRules(settings.exit_rules_file))
    design = strategy.designing(market, providers, settings)
    commands = [*exits, design, *(route for routes in served for route in routes.commands)]
    return {route.hears.message: route for route in commands}


def _workflow(view: CycleView, recordings: Sequence[Recording]) -> Workflow:
    command = next((recording.command for recording in recordings if recording.command), None)
    version = command["workflow_version"] if isinstance(command, dict) else 0
    for workflow in as_recorded():
        if (workflow.kind, workflow.version) == (view.kind, version):
            return workflow
    raise LookupError(f"no workflow {view.kind} version {version} in this release")


class _Replay:
    """One cycle being replayed."""

    def __init__(
        self,
        workflow: Workflow,
        view: CycleView,
        recordings: Mapping[UUID, Recording],
        routes: Mapping[type, Route],
        report: ReplayReport,
        providers: Mapping[str, RecordedProvider],
    ) -> None:
        self._workflow = workflow
        self._providers = providers
        self._recordings = recordings
        self._routes = routes
        self._report = report
        self._results: dict[UUID, Any] = {}
        names = tuple(pipeline.name for pipeline in view.pipelines)
        passes = _passes(workflow, recordings.values())
        rounds = _rounds(workflow, recordings.values(), names[0])
        self._cycle: Cycle = begin(report.cycle_id, names, names[0], passes, rounds)
        self._memories = _memories(recordings.values(), names)

    async def run(self) -> None:
        """Feed the state machine until nothing more is to start."""
        waiting = self._feed(Started(self._memories))
        while waiting:
            start = waiting.pop(0)
            cause = await self._input(start)
            if cause is not None:
                waiting += self._feed(cause)

    def _feed(self, cause: Input) -> list[Start]:
        after = advance(self._workflow, self._cycle, cause)
        self._cycle = after.cycle
        return list(after.starts)

    async def _input(self, start: Start) -> Input | None:
        """The result of an operation; None where it never ended (it was cancelled)."""
        recorded = self._recordings.get(start.op_id)
        if recorded is None:
            self._differ(start, "the record has no such operation")
            return None
        if recorded.status not in {"completed", "failed"}:
            return None
        self._compare_inputs(start, recorded)
        route = self._routes.get(start.step.serves.message)
        is_given = recorded.failure is not None and recorded.failure.code in GIVEN_FAILURES
        if route is None or is_given:
            self._report.from_record += 1
            return self._recorded(start, recorded)
        return await self._again(start, recorded, route)

    async def _again(self, start: Start, recorded: Recording, route: Route) -> Input:
        self._report.operations += 1
        self._report.calls += len(recorded.journal)
        command = start.step.serves.message.model_validate(recorded.command)
        for provider in self._providers.values():
            provider.follow(recorded.journal)
        try:
            with reading(command.data_version):
                contract = await route.handle(command, RecordedJournal(recorded.journal))
        except CallNotRecorded as error:
            # A call that failed is not on record: where it failed, the operation ended.
            if recorded.failure is None:
                self._differ(start, error.message)
            return self._recorded(start, recorded)
        except DeskError as error:
            if recorded.failure is None or recorded.failure.code != error.code:
                self._differ(start, f"{error.code}: {error.message}")
            return self._recorded(start, recorded)
        if not _agrees(contract.model_dump(mode="json"), recorded.result):
            self._differ(start, "the contract is not the recorded one")
        self._results[start.op_id] = contract.model_dump(mode="json")
        return self._recorded(start, recorded)

    def _recorded(self, start: Start, recorded: Recording) -> Input:
        """The operation's end as it is on record."""
        step = start.step.name
        if recorded.status == "completed" and isinstance(recorded.result, dict):
            return StepDone(start.lane, step, start.attempt, recorded.result)
        failure = recorded.failure or Failure(code="unknown", message="the record has no reason")
        after = start.attempt + 1
        sample = self._cycle.lanes[start.lane].round
        cycle_id = self._cycle.cycle_id
        again = ids.operation_id(cycle_id, start.lane, start.state, step, after, sample)
        corrections, fell_back = _taken_up(self._recordings.get(again))
        if fell_back:
            failure = failure.model_copy(update={"of_model": True})
        return StepFailed(start.lane, step, start.attempt, failure, corrections)

    def _compare_inputs(self, start: Start, recorded: Recording) -> None:
        """The command must hold the contracts that the replay has made."""
        command = recorded.command if isinstance(recorded.command, dict) else {}
        for name, op_id in start.takes.items():
            result = self._results.get(op_id)
            if result is not None and not _agrees(result, command.get(name)):
                self._differ(start, f"its command holds another {name}")

    def _differ(self, start: Start, what: str) -> None:
        self._report.differences.append(
            ReplayDifference(op_id=start.op_id, step=start.step.name, what=what)
        )


def _taken_up(attempt: Recording | None) -> tuple[tuple[str, ...], bool]:
    """How the attempt that followed a failure was asked for: the corrections that it was sent, and
    whether it was a fallback's. Neither where none followed."""
    command = attempt.command if attempt is not None else None
    if not isinstance(command, dict):
        return (), False
    errors = command.get("errors")
    corrections = tuple(map(str, errors)) if isinstance(errors, list) else ()
    return corrections, bool(command.get("fallback"))


def _agrees(replayed: JsonValue, recorded: JsonValue) -> bool:
    """Whether all that is on record is made again; a newer release may add fields to it."""
    match replayed, recorded:
        case dict(), dict():
            return all(
                key in replayed and _agrees(replayed[key], value) for key, value in recorded.items()
            )
        case list(), list():
            return len(replayed) == len(recorded) and all(map(_agrees, replayed, recorded))
        case _:
            return replayed == recorded


def _passes(workflow: Workflow, recordings: Iterable[Recording]) -> Mapping[str, tuple[str, ...]]:
    """The optional states that each pipeline came to: those it has operations of."""
    optional = {state.name for state in workflow.states if state.optional}
    passes: dict[str, tuple[str, ...]] = {}
    for recording in recordings:
        state = recording.command.get("state") if isinstance(recording.command, dict) else None
        if recording.pipeline and state in optional:
            passes[recording.pipeline] = (*passes.get(recording.pipeline, ()), str(state))
    return passes


def _memories(recordings: Iterable[Recording], names: Sequence[str]) -> dict[str, UUID]:
    """The memories that the cycle began with, as its commands show them."""
    memories: dict[str, UUID] = {}
    for recording in recordings:
        command = recording.command if isinstance(recording.command, dict) else {}
        memory = command.get("agent_memory")
        if recording.pipeline in names and isinstance(memory, dict):
            memories[recording.pipeline or ""] = UUID(str(memory["op_id"]))
    return memories


def _rounds(workflow: Workflow, recordings: Iterable[Recording], main: str) -> int:
    """How often the main pipeline began: the record says it, whatever was allowed."""
    first = (workflow.states[0].steps[0].name, 1)
    commands = [recording.command for recording in recordings if recording.pipeline == main]
    begun = [
        command
        for command in commands
        if isinstance(command, dict) and (command.get("step"), command.get("attempt")) == first
    ]
    return max(len(begun), 1)
