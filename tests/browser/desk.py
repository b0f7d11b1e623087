"""The desk that the pages are looked at on: a whole one, with something of everything on record."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import ExitStack, asynccontextmanager, contextmanager, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID, uuid4

import pytest
from pydantic import SecretStr

from contracts.operation import JournalEntry
from libs.bus.connection import connect
from libs.bus.permissions import PROVISIONER
from libs.bus.streams import COMMAND_STREAM
from libs.report.strategies.files import spec_of
from libs.runtime import ids
from libs.runtime.http_address import http_address
from libs.runtime.notify_settings import Notify
from libs.runtime.ports import choose_port
from libs.runtime.schedule_settings import Schedule
from libs.runtime.settings import Settings
from services.console.app import service
from tests.browser import traced
from tests.browser.traced import Traced
from tests.fakes.channel_server import Answer, ChannelServer, channel_server
from tests.flat_settings import changed
from tests.held_commands import not_handed_over
from tests.integration.desk.caller import Caller, Json, account_of, wish
from tests.integration.desk.conftest import Desk, desk_in
from tests.open_folder import open_folder

EXAMPLE = Path(__file__).parents[2] / "services/cli/desk/folder/strategy.yaml"
STRATEGY, OTHER = "trend-and-calm", "fewer-trees"
STUDY = "rules-and-luck"
TREES = {STRATEGY: 60, OTHER: 50}
STRATEGY_S = 120.0
STUDY_S = 900.0
"""Its cells give way to whatever else the machine does."""
TOKEN = "a-token-of-some-length"
EXIT_RULES = (
    "[default]\nstop_pct = 8\n[default.stop_loss]\npct = 15\n[default.take_profit]\npct = 30\n"
)
JOBS = {
    "decide": {"kind": "decision", "when": "close+30m", "account": "main"},
    "closing": {"kind": "snapshot", "when": "close+45m", "account": "timed"},
}
NOTIFY = {
    "channels": {"phone": {}, "ops": {"service": "webhook"}, "pager": {}, "mail": {}},
    "rules": {
        "trades": {"events": ["decision", "fill", "exit"], "to": ["phone", "mail"]},
        "trouble": {"events": ["*"], "severity": "alarm", "to": ["phone", "pager"]},
        # Nothing that this desk does is of this kind, at whatever time of day it is looked at.
        "evening": {
            "events": ["capital"],
            "to": ["ops"],
            "digest": "18:00",
            "quiet": "22:00-07:00",
        },
    },
}
"""`mail` has no address, and `pager` takes nothing."""


@dataclass(frozen=True)
class Shown:
    """The desk with what is on record there: cycles by how they ended."""

    desk: Desk
    url: str
    decided: Json
    account: str
    waiting: str
    failed: str
    operation: str
    strategy: str
    other: str
    study: str
    letter: int
    open_letter: int
    held_back: str
    sold: str
    traced: Traced
    phone: ChannelServer


@contextmanager
def fresh_desk() -> Iterator[str]:
    """One on which nothing was done yet; where it is."""
    with (
        open_folder() as folder,
        desk_in(folder, lambda _: nullcontext({}), http_enabled=True, http_port=0) as desk,
    ):
        address = http_address(desk.settings)
        assert address is not None
        yield address.url


@asynccontextmanager
async def guarded_console(settings: Settings) -> AsyncIterator[str]:
    """A second console of the desk, which asks for the token; where it is."""
    given = {"http_port": choose_port(None, set()), "http_token": SecretStr(TOKEN)}
    made = changed(settings, **given)
    address = http_address(made)
    assert address is not None
    async with service(made):
        yield address.url


@contextmanager
def shown_desk() -> Iterator[Shown]:
    """The desk with its HTTP side, while the block runs."""
    with ExitStack() as stack:
        folder = stack.enter_context(open_folder())
        providers = stack.enter_context(traced.model())
        phone, pager = (stack.enter_context(channel_server()) for _ in range(2))
        pager.judge = lambda _: Answer(401)
        rules = folder / "exit_signals.toml"
        rules.write_text(EXIT_RULES)
        given = {
            "http_enabled": True,
            "http_port": 0,
            "strategies_dir": folder / "strategies",
            "exit_rules_file": rules,
            "schedule": Schedule.model_validate({"clock": "replay", "jobs": JOBS}),
            "notify": Notify.model_validate(NOTIFY),
            "providers": providers,
        }
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        for name, address in {**addresses(phone, pager), **traced.KEYS}.items():
            patch.setenv(name, address)
        with (
            not_handed_over("reporter-report"),
            desk_in(folder, lambda _: nullcontext({}), **given) as desk,
        ):
            shown = asyncio.run(_filled(desk, phone))
            # What was sent, and that it was refused, is on the page.
            phone.wait(lambda server: bool(server.taken))
            pager.wait(lambda server: bool(server.heard))
            yield shown


def addresses(phone: ChannelServer, pager: ChannelServer) -> Mapping[str, str]:
    """The channels' addresses and keys, by variable. Apprise's own JSON goes to two of them."""
    return {
        "DESKBUS_NOTIFY_PHONE": phone.url.replace("http://", "json://"),
        "DESKBUS_NOTIFY_PAGER": pager.url.replace("http://", "json://"),
        "DESKBUS_NOTIFY_OPS": phone.url,
        "DESKBUS_NOTIFY_OPS_KEY": "k" * 32,
    }


async def _filled(desk: Desk, phone: ChannelServer) -> Shown:
    address = http_address(desk.settings)
    assert address is not None
    async with desk.calling("user") as caller, desk.calling("cli") as cli:
        await studied(caller)  # before any cycle stands still, which would be waited for
        tried = await caller.accepted(strategy(STRATEGY))  # it computes meanwhile
        body = wish()
        decided = await caller.run(body)
        nodes = (await caller.query("operations", cycle_id=decided["cycle_id"]))["operations"]
        researched = next(each["op_id"] for each in nodes if each["name"] == "analyst")
        sold = await sold_again(caller)
        failed = await caller.accepted(wish(sources=["news"]))
        await caller.ended(failed)
        waiting = await caller.accepted(wish(approval_required=True))
        await caller.events.first(cycle_id=waiting, type="approval_requested")
        await caller.ask(b"{torn")
        await cli.ask({"account": account_of(body), "reason": "a drill"}, "halt", "execution")
        await later(caller, body)
        await caller.ended(tried, STRATEGY_S)
        await caller.ended(await caller.accepted(strategy(OTHER)), STRATEGY_S)
        letter = int((await caller.query("dead_letters"))["letters"][0]["sequence"])
        held_back = await stopped_at_its_report(desk, caller, account_of(body))
        await paid(desk)
        traces = await traced.traced(desk, caller, waiting)
    return Shown(
        desk=desk,
        url=address.url,
        decided=decided,
        account=account_of(body),
        waiting=waiting,
        failed=failed,
        operation=researched,
        strategy=STRATEGY,
        other=OTHER,
        study=STUDY,
        letter=letter,
        open_letter=await letter_about(desk, held_back),
        held_back=held_back,
        sold=sold,
        traced=traces,
        phone=phone,
    )


async def studied(caller: Caller) -> None:
    """A study of the rules, named and masked, on as many dates as show something."""
    file = {
        "name": STUDY,
        "dates": {"first": "2006-01-03", "last": "2012-06-29", "count": 24},
        "universe": ["AAPL", "GOOG", "IBM", "MSFT"],
        "arms": [{"name": "rules"}, {"name": "rules-masked", "masked": True}],
    }
    assert (await caller.ask({"study": file}, "run_study", "study"))["outcome"] == "accepted"
    async with asyncio.timeout(STUDY_S):
        while True:
            (view,) = (await caller.query("studies", "study", name=STUDY))["studies"]
            if view["status"] != "running":
                return
            await asyncio.sleep(0.2)


async def sold_again(caller: Caller) -> str:
    """An exit cycle that sells what an account of its own has bought."""
    pipelines = (bought := wish())["pipelines"]
    await caller.run(bought)
    exit_wish = wish(kind="exit", as_of="2012-10-31", pipelines=pipelines)
    return str((await caller.run(exit_wish))["cycle_id"])


async def stopped_at_its_report(desk: Desk, caller: Caller, account: str) -> str:
    """A cycle whose last command nobody is given, for as long as the desk is looked at."""
    client = await connect(desk.url, PROVISIONER, desk.secrets_dir)
    until = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
    await client.jsm().pause_consumer(COMMAND_STREAM, "reporter-report", until)
    await client.close()
    body = wish(
        kind="report",
        as_of="2012-10-31",
        pipelines=[{"name": "rules", "account": account}],
        timeout_s=3_600,
    )
    cycle_id = await caller.accepted(body)
    await caller.events.first(cycle_id=cycle_id, type="state_entered", state="reporting")
    return cycle_id


async def letter_about(desk: Desk, cycle_id: str) -> int:
    """A letter that names the cycle's open operation; its number."""
    op_id = ids.operation_id(UUID(cycle_id), "rules", "reporting", "report", 1)
    body = {"op_id": str(op_id), "note": "<img src=x onerror=alert(1)>"}
    async with desk.calling("reporter") as reporter:
        kept = await reporter.nats.request(
            "desk.v1.dlq.reporter.report",
            json.dumps(body).encode(),
            headers={"Desk-Code": "invalid", "Desk-Error": "it has a note"},
        )
    return int(json.loads(kept.data)["seq"])


