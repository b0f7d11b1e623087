"""The demo's year: the schedule over past sessions, as `deskbus schedule replay` runs it, and
beside it what a desk meets in a year.

Everything is asked for over the bus as anybody may ask it, and whatever is asked for under a key
that was used before is the same work: a filling that was stopped goes on where it was.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from contracts.audit import EventType
from contracts.cycle import STRATEGY, CycleStatus
from contracts.halt import HaltTrading, ResumeTrading
from contracts.schedule import ScheduleQuery
from contracts.strategy import StrategyWish
from contracts.subjects.cycles import REQUEST_CYCLE
from contracts.subjects.halts import HALT, RESUME
from contracts.subjects.schedule import SCHEDULE
from libs.bus.client import Client, open_client
from libs.bus.connection import connect
from libs.market.calendar import ExchangeCalendar, exchange_calendar
from libs.market.slots import Slot
from libs.report.ending import AWAITING_APPROVAL
from libs.report.strategies.files import spec_of
from libs.runtime import ids
from libs.runtime.settings import Settings
from services.cli.demo.market import FIRST, LAST, TODAY
from services.cli.demo.sealed import MAIN, RULES, THRIFTY
from services.cli.shell.request import Wish, build, request_and_follow, send, show
from services.cli.shell.slots import Slots, slots_of

CALLER = "cli"
HALTED = (date(2010, 2, 8), date(2010, 2, 19))
"""Sessions between which the rules' account is halted."""
WHY_HALTED = "a drill: no buys while the market settles"
DRILL = "the demo's halt: sales pass, buys do not; deskbus resume --account rules ends it"
THRIFTY_USD = "0.12"
TORN = b'{"idempotency_key": "a-program-that-died-in-the-mid'
WAITS_KEY = "demo-waits"
DEAR_KEY = "demo-too-dear"
DESIGNS = Path(__file__).parent / "designs"
DESIGNED = ("calm-leaders", "trend-and-calm")
"""The first passes both gates and is assessed, the second is stopped by one: the same design over
other years."""
STRATEGY_TIMEOUT_S = 240.0
PROPOSAL_TIMEOUT_S = 60.0
LAST_STEPS = 4
"""What is done after the sessions: the cycle too dear, the proposal, the letter, the halt."""

OnStep = Callable[[int, int, str], None]
"""Hears of progress: steps done, of how many, and what is done now."""


@dataclass(frozen=True)
class Year:
    """The sessions of a filling, the first and the last."""

    first: date
    last: date

    @classmethod
    def of(cls, sessions: int | None, calendar: ExchangeCalendar) -> "Year":
        """The whole year, or its last sessions."""
        whole = calendar.sessions(FIRST, LAST)
        return cls(whole[0] if sessions is None else whole[-min(sessions, len(whole))], whole[-1])


async def fill(settings: Settings, year: Year, on_step: OnStep) -> None:
    """Live the year. Raises `Problem` and `DeskNotReachable`; what was done then stays done."""
    async with open_client(settings.nats_address, settings.secrets_path, CALLER) as client:
        view = await client.ask(SCHEDULE, ScheduleQuery())
        runs = list(slots_of(view.jobs, exchange_calendar(), year.first, year.last))
        count = len(runs) + LAST_STEPS
        designing = asyncio.create_task(_strategies(client))
        try:
            await _live(client, settings, runs, lambda done, now: on_step(done, count, now))
            await _last_day(client, settings, lambda n, now: on_step(len(runs) + n, count, now))
            on_step(count, count, "strategies: the backtests end")
            await designing
        finally:
            designing.cancel()


async def _live(
    client: Client,
    settings: Settings,
    runs: Sequence[tuple[str, Slot]],
    on_step: Callable[[int, str], None],
) -> None:
    slots = Slots(client, settings)
    halted = False
    for number, (job, slot) in enumerate(runs):
        on_step(number, f"{slot.session:%Y-%m-%d} {job}")
        wanted = HALTED[0] <= slot.session <= HALTED[1]
        if wanted and not halted:
            await client.ask(HALT, HaltTrading(account=RULES, reason=WHY_HALTED))
        elif halted and not wanted:
            await client.ask(RESUME, ResumeTrading(account=RULES))
        halted = wanted
        await slots.to_its_end(job, slot.at)


async def _last_day(
    client: Client, settings: Settings, on_step: Callable[[int, str], None]
) -> None:
    """Leave something open for a visitor, and something that went wrong."""
    on_step(0, "a decision with too small a budget")
    dear = Wish(
        key=DEAR_KEY,
        as_of=TODAY.isoformat(),
        providers=(f"{THRIFTY}=scripted@{THRIFTY}",),
        cost_usd=THRIFTY_USD,
    )
    await request_and_follow(client, build(dear), lambda _: None)
    on_step(1, "a proposal that waits for approval")
    await _until_it_waits(client)
    on_step(2, "a torn message")
    await _torn(settings)
    on_step(3, "a halt")
    await client.ask(HALT, HaltTrading(account=RULES, reason=DRILL))


async def _until_it_waits(client: Client) -> None:
    """Ask for the last decision, which a person is asked about, and wait until one is."""
    wish = Wish(
        key=WAITS_KEY,
        as_of=TODAY.isoformat(),
        providers=(f"scripted=scripted@{MAIN}",),
        approval_required=True,
    )
    cycle_id = ids.cycle_id(CALLER, WAITS_KEY)
    async with asyncio.timeout(PROPOSAL_TIMEOUT_S), client.events(cycle_id) as events:
        answer = await send(client, build(wish))
        # A filling that was stopped here had heard of it: it is told once.
        asked = (await show(client, str(cycle_id))).pipelines
        if any(pipeline.state == AWAITING_APPROVAL for pipeline in asked):
            return
        if answer.status is CycleStatus.RUNNING:
            async for event in events:
                if event.type in {EventType.APPROVAL_REQUESTED, EventType.CYCLE_ENDED}:
                    return


async def _torn(settings: Settings) -> None:
    """Half a message, as a program sends that dies in the middle: it becomes a dead letter."""
    connection = await connect(settings.nats_address, CALLER, settings.secrets_path)
    try:
        await connection.request(REQUEST_CYCLE.by(CALLER), TORN, timeout=5)
    finally:
        await connection.close()


async def _strategies(client: Client) -> None:
    """Train and test two designs, one after the other, while the year goes by."""
    for name in DESIGNED:
        spec = spec_of((DESIGNS / f"{name}.yaml").read_text())
        wish = Wish(
            kind=STRATEGY,
            key=f"demo-{name}",
            providers=("scripted",),
            timeout_s=STRATEGY_TIMEOUT_S,
            strategy=StrategyWish(spec=spec),
        )
        await request_and_follow(client, build(wish), lambda _: None)
