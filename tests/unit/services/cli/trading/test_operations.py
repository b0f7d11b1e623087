"""One operation, as it is shown: a screen or two of what went in and came out, or all of it."""

from datetime import UTC, datetime
from uuid import UUID

import pytest

from contracts.operation import (
    CallKind,
    JournalEntry,
    OperationStatus,
    OperationView,
    Sent,
    SentText,
)
from services.cli.render.described import write_screen
from services.cli.shell.terminal import out
from services.cli.trading.operations import SHORT_LINES, Whole, _screen, _tell_full

ID = UUID(int=7)
NODE = OperationView(
    op_id=ID,
    cycle_id=ID,
    pipeline="rules",
    state="assessing",
    name="assess",
    type="agent_assessment",
    status=OperationStatus.COMPLETED,
    created_at=datetime(2012, 6, 29, tzinfo=UTC),
)
DAYS = 3_000


def test_a_command_of_thousands_of_lines_is_shown_by_its_first_ones(
    capsys: pytest.CaptureFixture[str],
) -> None:
    curve = {"equity": list(range(DAYS))}
    whole = Whole(found=True, operation=NODE, command=curve)
    write_screen(_screen(whole, full=False), out())
    _tell_full(NODE)

    shown, words = capsys.readouterr()
    assert len(shown.splitlines()) < SHORT_LINES + 10
    assert f"… {DAYS + 4 - SHORT_LINES:,} more lines" in shown
    assert "deskbus operations show 00000000 --full" in words


def test_in_full_nothing_is_cut_and_no_line_ends_with_blanks(
    capsys: pytest.CaptureFixture[str],
) -> None:
    curve = {"equity": list(range(DAYS))}
    bars = {"bars": [f"bar-{n}" for n in range(DAYS)], "escape": "\x1b[2J"}
    read = JournalEntry(
        index=0,
        kind=CallKind.READ,
        name="bars",
        request_sha256="0" * 64,
        request={"tickers": [f"T{n}" for n in range(200)]},
        reply=bars,
    )
    model = read.model_copy(update={"index": 1, "kind": CallKind.MODEL, "name": "rules:rules"})
    sent = {1: Sent(texts=(SentText(role="system", text="Be brief.\n" + "word " * 400),))}
    whole = Whole(
        found=True, operation=NODE, command=curve, result=curve, journal=(read, model), sent=sent
    )
    write_screen(_screen(whole, full=True), out())

    shown, words = capsys.readouterr()
    text = "".join(shown.split())
    for part in (*(f'"bar-{n}"' for n in range(DAYS)), *(f'"T{n}"' for n in range(200))):
        assert part in text
    assert shown.count(f"{DAYS - 1}\n") == 2, "result and command to their last line"
    assert "…" not in shown
    assert "more lines" not in shown
    assert "\x1b" not in shown
    assert [line for line in shown.splitlines() if line != line.rstrip()] == []
    assert words == ""
