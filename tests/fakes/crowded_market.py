"""The made-up market of tests/data with more shares than a digest has room for."""

import csv
import shutil
from collections.abc import Callable, Sequence
from datetime import date
from functools import partial
from pathlib import Path

from tests.data.fixture_market.make_fixture import HERE, SESSIONS

AS_OF, LATER = date(2024, 3, 15), date(2024, 3, 19)
LAST_RATE = "2024-03-11"
"""The only day of an exchange rate: known at AS_OF, too old at LATER."""
GAINERS = [f"UP{number}" for number in range(10)]
LOSERS = [f"DN{number}" for number in range(10)]
ACTIVE = [f"AC{number}" for number in range(10)]
REPORTING = ["RE0", "RE1", "RE2"]
"""Names that only the earnings calendar has: neither moved nor traded nor written about."""
RISEN, FALLING = ACTIVE[0], ACTIVE[1]
"""RISEN has a price with cents at AS_OF; FALLING loses a third on LATER."""
TWINS = (RISEN, FALLING)
"""Two share classes of one issuer."""
TINY = GAINERS[0]
"""One tick of its price is more than 1 % of it."""

Close = Callable[[int], float]


def make(folder: Path) -> None:
    """Write all files; the fixture's own stay as they are, but for one report date and the rates.

    Each list of the screener is full of names that nobody else has. ECHO's report is taken out, so
    that a slot that is kept for earnings is left to a name that only the calendar has. There is one
    exchange rate, of LAST_RATE.
    """
    shutil.copytree(HERE, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("*.py", "__*"))
    day = SESSIONS.index(AS_OF)
    for place, ticker in enumerate(GAINERS):
        base = 0.00005 if ticker == TINY else 50
        rise, places = 6 - place * 0.2, 10 if ticker == TINY else 2
        _share(folder, ticker, partial(_rising, base, rise, day), places=places)
    for place, ticker in enumerate(LOSERS):
        _share(folder, ticker, lambda n, down=6 - place * 0.2: 50 * (1 - down / 100 * (n >= day)))
    for ticker in ACTIVE:
        _share(folder, ticker, _path(ticker), volume=90_000_000)
    for ticker in REPORTING:
        _share(folder, ticker, lambda _: 50.0)
    head, *known = _rows(folder / "sectors.csv")
    own = {
        "name": "Twins",
        "sector": "Twins",
        "exchange": "XNYS",
        "currency": "USD",
        "country": "US",
    }
    twins = [[{**own, "ticker": ticker}[name] for name in head] for ticker in TWINS]
    rows = [[*head, "issuer"], *([*row, ""] for row in known), *([*row, "Twins"] for row in twins)]
    _write(folder / "sectors.csv", rows)
    rates = _rows(folder / "fx.csv")
    _write(folder / "fx.csv", [row for row in rates if row[0] in {"date", LAST_RATE}])
    rows = [row for row in _rows(folder / "earnings.csv") if row[0] != "ECHO"]
    rows += [[ticker, "2024-03-01", "2024-03-31", "2024-03-20", "0.10", ""] for ticker in REPORTING]
    _write(folder / "earnings.csv", rows)


def _rising(base: float, rise_pct: float, day: int, number: int) -> float:
    return base * (1 + rise_pct / 100 * (number >= day))


def _path(ticker: str) -> Close:
    if ticker == RISEN:
        return lambda n: 40.3 * 1.004 ** (n - SESSIONS.index(AS_OF))
    if ticker == FALLING:
        return lambda n: 40.0 if SESSIONS[n] < LATER else 26.0
    return lambda _: 40.0


def _share(folder: Path, ticker: str, close: Close, volume: int = 1_000, places: int = 2) -> None:
    rows: list[Sequence[object]] = [["date", "open", "high", "low", "close", "volume"]]
    for number, session in enumerate(SESSIONS):
        price = f"{close(number):.{places}f}"
        rows.append([session, price, price, price, price, volume])
    _write(folder / f"{ticker}.csv", rows)


def _rows(path: Path) -> list[list[str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


def _write(path: Path, rows: Sequence[Sequence[object]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows(rows)
