"""The committed table of European names, and how it is made."""

from libs.market.european_names import TABLE, european_names, table_lines
from libs.market.symbols import venue_of


def test_every_row_is_a_listing_of_a_european_exchange_and_sorted() -> None:
    rows = [line for line in TABLE.read_text(encoding="utf-8").splitlines() if line[0] != "#"]
    tickers = [each.ticker for each in european_names()]
    assert len(tickers) == len(rows) == 400
    assert tickers == sorted(set(tickers))
    assert all(each.name.strip() == each.name != "" for each in european_names())


def test_a_suffix_names_the_exchange_and_a_share_class_does_not() -> None:
    found = venue_of("GOLF.DE")
    assert found is not None
    assert (found.exchange, found.country, found.currency) == ("XETR", "DE", "EUR")
    assert venue_of("BRK.B") is None
    assert venue_of("DE") is None


def test_the_table_is_made_of_home_listings_in_one_line_each() -> None:
    indices = {
        "one": {
            "companies": [
                {"name": "Zeta, Works\n SA", "symbol": "ZET.PA", "symbols": [{"yahoo": "ZZZ.L"}]},
                {"name": "Alpha", "symbol": "ALP.DE"},
                {"name": "Home", "symbol": "HOME"},
                {"name": "Nameless", "symbol": None},
            ]
        },
        "two": {"companies": [{"name": "Alpha", "symbol": "ALP.DE"}]},
    }
    assert table_lines(indices) == ["ALP.DE,Alpha", "ZET.PA,Zeta Works SA"]
