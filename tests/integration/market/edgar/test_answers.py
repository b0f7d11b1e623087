"""What EDGAR knows at a close, and which of its answers are asked for again."""

import random
from collections.abc import Callable
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest

from libs.market.asking import their_clock
from libs.market.edgar import feed
from libs.market.errors import (
    BadVendorData,
    ContactMissing,
    CryptoNotSupported,
    MarketError,
    NothingTraded,
    NotInSource,
    SourceUnavailable,
)
from tests.fakes.edgar_live import AMENDED, AS_OF, BEFORE, FIRST, EdgarLive, edgar_source
from tests.fakes.edgar_server import Company, StandIn, row

FACTS = "/api/xbrl/companyfacts/"


async def test_a_restatement_is_known_when_it_was_filed_and_not_before(edgar: EdgarLive) -> None:
    before = await edgar.feed.reported("AAPL", BEFORE)
    after = await edgar.feed.reported("AAPL", AS_OF)
    assert {(fact.accession, fact.value) for fact in before} == {(FIRST, 6.29)}
    assert {(fact.accession, fact.value) for fact in after} == {(FIRST, 6.29), (AMENDED, 9.08)}


async def test_filings_of_older_files_are_there_and_none_of_later_than_the_close(
    edgar: EdgarLive,
) -> None:
    known = await edgar.feed.filings("AAPL", BEFORE)
    assert [filing.form for filing in known] == ["10-K", "8-K", "10-K"]
    assert known[0].filed == date(2008, 11, 5)
    assert all(filing.known_at <= edgar.feed.calendar.close(BEFORE) for filing in known)


async def test_older_files_that_the_question_does_not_reach_are_not_asked_for(
    edgar: EdgarLive,
) -> None:
    old = [row("0000000000-01-000001", "10-K", "2001-02-01", "2001-02-01T21:10:00.000Z")]
    edgar.server.companies[0].older["CIK0000320193-submissions-002.json"] = old
    await edgar.feed.filings("AAPL", AS_OF)
    assert edgar.server.count("submissions-001") == 1
    assert edgar.server.count("submissions-002") == 0


async def test_both_share_classes_find_the_one_company_with_one_question(
    edgar: EdgarLive,
) -> None:
    first = await edgar.feed.reported("GOOG", AS_OF)
    second = await edgar.feed.reported("GOOGL", AS_OF)
    assert [fact.value for fact in first] == [fact.value for fact in second] == [7.0]
    assert (first[0].ticker, second[0].ticker) == ("GOOG", "GOOGL")
    assert edgar.server.count(FACTS) == edgar.server.count("/submissions/") == 1


async def test_a_company_without_xbrl_has_filings_and_no_figures(edgar: EdgarLive) -> None:
    assert [filing.form for filing in await edgar.feed.filings("SPY", AS_OF)] == ["8-K"]
    with pytest.raises(NotInSource, match=r"figures of SPY.*none in XBRL"):
        await edgar.feed.reported("SPY", AS_OF)
    with pytest.raises(NotInSource):
        await edgar.feed.reported("SPY", AS_OF)
    assert edgar.server.count(FACTS) == 1


async def test_reports_from_before_xbrl_are_told_as_that_and_not_as_nothing_reported(
    edgar: EdgarLive,
) -> None:
    earlier = date(2009, 10, 27)  # its first report with figures came after that close
    assert [filing.form for filing in await edgar.feed.filings("AAPL", earlier)] == ["10-K", "8-K"]
    with pytest.raises(NotInSource, match=r"figures of AAPL at 2009-10-27.*is in XBRL"):
        await edgar.feed.reported("AAPL", earlier)


async def test_a_company_that_reports_by_other_rules_has_no_figures(edgar: EdgarLive) -> None:
    edgar.server.companies[2].states(
        "Revenue", 1, "0000884394-09-000001", "2009-09-30", "2009-12-01", taxonomy="ifrs-full"
    )
    with pytest.raises(NotInSource, match="US-GAAP"):
        await edgar.feed.reported("SPY", AS_OF)


