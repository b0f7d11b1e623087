"""A person sets a limit: shown on the books of now, asked, on record, in the file."""

import asyncio
import os
import pty
import select
import subprocess
import time
from pathlib import Path

import pytest

from tests.integration.desk.caller import Caller, account_of, wish
from tests.integration.desk.command_line import DESKBUS, CommandLine
from tests.integration.desk.conftest import Desk

PATIENCE_S = 60.0


@pytest.fixture
async def account(user: Caller) -> str:
    asked = wish(as_of="2012-06-29")
    assert (await user.run(asked))["status"] == "completed"
    return account_of(asked)


@pytest.fixture
def deskbus(desk: Desk, tmp_path: Path) -> CommandLine:
    return CommandLine(desk.settings.data_dir, tmp_path)


def typed_in_a_terminal(deskbus: CommandLine, command: str, *answers: str) -> tuple[int, str]:
    """The exit code, and all that a terminal shows; each answer is typed once it is asked for."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*DESKBUS, *command.split()],
        cwd=deskbus.cwd,
        env={**deskbus.environment, "TERM": "dumb"},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    shown, waiting, until = "", list(answers), time.monotonic() + PATIENCE_S
    asked_from = 0
    try:
        while time.monotonic() < until:
            if select.select([ours], [], [], 0.2)[0]:
                try:
                    shown += os.read(ours, 65_536).decode(errors="replace")
                except OSError:  # the other end is closed
                    break
            if waiting and shown[asked_from:].rstrip().endswith(("[y/N]:", "to confirm:")):
                asked_from = len(shown)
                os.write(ours, f"{waiting.pop(0)}\n".encode())
        return process.wait(timeout=PATIENCE_S), shown
    finally:
        process.kill()
        os.close(ours)


async def test_a_tighter_limit_is_shown_asked_once_and_on_record(
    desk: Desk, user: Caller, account: str, deskbus: CommandLine
) -> None:
    file = deskbus.cwd / "deskbus.toml"
    file.write_text("# mine\n[log]\nlevel = 'error'  # quiet\n")
    setting = f"accounts.{account}.limits.position_pct_max"

    said = await asyncio.to_thread(deskbus, f"config set {setting} 1")
    assert said.code == 4, said.err
    assert (said.code, file.read_text()) == (4, "# mine\n[log]\nlevel = 'error'  # quiet\n")
    words = " ".join(said.out.split())
    assert "40% to 1%: tightens the limit" in words
    assert "position size" in words, "the rule that would have cut the newest decision's buys"

    done = await asyncio.to_thread(deskbus, f"config set {setting} 1% --yes")
    assert done.code == 0, done.err
    assert "in force when execution starts the next time" in done.err
    assert file.read_text() == (
        "# mine\n[log]\nlevel = 'error'  # quiet\n"
        f"\n[accounts.{account}.limits]\nposition_pct_max = 1\n"
    )
    async with desk.postgres() as db:
        (row,) = await db.fetch(
            "select type, owner, data from state_events where data ->> 'account' = $1"
            " and type = 'limit_set'",
            account,
        )
    assert row["owner"] == "execution"
    assert '"by": "cli"' in row["data"]

    again = await asyncio.to_thread(deskbus, f"config set {setting} 1 --yes")
    assert again.code == 0
    assert "is 1% already" in again.err
    refused = await asyncio.to_thread(
        lambda: deskbus("config set limits.order_pct_max 1 --yes", DESKBUS_LIMITS_ORDER_PCT_MAX="2")
    )
    assert refused.code == 4
    assert "DESKBUS_LIMITS_ORDER_PCT_MAX in the environment sets limits.order_pct_max" in (
        refused.err
    )
    strange = await asyncio.to_thread(
        deskbus, "config set accounts.no.such.limits.order_pct_max 1 --yes"
    )
    assert (strange.code, "invalid account" in strange.err) == (2, True), strange.err
    file.chmod(0o444)
    kept = await asyncio.to_thread(deskbus, f"config set {setting} 0.5 --yes")
    assert (kept.code, "cannot be written: Permission denied" in kept.err) == (1, True), kept.err
    assert "position_pct_max = 1\n" in file.read_text()
    wide = await asyncio.to_thread(deskbus, "config set limits.order_pct_max 101 --yes")
    assert wide.code == 2
    assert "limits.order_pct_max" in wide.err


def test_a_looser_limit_is_asked_twice_and_only_in_a_terminal(
    deskbus: CommandLine, account: str
) -> None:
    file = deskbus.cwd / "deskbus.toml"
    command = f"config set accounts.{account}.limits.report_sessions 1"
    script = deskbus(f"{command} --yes")
    assert script.code == 4
    assert "must confirm this in a terminal" in script.err
    assert not file.exists()

    code, shown = typed_in_a_terminal(deskbus, f"{command} --yes", "2")
    assert (code, file.exists()) == (4, False), shown
    code, shown = typed_in_a_terminal(deskbus, command, "y", "1")
    assert code == 0, shown
    assert file.read_text() == f"[accounts.{account}.limits]\nreport_sessions = 1\n"
