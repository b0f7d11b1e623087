"""Exchange rates live: a day's rate is known when that day has ended in London."""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from libs.market.errors import CryptoNotSupported
from libs.market.rates import ReplayRates
from libs.market.recording import Recorder, TickerRecording
from libs.market.replay.market import ReplayStore
from libs.market.yahoo import rates as yahoo_rates
from libs.market.yahoo.rates import YahooRates
from tests.fakes.yahoo_live import AS_OF, Live

CLOSE = datetime(2024, 3, 15, 20, tzinfo=UTC)


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    told: list[str] = []

    class Log:
        def warning(self, event: str, **named: object) -> None:
            told.append(f"{event} {named['pair']} {named['why']}")

    monkeypatch.setattr(yahoo_rates, "log", Log())
    return told


async def test_the_rate_at_the_close_is_that_of_the_day_before(live: Live) -> None:
    rates = await YahooRates(live.feed, ["USD", "EUR"]).into("USD", CLOSE)
    assert set(rates) == {"EUR"}
    assert (rates["EUR"].on, rates["EUR"].into) == (date(2024, 3, 14), "USD")
    truth = {row.day: row.close for row in live.server.market.companies["EURUSD=X"].rows}
    assert rates["EUR"].rate == Decimal(repr(truth[date(2024, 3, 14)]))


async def test_the_days_rate_counts_from_midnight_in_london(live: Live) -> None:
    live.at(datetime(2024, 3, 16, 12, tzinfo=UTC))
    rates = YahooRates(live.feed, ["EUR"])
    midnight = datetime(2024, 3, 16, tzinfo=UTC)
    before = (await rates.into("USD", midnight - timedelta(seconds=1)))["EUR"]
    after = (await rates.into("USD", midnight))["EUR"]
    assert (before.on, after.on) == (date(2024, 3, 14), AS_OF)


async def test_an_old_rate_is_none_and_a_pair_that_yahoo_lacks_is_left_out(
    live: Live, quiet: list[str]
) -> None:
    rows = live.server.market.companies["EURUSD=X"].rows
    live.server.market.companies["EURUSD=X"].rows = [
        row for row in rows if row.day < date(2024, 3, 7)
    ]
    assert await YahooRates(live.feed, ["EUR", "XXX"]).into("USD", CLOSE) == {}
    assert quiet == ["market.rate_missing XXXUSD unknown_ticker"]


async def test_no_answer_leaves_the_pair_out_and_the_log_says_so(
    live: Live, quiet: list[str]
) -> None:
    live.server.fails("EURUSD", status=500, body="")
    assert await YahooRates(live.feed, ["EUR"]).into("USD", CLOSE) == {}
    assert quiet == ["market.rate_missing EURUSD source_unavailable"]


async def test_rates_of_the_past_are_asked_as_they_were(live: Live) -> None:
    rates = YahooRates(live.feed, ["EUR"])
    then = datetime(2023, 6, 15, 20, tzinfo=UTC)
    assert (await rates.into("USD", then))["EUR"].on == date(2023, 6, 14)


async def test_a_pair_is_no_share_that_trades(live: Live) -> None:
    with pytest.raises(CryptoNotSupported):
        await live.market.bars("EURUSD=X", AS_OF, 1)


async def test_recorded_rates_are_the_live_ones(live: Live, tmp_path: Path) -> None:
    told: list[TickerRecording] = []
    folder = tmp_path / "r"
    await Recorder(live.market, folder, tell=told.append).run(["GOLF.DE"], date(2023, 1, 3))
    assert [each.ticker for each in told] == ["GOLF.DE", "(EURUSD)"]
    live_rates = YahooRates(live.feed, ["EUR"])
    recorded = ReplayRates(ReplayStore(folder))
    for at in (CLOSE, CLOSE - timedelta(days=100), datetime(2023, 2, 1, 15, tzinfo=UTC)):
        assert await recorded.into("USD", at) == await live_rates.into("USD", at)
