"""What `deskbus up` and `doctor` say of market files that cannot be used."""

from pathlib import Path

import pytest

from libs.runtime.settings import Settings
from services.cli.desk import up
from services.cli.operating.checks import CheckVerdict
from services.cli.operating.market_files import ALL, market_files, market_note
from services.cli.shell.running import RunningDesk

GOOD = "date,open,high,low,close,volume\n2012-06-29,1,1,1,1,1\n"
NO_HIGH = "date,open,low,close,volume\n2012-06-29,1,1,1,1\n"


def folder(path: Path, **files: str) -> Settings:
    for name, text in files.items():
        (path / f"{name}.csv").write_text(text)
    return Settings(market={"replay_dir": path})


async def test_a_refused_file_is_named_with_the_command_that_looks_again(tmp_path: Path) -> None:
    (note,) = await market_note(folder(tmp_path, AAA=NO_HIGH, BBB=NO_HIGH))

    why, _, what_to_do = note.rpartition("; ")
    assert why.startswith("market files that cannot be used: AAA.csv, line 1: no column high; ")
    assert what_to_do == "`deskbus check` shows all files"


async def test_nothing_is_said_of_files_that_can_be_used_or_are_not_ones_own(
    tmp_path: Path,
) -> None:
    assert await market_note(folder(tmp_path, AAA=GOOD)) == ()
    assert await market_note(Settings()) == ()
    assert await market_files(folder(tmp_path, AAA=GOOD)) == ()


async def test_a_refused_file_is_a_problem_for_doctor(tmp_path: Path) -> None:
    (check,) = await market_files(folder(tmp_path, AAA=NO_HIGH))
    assert (check.verdict, check.todo) == (CheckVerdict.PROBLEM, ALL)
    assert check.said == "AAA.csv, line 1: no column high; add it to the header"


def test_it_stands_under_the_place_of_a_desk_that_is_up(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    desk = RunningDesk(nats_url="nats://127.0.0.1:1", secrets_dir=tmp_path, pid=1)
    up.announce(desk, Settings(), notes=["no market data: AAA.csv"], in_background=True)

    words = capsys.readouterr().err
    assert (
        words.index("keys") < words.index("no market data: AAA.csv") < words.index("deskbus open")
    )


async def test_files_that_were_not_looked_at_in_time_are_no_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("services.cli.operating.market_files.LOOK_S_MAX", 0.0)
    settings = folder(tmp_path, AAA=GOOD)
    (tmp_path / "AAA (1).csv").write_text(GOOD)
    note, ignored = await market_note(settings)
    assert note.startswith("not all market files were checked within")
    assert "AAA (1).csv" in ignored, "a name is enough for that"
    (check,) = await market_files(settings)
    assert check.verdict is CheckVerdict.OK
