"""The session that a run decides on where none is named."""

import csv
from datetime import date

from libs.market.calendar import exchange_calendar
from libs.market.replay.layout import SAMPLE_DIR
from services.cli.shell.request_options import AS_OF_CHOSEN, AS_OF_DEFAULT


def test_it_is_the_first_session_after_the_samples_newest_filing_and_says_so() -> None:
    with (SAMPLE_DIR / "filings.csv").open(encoding="utf-8", newline="") as file:
        newest = max(csv.DictReader(file), key=lambda row: row["filed"])

    first = exchange_calendar().next_session(date.fromisoformat(newest["filed"]))
    assert first.isoformat() == AS_OF_DEFAULT
    assert f"({newest['form']} of {newest['ticker']}, {newest['filed']})" in AS_OF_CHOSEN