async def test_a_ticker_that_changed_is_found_by_the_new_one_or_by_its_number(
    edgar: EdgarLive, tmp_path: Path
) -> None:
    edgar.server.companies[0].tickers = ["APPL"]
    with pytest.raises(NotInSource, match="DESKBUS_EDGAR_CIKS"):
        await edgar.feed.filings("AAPL", AS_OF)
    assert await edgar.feed.filings("APPL", AS_OF)
    edgar.others.append(edgar_source(edgar.server, tmp_path, ciks={"aapl": 320193}))
    asked = edgar.server.count("company_tickers")
    found = await edgar.others[0].feed.filings("AAPL", AS_OF)
    assert {each.ticker for each in found} == {"AAPL"}
    assert edgar.server.count("company_tickers") == asked


async def test_a_share_class_is_written_with_a_dash_there(edgar: EdgarLive) -> None:
    edgar.server.companies.append(Company(1067983, ["BRK-B"]))
    assert await edgar.feed.filings("BRK.B", AS_OF) == ()


async def test_without_a_contact_nothing_is_asked_and_the_setting_is_named(
    edgar: EdgarLive, tmp_path: Path
) -> None:
    edgar.others.append(edgar_source(edgar.server, tmp_path, contact=None))
    for ask in (edgar.others[0].feed.filings, edgar.others[0].feed.reported):
        with pytest.raises(ContactMissing, match="DESKBUS_EDGAR_CONTACT"):
            await ask("AAPL", AS_OF)
    assert edgar.server.asked == []


async def test_a_session_that_is_not_over_is_refused(edgar: EdgarLive) -> None:
    edgar.now[0] = datetime(2010, 1, 26, 20, 59, tzinfo=UTC)
    with pytest.raises(NothingTraded, match="use 2010-01-25 or an earlier"):
        await edgar.feed.filings("AAPL", AS_OF)


