"""A folder to start from: what is in it can be used, and nothing is ever written over."""

from pathlib import Path

import polars as pl
import pytest
import yaml
from typer.testing import CliRunner

from contracts.performance import CANDIDATES
from contracts.study import Study
from contracts.study_score import Foresight, LeakVerdict
from libs.market.exit_terms import terms_in
from libs.market.replay.store import ReplayStore
from libs.runtime.settings import Settings
from libs.study.statistics.canary import CANARY_SESSIONS, LEAK_DEVIATIONS
from libs.study.statistics.choices import seen_ahead
from libs.study.statistics.design import dates_of
from libs.study.statistics.foresight import foresight
from libs.study.statistics.outcomes import outcomes
from libs.study.statistics.record import AssetBars
from services.cli.desk.init import EXAMPLES, FILES, app
from services.cli.studies.command import app as studies


def _init(folder: Path) -> str:
    done = CliRunner().invoke(app, [str(folder)])
    assert done.exit_code == 0, done.output
    return done.output


def test_the_settings_and_the_data_can_be_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = _init(tmp_path / "desk")
    monkeypatch.chdir(tmp_path / "desk")

    assert all(name in shown for name in FILES)
    settings = Settings()
    assert set(settings.schedule.jobs) == {"sell-check", "decide", "report"}
    assert settings.schedule.clock == "replay", "nothing runs by itself before it is asked for"
    assert terms_in(settings.exit_rules_file).of("main", "AAPL").stop_loss is not None
    store = ReplayStore(Path("data"))
    assert (store.label.name, set(store.tickers)) == ("my-data", {*EXAMPLES})


def test_the_study_can_be_run_on_the_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _init(tmp_path)
    monkeypatch.chdir(tmp_path)

    planned = CliRunner().invoke(studies, ["plan", "study.yaml"])

    assert planned.exit_code == 0, planned.output
    assert "rules-or-coin: picks, 40 dates" in planned.output
    assert "note: " not in planned.output, "it shows all that its arms can show"


def test_the_studys_look_ahead_check_sees_its_canary(tmp_path: Path) -> None:
    """On the folder's own prices, with the seed of the file and others that a person may set."""
    _init(tmp_path)
    file = yaml.safe_load((tmp_path / "study.yaml").read_text())
    study = Study.model_validate(file)
    bars = {
        ticker: _bars(pl.read_csv(tmp_path / f"data/{ticker}.csv", try_parse_dates=True))
        for ticker in study.universe
    }
    sessions = bars[study.universe[0]].sessions
    for seed in (study.seed, *range(2, 30)):
        dates = dates_of(study.model_copy(update={"seed": seed}), sessions)
        week = outcomes(dates, study.universe, bars, sessions, CANARY_SESSIONS, CANDIDATES)

        seen = foresight(seen_ahead(week), week, canary_lit=True)

        assert isinstance(seen, Foresight)
        assert seen.verdict is LeakVerdict.LEAKS
        assert seen.deviations > LEAK_DEVIATIONS + 1, "with something to spare"
        assert week.overlap == 1


def _bars(prices: pl.DataFrame) -> AssetBars:
    return AssetBars(
        sessions=tuple(prices["date"].to_list()),
        open=tuple(prices["open"].to_list()),
        close=tuple(prices["close"].to_list()),
    )


def test_what_is_there_is_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "deskbus.toml").write_text("log_level = 'debug'\n")
    shown = _init(tmp_path)

    assert "existed already; not changed" in shown
    assert (tmp_path / "deskbus.toml").read_text() == "log_level = 'debug'\n"
    before = {path: path.read_bytes() for path in tmp_path.rglob("*.*")}
    _init(tmp_path)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*.*")} == before
