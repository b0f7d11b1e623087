"""Exchange rates from a replay directory: as they were known, both ways round, never too old."""

import re
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.types import ExchangeRate
from libs.market.errors import BadReplayData
from libs.market.rates import ReplayRates, mark
from libs.market.replay.market import ReplayMarket, ReplayStore
from libs.quant.exchange import cents_in, purse

D = Decimal
AS_OF = date(2024, 3, 15)
HEADER = "date,pair,rate,known_at"
BARS = "date,open,high,low,close,volume\n2024-03-15,10,10,10,10,1\n"


def rates(folder: Path, *rows: str) -> ReplayRates:
    (folder / "AAA.csv").write_text(BARS)
    (folder / "fx.csv").write_text("\n".join((HEADER, *rows)) + "\n")
    return ReplayRates(ReplayStore(folder))


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


async def told(source: ReplayRates, moment: str, into: str = "USD") -> str:
    found = await source.into(into, at(moment))
    return ", ".join(str(found[currency]) for currency in sorted(found))


async def test_a_rate_is_there_once_it_was_known_and_not_a_moment_before(tmp_path):
    source = rates(tmp_path, "2024-03-14,EURUSD,1.09,2024-03-14T15:00:00Z")
    assert await told(source, "2024-03-14 14:59:59") == ""
    assert await told(source, "2024-03-14 15:00:00") == "EURUSD 1.09 of 2024-03-14"


async def test_a_rate_known_on_a_day_is_known_at_that_sessions_close(tmp_path):
    source = rates(tmp_path, "2024-03-15,EURUSD,1.09,2024-03-15")
    assert await told(source, "2024-03-15 19:59:59") == ""
    assert await told(source, "2024-03-15 20:00:00") == "EURUSD 1.09 of 2024-03-15"


async def test_the_newest_day_counts_and_a_correction_replaces_its_own_day_only(tmp_path):
    source = rates(
        tmp_path,
        "2024-03-14,EURUSD,1.09,2024-03-14T15:00:00Z",
        "2024-03-15,EURUSD,1.10,2024-03-15T15:00:00Z",
        "2024-03-14,EURUSD,9.99,2024-03-15T16:00:00Z",
        "2024-03-15,EURUSD,1.11,2024-03-15T17:00:00Z",
    )
    assert await told(source, "2024-03-15 16:30:00") == "EURUSD 1.1 of 2024-03-15"
    assert await told(source, "2024-03-15 17:00:00") == "EURUSD 1.11 of 2024-03-15"


@pytest.mark.parametrize(
    ("moment", "known"), [("2024-03-21 23:59:59", True), ("2024-03-22", False)]
)
async def test_a_rate_over_seven_days_old_is_none(tmp_path, moment, known):
    source = rates(tmp_path, "2024-03-14,EURUSD,1.09,2024-03-14T15:00:00Z")
    assert bool(await told(source, moment)) is known


async def test_a_pair_serves_both_ways_and_there_are_no_crosses(tmp_path):
    source = rates(
        tmp_path,
        "2024-03-14,EURUSD,1.25,2024-03-14T15:00:00Z",
        "2024-03-14,EURGBP,0.80,2024-03-14T15:00:00Z",
    )
    assert await told(source, "2024-03-15", into="USD") == "EURUSD 1.25 of 2024-03-14"
    assert await told(source, "2024-03-15", into="EUR") == (
        "GBPEUR 1.25 of 2024-03-14, USDEUR 0.8 of 2024-03-14"
    )


async def test_without_a_file_no_rate_is_known(tmp_path):
    (tmp_path / "AAA.csv").write_text(BARS)
    assert await told(ReplayRates(ReplayStore(tmp_path)), "2024-03-15") == ""
    assert await told(ReplayRates(ReplayStore()), "2012-06-29") == ""


