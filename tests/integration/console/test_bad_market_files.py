"""The pages name the market files that cannot be used."""

from datetime import date
from pathlib import Path

from libs.market.sources import begin_data
from libs.postgres.pool import PoolConnection
from libs.runtime.settings import Settings
from tests.integration.console.over_http import client_of, serving

TITLE = "Market files that cannot be used"
PRICES = "date,open,high,low,close,volume\n2024-01-02,10,11,9,10.5,1000\n"
ACCOUNT = "bad-files"


async def test_the_overview_and_the_page_of_a_ticker_name_its_bad_file(
    settings: Settings, db: PoolConnection, tmp_path: Path
) -> None:
    await db.execute(
        "insert into accounts (account, currency, starting_cash, opened_on, clock, limits)"
        " values ($1, 'USD', 1000, $2, $2, '{}')",
        ACCOUNT,
        date(2024, 1, 2),
    )
    folder = tmp_path / "prices"
    folder.mkdir()
    (folder / "GOOD.csv").write_text(PRICES)
    (folder / "BAD.csv").write_text(PRICES.replace("10.5", "null"))
    own = settings.changed(market={"replay_dir": folder}, data_dir=tmp_path / "desk")
    await begin_data(own)
    async with serving(own) as url, client_of(url) as http:
        overview = (await http.get("/")).text
        bad, good = [
            (await http.get(f"/tickers/{ticker}?account={ACCOUNT}")).text
            for ticker in ("BAD", "GOOD")
        ]
        for page in (overview, bad):
            table = page.partition(TITLE)[2].partition("</table>")[0]
            for text in ("BAD.csv", ">2<", ">close<", ">null<", "not used"):
                assert text in table
        assert "GOOD.csv" not in overview
        assert good.count("Prices")
        assert TITLE not in good
    await db.execute("delete from accounts where account = $1", ACCOUNT)