async def test_a_machine_whose_clock_is_ahead_of_edgar_gets_no_filings(
    edgar: EdgarLive, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(their_clock, "AHEAD_S_MAX", -60.0)
    with pytest.raises(SourceUnavailable, match="set the clock right"):
        await edgar.feed.filings("AAPL", AS_OF)


async def test_crypto_is_refused_unasked(edgar: EdgarLive) -> None:
    with pytest.raises(CryptoNotSupported):
        await edgar.feed.filings("BTC-USD", AS_OF)
    assert edgar.server.asked == []


async def test_an_answer_serves_the_sessions_before_it_and_not_those_after(
    edgar: EdgarLive,
) -> None:
    for day in (AS_OF, BEFORE, AS_OF):
        await edgar.feed.reported("AAPL", day)
    assert edgar.server.asked.count("/submissions/CIK0000320193.json") == 1
    edgar.now[0] = datetime(2010, 1, 27, 22, 0, tzinfo=UTC)
    await edgar.feed.reported("AAPL", date(2010, 1, 27))
    assert edgar.server.asked.count("/submissions/CIK0000320193.json") == 2
    assert edgar.server.count(FACTS) == 1, "nothing was reported since"


async def test_figures_are_asked_for_again_when_a_report_was_filed_since(
    edgar: EdgarLive,
) -> None:
    await edgar.feed.reported("AAPL", AS_OF)
    apple = edgar.server.companies[0]
    apple.files("0001193125-10-020000", "10-Q", "2010-01-27", "2010-01-27T20:30:00.000Z")
    apple.states("SalesRevenueNet", 3, "0001193125-10-020000", "2009-12-26", "2010-01-27")
    edgar.now[0] = datetime(2010, 1, 27, 22, 0, tzinfo=UTC)
    newest = await edgar.feed.reported("AAPL", date(2010, 1, 27))
    assert "0001193125-10-020000" in {fact.accession for fact in newest}
    assert edgar.server.count(FACTS) == 2


async def test_the_pages_read_for_one_question_are_bounded(
    edgar: EdgarLive, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed, "OLDER_MAX", 2)
    for number in range(2, 6):
        edgar.server.companies[0].older[f"CIK0000320193-submissions-{number:03}.json"] = [
            row(f"0000000000-09-{number:06}", "8-K", "2009-02-02", "2009-02-02T21:10:00.000Z")
        ]
    await edgar.feed.filings("AAPL", AS_OF)
    assert edgar.server.count("-submissions-") == 2


# --- JSON of another shape ----------------------------------------------------------------------


def answers(monkeypatch: pytest.MonkeyPatch, change: Callable[[str, Any], Any]) -> None:
    """Let the stand-in answer what `change` makes of each page (its path, its JSON)."""
    true = StandIn._page
    monkeypatch.setattr(StandIn, "_page", lambda self, path: change(path, true(self, path)))


def broken(page: Any, what: str) -> Any:
    match what:
        case "filings are a list":
            page["filings"]["recent"] = []
        case "a number for a column":
            page["filings"]["recent"]["form"] = 7
        case "a column is shorter":
            page["filings"]["recent"]["filingDate"].pop()
        case "a column is gone":
            del page["filings"]["recent"]["acceptanceDateTime"]
        case "days are written otherwise":
            recent = page["filings"]["recent"]
            recent["filingDate"] = ["10/27/2009" for _ in recent["filingDate"]]
        case "a number for the older files":
            page["filings"]["files"] = 7
    return page


@pytest.mark.parametrize(
    "what",
    [
        "filings are a list",
        "a number for a column",
        "a column is shorter",
        "a column is gone",
        "days are written otherwise",
        "a number for the older files",
    ],
)
async def test_filings_of_another_shape_are_an_error_and_never_none(
    edgar: EdgarLive, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    answers(
        monkeypatch,
        lambda path, page: broken(page, what) if path.endswith("/CIK0000320193.json") else page,
    )
    with pytest.raises(BadVendorData, match="filings of AAPL"):
        await edgar.feed.filings("AAPL", AS_OF)


async def test_figures_of_which_none_can_be_read_are_an_error_and_never_none(
    edgar: EdgarLive, monkeypatch: pytest.MonkeyPatch
) -> None:
    for figure in edgar.server.companies[0].facts["us-gaap"]["EarningsPerShareDiluted"]["units"][  # type: ignore[index]
        "USD/shares"
    ]:
        figure["val"] = str(figure["val"])
    with pytest.raises(BadVendorData, match="figures of AAPL"):
        await edgar.feed.reported("AAPL", AS_OF)


async def test_a_list_of_tickers_of_which_none_can_be_read_does_not_make_them_unlisted(
    edgar: EdgarLive, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers(monkeypatch, lambda path, page: {"0": {}} if "tickers" in path else page)
    with pytest.raises(BadVendorData, match="list of tickers"):
        await edgar.feed.filings("AAPL", AS_OF)


ODD = (None, 0, -1, 1e18, "", "x", [], {}, [1], {"a": 1}, True, "2010-13-45")


def mangled(node: Any, draw: random.Random) -> Any:
    """The page with a few of its parts lost or replaced."""
    if draw.random() < 0.03:
        return draw.choice(ODD)
    if isinstance(node, dict):
        return {key: mangled(item, draw) for key, item in node.items() if draw.random() > 0.01}
    if isinstance(node, list):
        return [mangled(item, draw) for item in node if draw.random() > 0.01]
    return node


async def test_whatever_the_json_is_like_the_answer_is_right_or_a_typed_error(
    edgar: EdgarLive, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    true = {(fact.accession, fact.value) for fact in await edgar.feed.reported("AAPL", AS_OF)}
    draw = random.Random(19)
    answers(monkeypatch, lambda _, page: mangled(page, draw))
    for number in range(30):
        live = edgar_source(edgar.server, tmp_path / str(number))
        edgar.others.append(live)
        try:
            told = {
                (fact.accession, fact.value) for fact in await live.feed.reported("AAPL", AS_OF)
            }
        except MarketError:
            continue
        replaced = {value for value in ODD if isinstance(value, int | float)}
        assert {(accession, value) for accession, value in told if value not in replaced} <= true
