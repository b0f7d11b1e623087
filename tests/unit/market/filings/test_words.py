from datetime import UTC, date, datetime

import pytest

from libs.market.filings.reported import Filing
from libs.market.filings.words import filing_text


@pytest.mark.parametrize(
    ("form", "items", "text"),
    [
        ("8-K", ("2.02", "9.01"), "8-K: 2.02 results of a period"),
        (
            "8-K",
            ("1.01", "5.02"),
            "8-K: 1.01 an important contract; 5.02 a director or officer came or left",
        ),
        ("8-K", ("9.01",), "8-K: 9.01 exhibits"),
        ("8-K", ("12",), "8-K: 12 an item of its own"),
        ("8-K/A", ("4.02",), "8-K/A: 4.02 earlier accounts cannot be relied on"),
        ("10-K", (), "10-K: annual report on the period to 2009-12-31"),
        ("10-Q/A", (), "10-Q/A: amended quarterly report on the period to 2009-12-31"),
        ("DEFA14A", (), "DEFA14A: filing on the period to 2009-12-31"),
    ],
)
def test_a_filing_is_told_in_words_of_the_desks_own(
    form: str, items: tuple[str, ...], text: str
) -> None:
    known = datetime(2010, 2, 1, 12, tzinfo=UTC)
    filing = Filing("ACME", "1", form, date(2010, 2, 1), known, date(2009, 12, 31), items)
    assert filing_text(filing) == text
