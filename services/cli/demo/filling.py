"""The demo's year: the schedule over past sessions, as `deskbus schedule replay` runs it, and
beside it what a desk meets in a year.

Everything is requested over the bus as anybody may request it. A key that was used before is the
same work, so a filling that was stopped continues where it was.
"""

import asyncio
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from pathlib import Path

from contracts.audit import EventType
from contracts.cycle import STRATEGY, Budgets, CycleRequest, CycleStatus
from contracts.halt import HaltTrading, ResumeTrading
from contracts.message import Pipeline
from contracts.schedule import ScheduleQuery
from contracts.strategy import StrategyWish
from contracts.subjects.cycles import REQUEST_CYCLE
from contracts.subjects.halts import HALT, RESUME
from contracts.subjects.schedule import SCHEDULE
from libs.bus.client import Client, open_client
from libs.bus.connection import connect
from libs.market.calendar import exchange_calendar
from libs.report.ending import AWAITING_APPROVAL
from libs.report.strategies.files import spec_of
from libs.runtime import extras, ids
from libs.runtime.model_settings import SCRIPTED
from libs.runtime.settings import Settings
from services.cli.demo.market import FIRST, LAST, TODAY
from services.cli.demo.sealed import MAIN, RULES, THRIFTY
from services.cli.shell.request import request_and_follow, send, show
from services.cli.shell.slots import Slots, slots_of
from services.cli.studies.run import begin

CALLER = "cli"
HALTED = (date(2010, 2, 8), date(2010, 2, 19))
"""Sessions between which the rules' account is halted."""
WHY_HALTED = "a drill: no buys in a volatile market"
DRILL = "the demo's halt: it blocks buys, not sales; deskbus resume --account rules ends it"
THRIFTY_USD = Decimal("0.12")
TORN = b'{"idempotency_key": "a-program-that-died-in-the-mid'
DESIGNS = Path(__file__).parent / "designs"
STUDY_FILE = Path(__file__).parent / "study.yaml"
DESIGNED = ("calm-leaders", "trend-and-calm")
"""The first passes both gates and is assessed, the second is stopped by one: the same design over
other years."""
STRATEGY_TIMEOUT_S = 240.0
PROPOSAL_TIMEOUT_S = 60.0
EXTRA = "strategies"
"""What strategies and the score of a study need. Without it the year is lived without them: a desk
that looks broken at first sight is no demo."""

OnStep = Callable[[int, int, str], None]
"""Called with progress: steps done, of how many, and what is done now."""


async def fill(settings: Settings, sessions: int | None, on_step: OnStep) -> None:
    """Live the year, or its last sessions. Raises `CliProblem` and `DeskNotReachable`; what was
    done then stays done."""
    async with open_client(settings.nats_address, settings.secrets_path, CALLER) as client:
        jobs = (await client.ask(SCHEDULE, ScheduleQuery())).jobs
        calendar = exchange_calendar()
        year = calendar.sessions(FIRST, LAST)[-sessions if sessions else 0 :]
        runs = list(slots_of(jobs, calendar, year[0], year[-1]))
        slots, is_halted = Slots(client), False
        is_whole = extras.is_installed(EXTRA)
        designing = asyncio.create_task(_strategies(client)) if is_whole else None
        try:
            for number, (job, slot) in enumerate(runs):
                on_step(number, len(runs) + 1, f"{slot.session:%Y-%m-%d} {job}")
                halt = HALTED[0] <= slot.session <= HALTED[1]
                if halt and not is_halted:
                    await client.ask(HALT, HaltTrading(account=RULES, reason=WHY_HALTED))
                elif is_halted and not halt:
                    await client.ask(RESUME, ResumeTrading(account=RULES))
                is_halted = halt
                await slots.to_its_end(job, slot.at)
            on_step(len(runs), len(runs) + 1, "a small budget, a proposal, a torn message, a halt")
            await _last_day(client, settings)
            on_step(len(runs) + 1, len(runs) + 1, "the end of all that is under way")
            if designing is not None:
                await designing
                # Last: its cells go on while a visitor looks around.
                await begin(client, STUDY_FILE)
        finally:
            if designing is not None:
                designing.cancel()


async def _last_day(client: Client, settings: Settings) -> None:
    """Leave something open for a visitor, and something that went wrong."""
    dear = CycleRequest(
        idempotency_key="demo-too-dear",
        as_of=TODAY,
        pipelines=(Pipeline(name=THRIFTY, provider=SCRIPTED, account=THRIFTY),),
        budgets=Budgets(cost_usd=THRIFTY_USD),
    )
    await request_and_follow(client, dear, lambda _: None)
    await _proposal(client)
    # Half a message, as a program sends that dies in the middle: it becomes a dead letter.
    connection = await connect(settings.nats_address, CALLER, settings.secrets_path)
    try:
        await connection.request(REQUEST_CYCLE.by(CALLER), TORN, timeout=5)
    finally:
        await connection.close()
    await client.ask(HALT, HaltTrading(account=RULES, reason=DRILL))


async def _proposal(client: Client) -> None:
    """Request the last decision, which a person is asked about, and wait until one is."""
    request = CycleRequest(
        idempotency_key="demo-waits",
        as_of=TODAY,
        pipelines=(Pipeline(name=SCRIPTED, provider=SCRIPTED, account=MAIN),),
        approval_required=True,
    )
    cycle_id = ids.cycle_id(CALLER, request.idempotency_key)
    async with asyncio.timeout(PROPOSAL_TIMEOUT_S), client.events(cycle_id) as events:
        answer = await send(client, request)
        # After a filling that was stopped here its event is past.
        pipelines = (await show(client, str(cycle_id))).pipelines
        is_waiting = any(pipeline.state == AWAITING_APPROVAL for pipeline in pipelines)
        if is_waiting or answer.status is not CycleStatus.RUNNING:
            return
        async for event in events:
            if event.type in {EventType.APPROVAL_REQUESTED, EventType.CYCLE_ENDED}:
                return


async def _strategies(client: Client) -> None:
    """Train and test two designs, one after the other, while the year goes by."""
    for name in DESIGNED:
        spec = spec_of((DESIGNS / f"{name}.yaml").read_text())
        request = CycleRequest(
            kind=STRATEGY,
            idempotency_key=f"demo-{name}",
            pipelines=(Pipeline(name=SCRIPTED, provider=SCRIPTED),),
            timeout_s=STRATEGY_TIMEOUT_S,
            strategy=StrategyWish(spec=spec),
        )
        await request_and_follow(client, request, lambda _: None)
