"""An orchestrator and two services in one process: a claimed step, then a plain one.

As a program (`python -m tests.fakes.local_desk`) it kills itself at the point that DIE_AT names,
such as `3-before`: right before the third word that passes inside the process; `3-after`, after it;
or `reserve/committed`: at that point of the commit of a group with a reservation, the second time:
by then several cycles are under way.
"""

import asyncio
import os
import signal
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import AsyncExitStack
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from contracts.message import Command, Contract
from contracts.operation import CallKind, Claim, Record, Reserve, Result
from contracts.subjects.commands import command
from contracts.subjects.operations import CLAIM, RECORD, RESULT
from contracts.types import CycleId, Usage
from libs.bus.codec import decode
from libs.bus.local import LocalBus
from libs.bus.route import Routes, on_command
from libs.bus.service import ServiceRunner
from libs.runtime.journal import Call, Journal, Reply
from libs.runtime.settings import Settings
from services.orchestrator import app, store
from services.orchestrator.commit import Committer
from services.orchestrator.group import inputs
from services.orchestrator.handler import BusOutbox
from services.orchestrator.machine.workflow import State, Step, Workflow

LANE = "alpha"
WORDS = (
    "picks over",
    "free record",
    "reserve",
    "record",
    "result of picks",
    "review over",
    "result of review",
)
"""What passes inside the process for one cycle, in this order. The claim comes with its command. A
free call that is made before a paid one goes with the reserve, and one that is made after it with
the result; progress is told by a record of its own."""

SORTS = ("request", "free record", "reserve", "paid record", "result")
"""Inputs that a group has when it is killed."""
POINTS = ("locked", "folded", "written", "committed", "answered", "sent", "published")
"""Between the steps of a commit, in this order: the cycles are locked and read; the inputs are
taken; what follows is written in the same transaction, which is committed then; those who asked are
answered; commands are sent, one after the other."""
COMMIT_POINTS = tuple(
    f"{sort}/{point}"
    for sort in SORTS
    for point in POINTS
    # Commands follow from these two alone.
    if point != "sent" or sort in {"request", "result"}
)
TIMES = 2
"""The time at which such a point kills."""

PAID = Usage(input_tokens=5, output_tokens=2)
"""What the paid call uses."""


class DoPicks(Command):
    """Claimed work: it looks, pays for a thought, and looks again."""


class Picked(Contract):
    """What it makes. `note` is not checked before it is sent."""

    note: str = ""


class DoReview(Command):
    """Plain work that needs it."""

    picked: Picked


class Reviewed(Contract):
    """The end."""

    note: str = ""


PICK = command("trader", "picks", DoPicks, Picked, claimed=True)
REVIEW = command("risk", "review", DoReview, Reviewed)
WORKFLOW = Workflow(
    kind="local",
    version=1,
    states=(State("picking", (Step(PICK),)), State("reviewing", (Step(REVIEW),))),
)


@dataclass
class Services:
    """Both services in the orchestrator's process; how many commands each has run, how many calls
    of the model each cycle paid for, what the model replies, and what the results note."""

    picked: int = 0
    paid: Counter[CycleId] = field(default_factory=Counter)
    reviewed: int = 0
    reply: Reply = field(default_factory=lambda: Reply({"thought": "it"}, PAID))
    picked_note: str = ""
    reviewed_note: str = ""

    async def pick(self, order: DoPicks, journal: Journal) -> Picked:
        async def look() -> Reply:
            return Reply(7)

        async def think() -> Reply:
            self.paid[order.cycle_id] += 1
            return self.reply

        self.picked += 1
        await journal.call(Call(CallKind.READ, "look", {"at": "the sky"}, look))
        await journal.progress(10, "it has looked around")
        await journal.call(Call(CallKind.READ, "look", {"at": "it"}, look))
        held = Reserve(tokens=PAID.tokens, name="model", index=2, provider="paid")
        await journal.call(Call(CallKind.MODEL, "paid:model", {"of": "it"}, think, reserve=held))
        await journal.call(Call(CallKind.READ, "look", {"at": "it again"}, look))
        return Picked.of(order, note=self.picked_note)

    async def review(self, order: DoReview, _: Journal) -> Reviewed:
        assert order.picked.cycle_id == order.cycle_id
        self.reviewed += 1
        return Reviewed.of(order, note=self.reviewed_note)

    def runners(self, settings: Settings, local: LocalBus) -> Sequence[ServiceRunner]:
        return [
            ServiceRunner(
                Routes(row.owner, commands=(route,)),
                settings.nats_address,
                settings,
                local.line(row.owner),
            )
            for row, route in (
                (PICK, on_command(PICK, self.pick)),
                (REVIEW, on_command(REVIEW, self.review)),
            )
        ]