async def later(caller: Caller, body: Json) -> None:
    """The same account at later sessions: it has an equity over time, and holds what it bought,
    as its time is not up yet."""
    for as_of in ("2012-07-31", "2012-08-31", "2012-09-14"):
        await caller.run({**body, "idempotency_key": uuid4().hex, "as_of": as_of})


def strategy(name: str) -> Json:
    """A strategy cycle for a design that both gates let through."""
    spec = spec_of(EXAMPLE.read_text()).model_dump(mode="json", exclude_none=True)
    model = {**spec["model"], "trees": TREES[name]}
    return {
        "idempotency_key": uuid4().hex,
        "kind": "strategy",
        "strategy": {"spec": {**spec, "model": model, "name": name}},
        "timeout_s": 120,
    }


async def paid(desk: Desk) -> None:
    """Model calls on record as if they had been paid for: no model is asked by this desk."""
    usage = {"input_tokens": 41_200, "output_tokens": 2_300, "cost_usd": "0.1930"}
    rows = (("plan", "claude:claude-sonnet-5-5"), ("analyst", "claude:claude-haiku-5-5"))
    async with desk.postgres() as db:
        for step, name in rows:
            entry = JournalEntry(
                index=500,
                kind="model",
                name=name,
                request_sha256="0" * 64,
                request=None,
                reply=None,
                usage=usage,
            )
            await db.execute(
                "with one as (update operations set tokens = 43500, cost_usd = 0.1930"
                " where op_id = (select op_id from operations where step = $1 and status ="
                " 'completed' order by created_at desc limit 1) returning op_id, started_on)"
                " insert into journal (started_on, op_id, index, epoch, entry)"
                " select started_on, op_id, 500, 1, $2 from one",
                step,
                entry.model_dump_json().encode(),
            )
        await db.execute(
            "insert into day_budgets (day, tokens_spent, cost_usd_spent, input_tokens,"
            " output_tokens) values ($1, 87000, 0.3860, 82400, 4600)",
            datetime.now(UTC).date(),
        )
