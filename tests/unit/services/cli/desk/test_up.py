"""What `deskbus up` says once the desk takes requests."""

from pathlib import Path

import pytest

from libs.runtime.settings import Settings
from services.cli.desk import up
from services.cli.shell.running import RunningDesk

FIRST = "deskbus cycle request"


@pytest.mark.parametrize("is_new", [True, False])
def test_a_new_desk_says_how_its_first_cycle_is_asked_for(
    is_new: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    desk = RunningDesk(nats_url="nats://127.0.0.1:1", secrets_dir=tmp_path, pid=1)
    up.announce(desk, Settings(market={"replay_dir": tmp_path}), is_new=is_new)

    words = capsys.readouterr().err
    assert "deskbus open, deskbus tail" in words
    assert (f"{FIRST} --wait\n" in words, FIRST in words) == (is_new, is_new)


@pytest.mark.parametrize("in_background", [True, False])
def test_with_a_trading_key_an_account_is_bound_before_its_first_cycle(
    in_background: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    desk = RunningDesk(nats_url="nats://127.0.0.1:1", secrets_dir=tmp_path, pid=1)
    settings = Settings(
        market={"source": "alpaca"},
        alpaca={"trading_key_file": tmp_path / "key"},
        data_dir=tmp_path,
    )
    up.announce(desk, settings, is_new=True, in_background=in_background)

    words = capsys.readouterr().err
    assert "portfolio import" not in words
    assert words.index("deskbus account bind main") < words.index(FIRST)