def dying(at: int, when: str) -> None:
    """From now on this process is killed right before or after the word with this number."""
    heard = 0
    hand_over, ask = LocalBus.hand_over, LocalBus.ask

    def die(word: int, now: str) -> None:
        if (word, when) == (at, now):
            os.kill(os.getpid(), signal.SIGKILL)

    def next_word() -> int:
        nonlocal heard
        heard += 1
        return heard

    def handed(bus: LocalBus, *command: Any) -> bool:
        word = next_word()
        die(word, "before")
        taken = hand_over(bus, *command)
        die(word, "after")
        return taken

    async def asked(bus: LocalBus, row: Any, identity: str, body: bytes) -> bytes | None:
        if row not in (CLAIM, RECORD, RESULT) or renews(row, body):
            return await ask(bus, row, identity, body)
        word = next_word()
        die(word, "before")
        answer = await ask(bus, row, identity, body)
        # Meanwhile the next command may have been handed over: that is another word.
        die(word, "after")
        return answer

    setattr(LocalBus, "hand_over", handed)  # noqa: B010 - of this process alone
    setattr(LocalBus, "ask", asked)  # noqa: B010


def renews(row: Any, body: bytes) -> bool:
    """Whether a lease is renewed, which comes by the clock and is no word."""
    return row is RECORD and sort_of(decode(Record, body)) == "renewal"


def sort_of(said: Claim | Record | Result) -> str:
    """What sort of word it is."""
    if not isinstance(said, Record):
        return type(said).__name__.lower()
    if said.reserve is not None:
        return "reserve"
    if not said.entries:
        return "renewal"
    return "paid record" if any(entry.usage != Usage() for entry in said.entries) else "free record"


def _sorts(items: Iterable[inputs.GroupInput]) -> frozenset[str]:
    """The sorts of a group's inputs."""
    found = set()
    for item in items:
        match item:
            case inputs.Claimed(claim=said) | inputs.CallsRecorded(record=said):
                found.add(sort_of(said))
            case inputs.Resulted(result=said):
                found.add(sort_of(said))
            case inputs.CycleRequested():
                found.add("request")
            case _:
                found.add("other")
    return frozenset(found)


class DiesInCommit:
    """Kills this process at one of COMMIT_POINTS, the second time that it comes there."""

    def __init__(self, point: str) -> None:
        self._sort, self._point = point.split("/")
        self._times = 0
        self._sorts: ContextVar[frozenset[str]] = ContextVar("sorts", default=frozenset())

    def passes(self, point: str) -> None:
        """A point of the present loop's commit."""
        self._times += point == self._point and self._sort in self._sorts.get()
        if self._times == TIMES:
            os.kill(os.getpid(), signal.SIGKILL)

    def begin(self) -> None:
        """Put the points into the commit loop of this process."""
        commit = Committer._commit

        async def mortal_commit(committer: Committer, db: Any, asks: Any) -> None:
            self._sorts.set(_sorts(ask.item for ask in asks))
            await commit(committer, db, asks)

        setattr(Committer, "_commit", mortal_commit)  # noqa: B010 - of this process alone
        self._between(store, "load", after="locked")
        self._between(store, "write_paces", before="folded")
        self._between(store, "write", after="written")
        self._between(Committer, "_transaction", after="committed")
        self._between(Committer, "_publish", before="answered", after="published")
        self._between(BusOutbox, "send", after="sent")

    def _between(self, owner: Any, name: str, before: str = "", after: str = "") -> None:
        """Put points around a step."""
        step = getattr(owner, name)

        async def mortal_step(*of: Any) -> Any:
            self.passes(before)
            value = await step(*of)
            self.passes(after)
            return value

        setattr(owner, name, mortal_step)


def doomed(point: str) -> None:
    """From now on this process is killed at a point as DIE_AT names it."""
    if point in COMMIT_POINTS:
        DiesInCommit(point).begin()
    elif point:
        number, _, when = point.partition("-")
        dying(int(number), when)


async def _main() -> None:
    settings, local, services = Settings(), LocalBus(), Services()
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(app.running(settings, (WORKFLOW,), local))
        for runner in services.runners(settings, local):
            await runner.start()
            stack.push_async_callback(runner.stop)
        # What an earlier desk left undone is resumed at the start: it is none of the words.
        doomed(os.environ.get("DIE_AT", ""))
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(_main())
