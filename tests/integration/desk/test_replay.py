"""A past cycle again, from its record alone."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

import orjson
import pytest

from libs.bus.client import open_client
from libs.llm.rules.provider import RulesProvider
from libs.market.replay.market import ReplayMarket
from libs.runtime.data_version import version_read
from libs.runtime.journal import RecordedJournal
from services.cli.shell.recordings import fetch
from services.cli.shell.request import show
from services.replay import ReplayReport, replay
from tests.integration.desk.caller import Caller, Json, operation_of, wish
from tests.integration.desk.command_line import CommandLine
from tests.integration.desk.conftest import Desk


@pytest.fixture
def deskbus(desk: Desk, tmp_path: Path) -> CommandLine:
    return CommandLine(desk.settings.data_dir, tmp_path)


async def replayed(desk: Desk, cycle_id: str) -> ReplayReport:
    """The replay as the command line does it, in this process."""
    async with open_client(desk.url, desk.secrets_dir) as client:
        view = await show(client, cycle_id)
        assert view.cycle_id is not None
        return await replay(view, await fetch(client, view.cycle_id), desk.settings)


async def test_the_command_gives_the_same_decision(user: Caller, deskbus: CommandLine) -> None:
    cycle_id = (await user.run(wish()))["cycle_id"]

    said = deskbus(f"cycle replay {cycle_id} --json")

    assert (said.code, said.err) == (0, "")
    (report,) = said.rows
    assert (report["same"], report["status"], report["differences"]) == (True, "completed", [])
    assert report["operations"] >= 8
    assert report["calls"] > 10


async def test_no_model_and_no_data_is_asked_and_nothing_is_written(
    desk: Desk, user: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    cycle_id = (await user.run(wish()))["cycle_id"]
    before = await written(desk)
    asked: list[str] = []

    def refusing(name: str) -> Any:
        async def refuse(*_: object, **__: object) -> None:
            asked.append(name)
            raise AssertionError(name)

        return refuse

    for name in ("bars", "universe", "news", "earnings", "fundamentals"):
        monkeypatch.setattr(ReplayMarket, name, refusing(name))
    monkeypatch.setattr(RulesProvider, "complete", refusing("complete"))

    report = await replayed(desk, cycle_id)

    assert report.same
    assert asked == []
    assert await written(desk) == before


async def test_each_operation_runs_on_the_version_of_the_data_that_it_read(
    desk: Desk, user: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    cycle_id = (await user.run(wish()))["cycle_id"]
    async with open_client(desk.url, desk.secrets_dir) as client:
        view = await show(client, cycle_id)
        assert view.cycle_id is not None
        recordings = [
            recording.model_copy(update={"command": {**recording.command, "data_version": "v1"}})
            if isinstance(recording.command, dict)
            else recording
            for recording in await fetch(client, view.cycle_id)
        ]
    versions: list[str | None] = []
    call = RecordedJournal.call

    async def noted(journal: RecordedJournal, asked: Any) -> Any:
        versions.append(version_read())
        return await call(journal, asked)

    monkeypatch.setattr(RecordedJournal, "call", noted)
    await replay(view, recordings, desk.settings)
    assert set(versions) == {"v1"}


async def written(desk: Desk) -> list[int]:
    """How many rows there are."""
    tables = ("cycles", "operations", "journal", "state_events", "orders", "postings")
    async with desk.postgres() as db:
        return [await db.fetchval(f"select count(*) from {table}") for table in tables]


async def test_failed_and_cancelled_cycles_replay_too(desk: Desk, user: Caller) -> None:
    failed = await user.run(wish(sources=["news"]))
    async with desk.held_back("trader-picks"):
        cancelled = await user.accepted(wish())
        await user.events.first(cycle_id=cancelled, type="state_entered", state="deciding")
        await user.ask({"cycle_id": cancelled}, "cancel")
        await user.ended(cancelled)

    assert (await replayed(desk, failed["cycle_id"])).same
    assert (await replayed(desk, cancelled)).same


@asynccontextmanager
async def tampered(desk: Desk, op_id: UUID, index: int, **fields: Any) -> AsyncIterator[None]:
    """One journal entry is another one while the block runs. Only a superuser can do that."""
    where = "where op_id = $1 and index = $2"
    async with desk.postgres() as db:
        true = await db.fetchval(f"select entry from journal {where}", op_id, index)
        false = orjson.dumps({**orjson.loads(true), **fields})
        await db.execute(f"update journal set entry = $3 {where}", op_id, index, false)
        yield
        await db.execute(f"update journal set entry = $3 {where}", op_id, index, true)


def dearer(reply: Json) -> Json:
    """A tool's result with every price tenfold."""
    return json.loads(
        json.dumps(reply),
        parse_float=lambda text: float(text) * 10,
    )


@pytest.fixture
async def quant(user: Caller) -> tuple[str, UUID, Json]:
    """A cycle, its quant's operation, and the first thing that it read."""
    cycle_id = (await user.run(wish()))["cycle_id"]
    nodes = (await user.query("operations", cycle_id=cycle_id))["operations"]
    op_id = operation_of(nodes, "quant")
    journal = (await user.query("operation", op_id=str(op_id)))["journal"]
    return cycle_id, op_id, next(each for each in journal if each["kind"] in {"tool", "read"})


@pytest.mark.parametrize("change", ["request", "reply", "reply of nothing"])
async def test_a_record_that_was_changed_is_a_mismatch_that_names_the_entry(
    change: str, desk: Desk, quant: tuple[str, UUID, Json]
) -> None:
    cycle_id, op_id, entry = quant
    fields: Json = {
        "request": {"request_sha256": "0" * 64},
        "reply": {"reply": dearer(entry["reply"])},
        "reply of nothing": {"reply": None},
    }[change]

    async with tampered(desk, op_id, entry["index"], **fields):
        report = await replayed(desk, cycle_id)

    first = report.differences[0]
    assert (first.op_id, first.step) == (op_id, "quant")
    if change == "request":
        named = f"call {entry['index']} on record is {entry['kind']} {entry['name']}"
        assert named in first.what
    assert (await replayed(desk, cycle_id)).same


async def test_a_mismatch_is_told_and_the_exit_code_is_1(
    desk: Desk, quant: tuple[str, UUID, Json], deskbus: CommandLine
) -> None:
    cycle_id, op_id, entry = quant
    async with tampered(desk, op_id, entry["index"], request_sha256="0" * 64):
        said = deskbus(f"cycle replay {cycle_id} --json")
        read = deskbus(f"cycle replay {cycle_id}")

    (report,) = said.rows
    assert (said.code, report["same"]) == (1, False)
    assert report["differences"][0]["op_id"] == str(op_id)
    assert read.code == 1
    assert f"call {entry['index']} on record is" in read.out
    assert "Traceback" not in read.err


def test_a_cycle_that_does_not_exist_cannot_be_replayed(deskbus: CommandLine) -> None:
    assert deskbus("cycle replay 12345678-1234-4234-8234-123456789abc").code == 3
