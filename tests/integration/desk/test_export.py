"""What is on record, written as Parquet and read back with polars."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import polars as pl
import pytest

from libs.postgres import export as exporting
from libs.postgres.export import ExportManifest, ExportRange, ExportRefused, export, sha256_of
from libs.postgres.migrate import migrations
from libs.postgres.pool import CONSOLE_ROLE, Pool, dsn_for, open_pool
from tests.integration.desk.caller import Caller, Json, account_of, wish
from tests.integration.desk.command_line import CommandLine
from tests.integration.desk.conftest import Desk

EXAMPLE = Path(__file__).parents[3] / "docs/examples/export_in_polars.py"
TABLES = [each.name for each in exporting.SOURCES]


@pytest.fixture
async def pool(desk: Desk) -> Any:
    """A connection as the role that may only select."""
    dsn = dsn_for(desk.settings.postgres_address, CONSOLE_ROLE, desk.secrets_dir)
    async with open_pool(dsn, size_max=1) as opened:
        yield opened


@pytest.fixture
async def traded(user: Caller) -> tuple[Json, str]:
    """A cycle that has bought something, and its account."""
    body = wish()
    return await user.run(body), account_of(body)


def read(folder: Path) -> dict[str, pl.DataFrame]:
    return {name: pl.read_parquet(folder / f"{name}.parquet") for name in TABLES}


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


async def test_a_cycles_rows_come_back_as_they_are_on_record(
    traded: tuple[Json, str], pool: Pool, desk: Desk, tmp_path: Path
) -> None:
    view, account = traded
    cycle_id = UUID(view["cycle_id"])

    manifest = await export(pool, tmp_path / "out", ExportRange(cycle_id=cycle_id))

    files = read(tmp_path / "out")
    assert files["cycles"]["cycle_id"].to_list() == [str(cycle_id)]
    assert json.loads(files["cycles"]["request"][0])["pipelines"][0]["account"] == account
    async with desk.postgres() as db:
        operations = await db.fetch("select * from operations where cycle_id = $1", cycle_id)
        fills = await db.fetch(
            "select f.* from fills f join orders using (order_id) where cycle_id = $1", cycle_id
        )
        events = await db.fetch(
            "select * from state_events where cycle_id = $1 order by xid, id", cycle_id
        )
        entries = await db.fetchval(
            "select count(*) from journal j join operations o using (op_id) where cycle_id = $1",
            cycle_id,
        )
    commands = dict(zip(*files["operations"].select("op_id", "command"), strict=True))
    assert commands == {str(row["op_id"]): row["command"].decode() for row in operations}
    assert files["journal"].height == entries > 0
    assert sorted(files["fills"]["price"]) == sorted(row["price"] for row in fills)
    assert [(r["id"], r["at"], r["xid"]) for r in events] == files["state_events"].select(
        "id", "at", "xid"
    ).rows()
    assert len(fills) == files["entries"].height == files["fills"].height > 0
    assert files["postings"].group_by("entry_id").agg(pl.col("amount").sum())[
        "amount"
    ].unique().to_list() == [Decimal("0.00")]
    assert {each.name: each.rows for each in manifest.tables} == {
        name: frame.height for name, frame in files.items()
    }


async def test_the_manifest_tells_what_the_files_are(
    traded: tuple[Json, str], pool: Pool, tmp_path: Path
) -> None:
    await export(pool, tmp_path, ExportRange())

    manifest = ExportManifest.model_validate_json((tmp_path / "manifest.json").read_text())
    assert manifest.schema_version == migrations()[-1].version
    assert [each.name for each in manifest.tables] == TABLES
    for each in manifest.tables:
        path = tmp_path / each.file
        assert (each.size_bytes, each.sha256) == (path.stat().st_size, sha256_of(path))
    assert names(tmp_path) == {
        "manifest.json",
        *(each.file for each in manifest.tables),
    }


async def test_many_small_parts_make_the_same_file(
    traded: tuple[Json, str], pool: Pool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cycle_id = UUID(traded[0]["cycle_id"])
    await export(pool, tmp_path / "whole", ExportRange(cycle_id=cycle_id))
    monkeypatch.setattr(exporting, "PART_BYTES_MAX", 1)
    monkeypatch.setattr(exporting, "ROWS_NARROW", 3)
    monkeypatch.setattr(exporting, "ROWS_WIDE", 1)

    await export(pool, tmp_path / "parts", ExportRange(cycle_id=cycle_id))

    whole, parts = read(tmp_path / "whole"), read(tmp_path / "parts")
    assert whole["state_events"].height > 10
    for name in TABLES:
        assert whole[name].equals(parts[name]), name
        assert whole[name].schema == parts[name].schema


async def test_days_take_the_cycles_that_were_accepted_then(
    traded: tuple[Json, str], pool: Pool, desk: Desk, tmp_path: Path
) -> None:
    cycle_id = traded[0]["cycle_id"]
    async with desk.postgres() as db:
        day = await db.fetchval("select started_on from cycles where cycle_id = $1", UUID(cycle_id))
        after = await db.fetchval("select $1::date + 1", day)

    await export(pool, tmp_path / "then", ExportRange(since=day, until=day))
    await export(pool, tmp_path / "later", ExportRange(since=after))

    then, later = read(tmp_path / "then"), read(tmp_path / "later")
    assert cycle_id in then["cycles"]["cycle_id"]
    assert then["fills"].height > 0
    for name in set(TABLES) - {"accounts"}:
        assert cycle_id not in later[name].get_column("cycle_id", default=pl.Series([""]))
        assert later[name].schema == then[name].schema


async def test_a_folder_with_something_in_it_is_left_alone(pool: Pool, tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")

    with pytest.raises(ExportRefused, match="not empty"):
        await export(pool, tmp_path, ExportRange())

    assert names(tmp_path) == {"mine"}


async def test_a_folder_that_cannot_be_made_is_told_with_what_can_be_done(
    pool: Pool, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(
        ExportRefused, match="file/x cannot be written: Not a directory; name a new"
    ):
        await export(pool, tmp_path / "file" / "x", ExportRange())


async def test_the_example_reads_what_an_account_traded(
    traded: tuple[Json, str], pool: Pool, tmp_path: Path
) -> None:
    account = traded[1]
    await export(pool, tmp_path / "record", ExportRange())
    orders = pl.read_parquet(tmp_path / "record" / "orders.parquet")
    bought = set(orders.filter(pl.col("account") == account)["ticker"])

    run = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, EXAMPLE, tmp_path / "record", account],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert run.returncode == 0, run.stderr
    assert "drawdown" in run.stdout
    assert "get_stock_price" in run.stdout
    assert bought
    assert bought <= set(run.stdout.split())

    reader, writer = os.pipe()
    os.close(reader)
    cut = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, EXAMPLE, tmp_path / "record", account],
        stdout=writer,
        stderr=subprocess.PIPE,
        text=True,
        timeout=60,
        check=False,
    )
    os.close(writer)
    assert (cut.returncode, cut.stderr) == (-signal.SIGPIPE, "")


async def test_on_the_command_line(traded: tuple[Json, str], desk: Desk, tmp_path: Path) -> None:
    deskbus = CommandLine(desk.settings.data_dir, tmp_path)
    cycle_id = traded[0]["cycle_id"]

    done = deskbus(f"export out --cycle {cycle_id} --json")
    short = deskbus(f"export short --cycle {cycle_id[:8]} --json")
    nobody = deskbus("export nobody --cycle 00000000")
    again = deskbus(f"export out --cycle {cycle_id}")
    unknown = deskbus(f"export none --cycle {uuid4()}")
    backwards = deskbus("export days --since 2026-02-02 --until 2026-02-01")

    assert (done.code, done.rows[0]["cycle_id"]) == (0, cycle_id)
    assert pl.read_parquet(tmp_path / "out" / "cycles.parquet").height == 1
    assert (short.code, short.rows[0]["cycle_id"]) == (0, cycle_id)
    assert (nobody.code, "deskbus cycle list" in nobody.err) == (3, True)
    assert (again.code, "not empty" in again.err) == (1, True)
    assert unknown.code == 3
    assert not (tmp_path / "none").exists(), "nothing was written for a cycle that there is not"
    assert backwards.code == 2
