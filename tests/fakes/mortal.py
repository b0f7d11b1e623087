"""A service of the desk that dies or freezes where a plan says so.

    python -m tests.fakes.mortal SERVICE

SERVICE `desk` is all of them in one process, joined as `deskbus up` joins them.

The points stand around all that a service asks of the orchestrator, of a model and of a tool; where
they share a process, around each command that is handed over; and between the steps of the clock of
studies. Each one that is passed is a line of `passed.jsonl` in MORTAL_DIR; `plan.json` there names
the one at which something happens, once. The signals are those that an operator or the kernel would
send.
"""

import asyncio
import json
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from structlog.contextvars import get_contextvars

from contracts.subjects.subject import STUDY
from libs.bus.local import LocalBus
from libs.bus.operation import Orchestrator
from libs.bus.service import ServiceRunner
from libs.llm.endpoints.remote import RemoteProvider
from libs.llm.toolbox import Toolbox
from libs.runtime import ids
from libs.runtime.loop import run
from libs.runtime.settings import Settings
from libs.study.statistics.design import key_of
from libs.telemetry.logging import configure_logging
from services import launcher
from services.orchestrator.commit import Committer
from services.orchestrator.handler import BusOutbox, Handler
from services.orchestrator.schedulers.resting import Resting
from services.study.runner import Studies

DESK = "desk"
FOLDER_VARIABLE = "MORTAL_DIR"
MODEL_LOG_VARIABLE = "MORTAL_MODEL_LOG"
MID_S = 0.002
"""Others die so long after the point: the orchestrator has the question and no answer yet."""
LOOK_S = 0.002


@dataclass(frozen=True)
class Plan:
    """What happens when the `number`-th point `what` of an operation is passed.

    `freeze`: this process stops. Else `victims` (pids) are killed, and with `self_too` this one.
    `mark` is the file that says it was done: made by whoever does it.
    """

    op_id: str
    what: str
    number: int
    mark: str
    freeze: bool = False
    self_too: bool = True
    victims: tuple[int, ...] = ()

    def write(self, folder: Path) -> None:
        """Put it where the services look; all of it or nothing."""
        partial = folder / "plan.partial"
        partial.write_text(json.dumps(asdict(self)))
        partial.replace(folder / "plan.json")


class Mortal:
    """The points of one process."""

    def __init__(self, folder: Path, model_log: Path) -> None:
        self._folder = folder
        self._model_log = model_log
        self._passed: Counter[tuple[str, str]] = Counter()
        self._descriptor = os.open(
            folder / "passed.jsonl", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644
        )

    def passes(self, op_id: object, what: str, **about: object) -> None:
        """A point: it is written down, then it may be the last thing that this process does."""
        number = self._passed[str(op_id), what]
        self._passed[str(op_id), what] += 1
        line = {"op_id": str(op_id), "what": what, "number": number, **about}
        self._write(line)
        plan = self._plan()
        if plan is not None and (plan.op_id, plan.what, plan.number) == (str(op_id), what, number):
            with suppress(FileExistsError):
                (self._folder / plan.mark).touch(exist_ok=False)
                self._do(plan)

    async def answered(self, op_id: object, asking: Awaitable[Any]) -> Any:
        """What the orchestrator says, also where it is no point: renewals come by the clock.

        With the moment of the question: an answer to one from before a freeze may be read after it.
        """
        asked_at = time.time()
        answer = await asking
        # A record is answered with when it was asked for.
        said = answer[0] if isinstance(answer, tuple) else answer
        self._write({"op_id": str(op_id), "outcome": said.outcome, "asked_at": asked_at})
        return answer

    def left(self, op_id: object) -> None:
        """The work on an operation is over in this process, however that came."""
        self._write({"op_id": str(op_id), "left": True})

    def _write(self, line: dict[str, object]) -> None:
        whole = {"at": time.time(), "pid": os.getpid(), **line}
        os.write(self._descriptor, json.dumps(whole).encode() + b"\n")

    def _plan(self) -> Plan | None:
        try:
            return Plan(**json.loads((self._folder / "plan.json").read_text()))
        except FileNotFoundError:
            return None

    def _do(self, plan: Plan) -> None:
        if plan.freeze:
            os.kill(os.getpid(), signal.SIGSTOP)
        elif not plan.victims:
            os.kill(os.getpid(), signal.SIGKILL)
        else:
            asyncio.get_running_loop().call_later(MID_S, self._kill, plan)

    def _kill(self, plan: Plan) -> None:
        for pid in plan.victims:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if plan.self_too:
            os.kill(os.getpid(), signal.SIGKILL)

    async def in_flight(self, op_id: str, agent: str, begun: int) -> None:
        """Pass a point once the model has begun to answer this agent's next call."""
        while self.begun_by(agent) <= begun:  # noqa: ASYNC110 - another process writes the log
            await asyncio.sleep(LOOK_S)
        self.passes(op_id, "in flight")

    def begun_by(self, agent: str) -> int:
        """How many calls of an agent the model has begun to answer."""
        lines = self._model_log.read_text().splitlines() if self._model_log.exists() else []
        return sum('"begin"' in line and f'"agent": "{agent}"' in line for line in lines)


def present() -> str:
    """The operation that the running task works on."""
    return str(get_contextvars()["op_id"])


