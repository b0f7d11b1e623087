"""The file with the positions' own rules."""

from decimal import Decimal
from pathlib import Path

import pytest

from libs.market.exit_terms import BadExitTerms, terms_in
from libs.quant.exits.terms import ExitTerms

TOML = """
[default]
stop_pct = 8
basket = ["AAPL", "MSFT"]

[position.AAPL]
stop_price = 95.10

[position.AAPL.stop_loss]
pct = 15

[position."growth/AAPL"]
stop_pct = 4
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "exit_signals.toml"


def test_without_a_file_there_are_momentum_and_regime_and_no_stop(path: Path) -> None:
    assert terms_in(path).of("main", "AAPL") == ExitTerms()


def test_what_concerns_some_positions_is_theirs_by_ticker_and_by_account(path: Path) -> None:
    path.write_text(TOML + "\n[position.IBM]\nstop_pct = 3\n")
    file = terms_in(path)

    assert set(file.only("growth", ["AAPL"]).position) == {"AAPL", "growth/AAPL"}
    assert set(file.only("main", ["AAPL"]).position) == {"AAPL"}


def test_the_most_particular_entry_that_names_something_wins(path: Path) -> None:
    path.write_text(TOML)
    file = terms_in(path)

    assert file.of("main", "IBM").stop_pct == 8
    own = file.of("main", "AAPL")
    assert (own.stop_price, own.stop_pct) == (Decimal("95.10"), None)
    assert own.stop_loss is not None
    assert own.stop_loss.pct == 15
    assert own.basket == ("AAPL", "MSFT")
    other = file.of("growth", "AAPL")
    assert (other.stop_price, other.stop_pct, other.stop_loss) == (None, 4, own.stop_loss)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[position.AAPL]\nstop_los = 3", "did you mean stop_loss?"),
        ("[default.stop_loss]\npct = 0", "default.stop_loss.pct: must be more than 0"),
        ("[default]\nstop_price = 1\nstop_pct = 2", "name stop_price or stop_pct, not both"),
        ("[default]\nstop_pct = nan", "default.stop_pct"),
        ("stop_pct 8", "it is not valid TOML"),
        (
            "[default.hold_period]\nsessions = 0\n[other]",
            "the fields are default, position | default.hold_period.sessions: must be at least 1",
        ),
        ("[default]\na = 1\nb = 1\nc = 1\nd = 1", "(and 1 more)"),
        ("[default]\nbasket = ['no ticker']", "default.basket.0"),
        ("[position.'no ticker']\nstop_pct = 3", "name a position by TICKER or account/TICKER"),
        ("[position.'No Account/AAPL']\nstop_pct = 3", "TICKER or account/TICKER"),
    ],
)
def test_a_file_that_is_wrong_is_refused_and_says_where(path: Path, text: str, told: str) -> None:
    path.write_text(text)
    with pytest.raises(BadExitTerms, match="cannot be used") as caught:
        terms_in(path)
    assert told in caught.value.message


def test_a_file_that_is_no_text_or_no_file_is_refused(path: Path) -> None:
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(BadExitTerms, match="not UTF-8"):
        terms_in(path)
    path.unlink()
    path.mkdir()
    with pytest.raises(BadExitTerms):
        terms_in(path)


def test_tickers_are_meant_in_either_case(path: Path) -> None:
    path.write_text(
        '[position.aapl]\nstop_pct = 3\nbasket = ["msft"]\n[position."growth/ibm"]\nstop_pct = 4'
    )
    file = terms_in(path)

    assert file.of("main", "AAPL").stop_pct == 3
    assert file.of("main", "AAPL").basket == ("MSFT",)
    assert file.of("growth", "IBM").stop_pct == 4


def test_a_mistyped_name_is_told_before_the_one_that_is_missing_by_it(tmp_path: Path) -> None:
    file = tmp_path / "exit_signals.toml"
    file.write_text("[default.trailing_stop]\npercent = 8\n")
    with pytest.raises(BadExitTerms, match="percent"):
        terms_in(file)