async def test_a_row_that_does_not_say_when_it_was_known_is_dropped(tmp_path):
    source = rates(tmp_path, "2024-03-14,EURUSD,1.09,")
    assert await told(source, "2024-03-15") == ""


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ("2024-03-14,EUR/USD,1.09,2024-03-14", "not a pair of currencies"),
        ("2024-03-14,EURUSD,0,2024-03-14", "rate is not between"),
        ("2024-03-14,EURUSD,-1,2024-03-14", "rate is not between"),
        ("2024-03-14,EURUSD,inf,2024-03-14", "rate is 'inf': not a number"),
        ("2024-03-14,EURUSD,,2024-03-14", "rate is empty"),
        ("soon,EURUSD,1.09,2024-03-14", "date is 'soon': not a date"),
        ("2024-03-14,EURUSD,1.09,2024-03-13", "known before its day"),
        ("2024-03-14,EURUSD,1.09,2024-03-13T22:00:00Z", "known before its day"),
    ],
)
async def test_a_bad_row_costs_its_day_and_is_named(tmp_path, row, why):
    source = rates(
        tmp_path, "2024-03-13,EURUSD,1.09,2024-03-13", row, "2024-03-15,EURUSD,1.1,2024-03-15"
    )
    is_undated = row.startswith("soon")  # it may be of any day
    closes = {day: await source.into("USD", at(f"2024-03-{day}T21:00")) for day in (13, 14, 15)}
    known = {day: [rate.rate for rate in found.values()] for day, found in closes.items()}
    assert known[14] == []
    assert known[13] == ([] if is_undated else [D("1.09")])
    assert known[15] == ([] if is_undated else [D("1.1")])
    assert re.search(f"fx.csv, line 3: .*{why}", str(source._store.faults["fx"]))


@pytest.mark.parametrize(
    ("row", "euro", "pound"),
    [
        ("2024-03-14,EURUSD,abc,2024-03-14", None, D("1.27")),
        ("2024-03-14,GBPUSD,abc,2024-03-14", D("1.09"), None),
        ("2024-03-14,USDGBP,abc,2024-03-14", D("1.09"), None),
        ("2024-03-14,EURUSD,1,0912,2024-03-14", D("1.09"), D("1.27")),  # both have that day's
        ("2024-03-15,EURUSD,1,0912,2024-03-15", None, None),  # any pair's
        ("2024-03-18,EURUSD,abc,2024-03-18", D("1.09"), D("1.27")),  # not known yet
        ("2024-03-07,EURUSD,abc,2024-03-07", D("1.09"), D("1.27")),  # a newer one is
    ],
)
async def test_a_bad_row_costs_no_other_pair(tmp_path, row, euro, pound):
    good = ("2024-03-14,EURUSD,1.09,2024-03-14", "2024-03-14,GBPUSD,1.27,2024-03-14")
    into = await rates(tmp_path, row, *good).into("USD", at("2024-03-15T21:00"))
    assert {name: rate.rate for name, rate in into.items()} == {
        name: rate for name, rate in (("EUR", euro), ("GBP", pound)) if rate is not None
    }


@pytest.mark.parametrize(
    ("odd", "place"), [("14/03/2024,EURUSD,1.08,", 0), ("14/03/2024,EURUSD,1.08,", 3)]
)
async def test_a_date_in_another_order_costs_that_rate_alone(tmp_path, odd, place):
    rows = [
        f"03/{day}/2024,{pair},{rate},03/{day}/2024"
        for day, rate in (("13", "1.09"), ("15", "1.1"))
        for pair in ("EURUSD", "GBPUSD")
    ]
    rows.insert(place, odd + "03/14/2024")
    source = rates(tmp_path, *rows)
    closes = {day: await source.into("USD", at(f"2024-03-{day}T21:00")) for day in (13, 14, 15)}
    known = {day: {name: rate.rate for name, rate in of.items()} for day, of in closes.items()}
    both = {name: D("1.09") for name in ("EUR", "GBP")}
    assert known[13] == both
    assert known[14] == {"GBP": D("1.09")}
    assert known[15] == {name: D("1.1") for name in ("EUR", "GBP")}
    (row,) = source._store.bad_rows("fx")
    assert (row.finding.line, row.finding.value) == (place + 2, "14/03/2024")
    assert row.finding.remedy == "write 2024-03-14"