def make_mortal(mortal: Mortal) -> None:
    """Put the points into the service runtime's own classes."""
    claim, record, result = Orchestrator.claim, Orchestrator.record, Orchestrator.result
    complete, call, work = RemoteProvider.complete, Toolbox.call, ServiceRunner._claim

    async def mortal_work(self: ServiceRunner, heard: Any, command: Any, message: Any) -> None:
        try:
            await work(self, heard, command, message)
        finally:
            mortal.left(command.op_id)

    async def mortal_claim(self: Orchestrator, asked: Any) -> Any:
        mortal.passes(asked.op_id, "claim")
        answer = await mortal.answered(asked.op_id, claim(self, asked))
        mortal.passes(asked.op_id, "claimed", epoch=answer.epoch)
        return answer

    async def mortal_record(self: Orchestrator, asked: Any) -> Any:
        before, after = "reserve", "reserved"
        if asked.reserve is None:
            before, after = "record", "recorded"
        renewal = asked.reserve is None and not asked.entries
        if not renewal:
            mortal.passes(asked.op_id, before)
        answer = await mortal.answered(asked.op_id, record(self, asked))
        if not renewal:
            mortal.passes(asked.op_id, after)
        return answer

    async def mortal_result(self: Orchestrator, told: Any) -> Any:
        mortal.passes(told.op_id, "result")
        answer = await mortal.answered(told.op_id, result(self, told))
        mortal.passes(told.op_id, "answered")
        return answer

    async def mortal_complete(self: RemoteProvider, request: Any) -> Any:
        op_id = present()
        begun = mortal.begun_by(request.agent)
        mortal.passes(op_id, "call")
        flying = asyncio.create_task(mortal.in_flight(op_id, request.agent, begun))
        try:
            reply = await complete(self, request)
        finally:
            flying.cancel()
        mortal.passes(op_id, "reply")
        return reply

    async def mortal_call(self: Toolbox, name: str, arguments: Any) -> Any:
        op_id, asked = present(), {"tool": name, "arguments": dict(arguments)}
        mortal.passes(op_id, "tool", **asked)
        found = await call(self, name, arguments)
        mortal.passes(op_id, "told")
        return found

    _replace(Orchestrator, claim=mortal_claim, record=mortal_record, result=mortal_result)
    _replace(ServiceRunner, _claim=mortal_work)
    _replace(RemoteProvider, complete=mortal_complete)
    _replace(Toolbox, call=mortal_call)


def make_hand_overs_mortal(mortal: Mortal) -> None:
    """Put the points around each command that is handed over in this process."""
    hand_over = LocalBus.hand_over

    def mortal_hand_over(self: LocalBus, service: str, step: str, command: Any) -> bool:
        op_id = json.loads(command.body)["op_id"]
        mortal.passes(op_id, "hand")
        taken = hand_over(self, service, step, command)
        mortal.passes(op_id, "handed")
        return taken

    setattr(LocalBus, "hand_over", mortal_hand_over)  # noqa: B010 - of this process alone


def make_studies_mortal(mortal: Mortal) -> None:
    """Put the points between the steps of a study and of what rests; they bear the ids of cells."""
    cycle, asked, resume = Handler.cycle, Studies._asked, Resting.resume
    publish, send = Committer._publish, BusOutbox.send
    resumes = ContextVar("resumes", default=False)

    async def mortal_cycle(self: Handler, requester: str, request: Any) -> Any:
        cell = ids.cycle_id(requester, request.idempotency_key)
        if requester == STUDY:
            mortal.passes(cell, "cell")
        answer = await cycle(self, requester, request)
        if requester == STUDY:
            mortal.passes(cell, "accepted")
        return answer

    async def mortal_asked(self: Studies, study: Any, round_: Any, place: int, row: Any) -> bool:
        may_go_on = await asked(self, study, round_, place, row)
        key = key_of(study.name, round_.cells[place], round_.number)
        mortal.passes(ids.cycle_id(STUDY, key), "counted")
        return may_go_on

    async def mortal_publish(self: Committer, committed: Any) -> None:
        for new in committed.group.starts:
            if new.start.op_id not in committed.commands:
                mortal.passes(new.cycle.cycle_id, "rested")
        await publish(self, committed)

    async def mortal_resume(self: Resting) -> None:
        before = resumes.set(True)
        try:
            await resume(self)
        finally:
            resumes.reset(before)

    async def mortal_send(self: BusOutbox, command: Any) -> None:
        if resumes.get():
            mortal.passes(command.cycle_id, "resumed")
        await send(self, command)
        if resumes.get():
            mortal.passes(command.cycle_id, "resent")

    _replace(Handler, cycle=mortal_cycle)
    _replace(Studies, _asked=mortal_asked)
    _replace(Resting, resume=mortal_resume)
    _replace(Committer, _publish=mortal_publish)
    _replace(BusOutbox, send=mortal_send)


def _replace(owner: type, **methods: Callable[..., Awaitable[Any]]) -> None:
    for name, method in methods.items():
        setattr(owner, name, method)


async def whole_desk(settings: Settings) -> None:
    """Run a desk in this process until it is killed."""
    async with launcher.desk(settings) as desk:
        Path(os.environ[launcher.READY_FILE_VARIABLE]).touch()  # noqa: ASYNC240 - once
        await desk.finished()


def main(name: str) -> None:
    """Run one service as this process, or all."""
    if name != DESK:
        launcher.main(name)
        return
    settings = Settings()
    configure_logging(settings.log.level, settings.log.format)
    run(whole_desk(settings))


if __name__ == "__main__":
    own = Mortal(Path(os.environ[FOLDER_VARIABLE]), Path(os.environ[MODEL_LOG_VARIABLE]))
    make_mortal(own)
    make_hand_overs_mortal(own)
    make_studies_mortal(own)
    main(sys.argv[1])
