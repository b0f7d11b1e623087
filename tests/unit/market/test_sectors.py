"""The table of sectors: whole, in order, and with the sectors that requests can name."""

import itertools

from libs.market.sectors import TABLE, sector_of

SECTORS = {
    "Communication Services",
    "Consumer Discretionary",
    "Consumer Staples",
    "Energy",
    "Financials",
    "Health Care",
    "Industrials",
    "Information Technology",
    "Materials",
    "Real Estate",
    "Utilities",
}


def rows() -> list[tuple[int, int, str]]:
    lines = TABLE.read_text(encoding="utf-8").splitlines()
    cells = [line.split(",") for line in lines if not line.startswith("#")]
    return [(int(first), int(last), sector) for first, last, sector in cells]


def test_ranges_ascend_and_do_not_overlap() -> None:
    ends = [(first, last) for first, last, _ in rows()]
    assert all(first <= last for first, last in ends)
    assert all(before[1] < after[0] for before, after in itertools.pairwise(ends))
    assert {sector for _, _, sector in rows()} == SECTORS


def test_codes_are_in_the_sector_of_their_title() -> None:
    known = {
        1311: "Energy",  # crude petroleum and natural gas
        2834: "Health Care",  # pharmaceutical preparations
        2911: "Energy",  # petroleum refining
        3571: "Information Technology",  # electronic computers
        3674: "Information Technology",  # semiconductors
        3711: "Consumer Discretionary",  # motor vehicles
        3721: "Industrials",  # aircraft
        4813: "Communication Services",  # telephone
        4911: "Utilities",  # electric services
        5331: "Consumer Staples",  # variety stores
        5812: "Consumer Discretionary",  # eating places
        6022: "Financials",  # state commercial banks
        6324: "Health Care",  # hospital and medical service plans
        6798: "Real Estate",  # real estate investment trusts
        7372: "Information Technology",  # prepackaged software
        8731: "Health Care",  # commercial physical and biological research
    }
    assert {code: sector_of(code) for code in known} == known
    for none in (0, 99, 6770, 9995, 10_000):
        assert sector_of(none) == ""
