"""An orchestrator and two services in one process: a claimed step, then a plain one.

As a program (`python -m tests.fakes.local_desk`) it kills itself at the point that DIE_AT names,
such as `3-before`: right before the third word that passes inside the process; `3-after`, after it;
or `write-after`: after that step of a commit, the first time that the loop beside is in one too.
"""

import asyncio
import inspect
import os
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any

from contracts.message import Command, Contract
from contracts.operation import CallKind, Record, Reserve
from contracts.subjects import CLAIM, RECORD, RESULT, command
from contracts.types import Usage
from libs.bus.codec import decode
from libs.bus.local import LocalBus
from libs.bus.route import Routes, on_command
from libs.bus.service import ServiceRunner
from libs.runtime.journal import Call, Journal, Reply
from libs.runtime.settings import Settings
from services.orchestrator import app, store
from services.orchestrator.commit import CommitLoop
from services.orchestrator.group.recent import Recent
from services.orchestrator.machine.workflow import State, Step, Workflow

LANE = "alpha"
WORDS = (
    "picks over",
    "reserve",
    "record",
    "result of picks",
    "review over",
    "result of review",
)
"""What passes inside the process for one cycle, in this order. The claim comes with its command. A
free call that is made before a paid one goes with the reserve, and one that is made after it with
the result."""

COMMIT_STEPS = ("lock", "load", "fold", "write", "keep", "publish")
"""The steps of a commit, in this order; between the last two it is answered. Only what pays, and
what is not in memory, is read under locks."""


PAID = Usage(input_tokens=5, output_tokens=2)
"""What the paid call uses."""


class DoPicks(Command):
    """Claimed work: it looks, pays for a thought, and looks again."""


class Picked(Contract):
    """What it makes."""


class DoReview(Command):
    """Plain work that needs it."""

    picked: Picked


class Reviewed(Contract):
    """The end."""


PICK = command("trader", "picks", DoPicks, Picked, claimed=True)
REVIEW = command("risk", "review", DoReview, Reviewed)
WORKFLOW = Workflow(
    kind="local",
    version=1,
    states=(State("picking", (Step(PICK),)), State("reviewing", (Step(REVIEW),))),
)


@dataclass
class Services:
    """Both services in the orchestrator's process; how many commands each has run."""

    picked: int = 0
    reviewed: int = 0

    async def pick(self, order: DoPicks, journal: Journal) -> Picked:
        async def look() -> Reply:
            return Reply(7)

        async def think() -> Reply:
            return Reply({"thought": "it"}, PAID)

        self.picked += 1
        await journal.call(Call(CallKind.READ, "look", {"at": "it"}, look))
        held = Reserve(tokens=PAID.tokens, name="model", index=1, provider="paid")
        await journal.call(Call(CallKind.MODEL, "paid:model", {"of": "it"}, think, reserve=held))
        await journal.call(Call(CallKind.READ, "look", {"at": "it again"}, look))
        return Picked.of(order)

    async def review(self, order: DoReview, _: Journal) -> Reviewed:
        assert order.picked.cycle_id == order.cycle_id
        self.reviewed += 1
        return Reviewed.of(order)

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
    if row is not RECORD:
        return False
    record = decode(Record, body)
    return not record.entries and record.reserve is None


def dying_beside_another(step: str, when: str) -> None:
    """From now on this process is killed right before or after this step of a commit, once another
    loop is in a commit too."""
    at_work: set[CommitLoop] = set()
    settle = CommitLoop._settle

    async def settled(loop: CommitLoop, *of: Any) -> None:
        at_work.add(loop)
        try:
            await settle(loop, *of)
        finally:
            at_work.discard(loop)

    def die(now: str) -> None:
        if now == when and len(at_work) > 1:
            os.kill(os.getpid(), signal.SIGKILL)

    setattr(CommitLoop, "_settle", settled)  # noqa: B010 - of this process alone
    owner, name = {
        "lock": (store, "load"),
        "load": (store, "load_for_requests"),
        "fold": (CommitLoop, "_fold"),
        "write": (store, "write"),
        "keep": (Recent, "keep"),
        "publish": (CommitLoop, "_publish"),
    }[step]
    setattr(owner, name, _between(getattr(owner, name), die))


def _between(step: Callable[..., Any], die: Callable[[str], None]) -> Callable[..., Any]:
    """The step with a kill point on each side."""
    if inspect.iscoroutinefunction(step):

        async def waited_for(*of: Any) -> Any:
            die("before")
            value = await step(*of)
            die("after")
            return value

        return waited_for

    def done(*of: Any) -> Any:
        die("before")
        value = step(*of)
        die("after")
        return value

    return done


async def _main() -> None:
    settings, local, services = Settings(), LocalBus(), Services()
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(app.running(settings, (WORKFLOW,), local))
        for runner in services.runners(settings, local):
            await runner.start()
            stack.push_async_callback(runner.stop)
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        await asyncio.Event().wait()


if __name__ == "__main__":
    if point := os.environ.get("DIE_AT"):
        what, _, when = point.partition("-")
        if what in COMMIT_STEPS:
            dying_beside_another(what, when)
        else:
            dying(int(what), when)
    asyncio.run(_main())