@pytest.mark.parametrize("odd", ['"1,08"', '"0,912"', "$1.08"])
@pytest.mark.parametrize("start", ["1.27", "1.2"])
@pytest.mark.parametrize("place", [0, 2])
async def test_a_rate_that_is_written_in_another_way_costs_itself(tmp_path, odd, place, start):
    rows = [f"2024-03-{day},GBPUSD,{start}{day},2024-03-{day}" for day in (13, 14)]
    rows.insert(place, f"2024-03-14,EURUSD,{odd},2024-03-14")
    source = rates(tmp_path, *rows)
    assert await told(source, "2024-03-14T21:00") == f"GBPUSD {start}14 of 2024-03-14"
    (row,) = source._store.bad_rows("fx")
    assert (row.finding.line, row.finding.column) == (place + 2, "rate")


async def test_rates_with_decimal_commas_are_read(tmp_path):
    source = rates(tmp_path, '2024-03-13,GBPUSD,"1,271",', '2024-03-14,GBPUSD,"1,272",2024-03-14')
    assert await told(source, "2024-03-14T21:00") == "GBPUSD 1.272 of 2024-03-14"


async def test_a_bad_rate_with_the_months_first_costs_its_day_alone(tmp_path):
    rows = [f"03/{day}/2024,EURUSD,{rate}," for day, rate in (("13", "1.09"), ("14", "x"))]
    source = rates(tmp_path, *(f"{row}{row[:10]}" for row in rows))
    assert list(await source.into("USD", at("2024-03-13T21:00"))) == ["EUR"]
    assert list(await source.into("USD", at("2024-03-14T21:00"))) == []


async def test_a_file_of_bad_rows_is_refused_whole(tmp_path):
    source = rates(tmp_path, *(f"2024-03-14,EURUSD,x{n},2024-03-14" for n in range(101)))
    with pytest.raises(BadReplayData, match=r"fx\.csv, line"):
        await told(source, "2024-03-15")


async def test_rates_cut_at_a_moment_are_those_of_the_whole_file_at_it(fixture_store):
    """Point-in-time: what is appended later changes nothing of the past."""
    source, calendar = ReplayRates(fixture_store), fixture_store.calendar
    lines = (Path(__file__).parents[2] / "data/fixture_market/fx.csv").read_text().splitlines()
    by_day = {line.split(",")[0]: line.split(",")[2] for line in lines[1:]}
    for session in calendar.sessions(date(2024, 2, 1), AS_OF):
        rate = (await source.into("USD", calendar.close(session)))["EUR"]
        assert (rate.on, rate.rate) == (session, D(by_day[session.isoformat()]))
        early = (await source.into("USD", calendar.close(session) - timedelta(seconds=1)))["EUR"]
        assert early.on == calendar.previous_session(session)


async def test_a_mark_says_what_a_share_is_worth_abroad_and_at_home(fixture_store):
    market, source = ReplayMarket(fixture_store), ReplayRates(fixture_store)
    known = await source.into("USD", fixture_store.calendar.close(AS_OF))
    abroad = await mark(market, "GOLF.DE", AS_OF, "USD", known)
    assert (abroad.price, abroad.currency) == (D("121.37"), "EUR")
    assert abroad.amount == D("121.37") * D("1.1234")
    assert abroad.foreign is not None
    missing = await mark(market, "GOLF.DE", AS_OF, "USD", {})
    assert (missing.amount, missing.foreign) == (None, None)
    at_home = await mark(market, "GOLF.DE", AS_OF, "EUR", {})
    assert (at_home.amount, at_home.foreign) == (D("121.37"), None)


@given(
    st.decimals(D("0.01"), D(1_000_000), places=2),
    st.decimals(D("0.000001"), D(1_000_000), places=10),
    st.floats(0, 1),
)
def test_what_the_purse_holds_never_costs_more_than_the_cash(cash, rate, share):
    euro = ExchangeRate(currency="EUR", into="USD", rate=rate, on=AS_OF)
    held = purse(cash, euro)
    value = (held * D(share)).quantize(D("0.01"))
    assert 0 <= cents_in(value, euro) + cents_in(held - value, euro) <= cash
    assert purse(cash, None) == cash
