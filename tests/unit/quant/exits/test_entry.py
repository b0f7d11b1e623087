"""How exit rules judge what is bought now: as a check would that looks at it right afterwards."""

from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from libs.market import exit_terms
from libs.market.calendar import exchange_calendar
from libs.market.exit_terms import BadExitTerms, DeskExitRules, terms_in
from libs.market.exits import AccountExits, exits_at_entry
from libs.market.sources import market_of
from libs.quant.exits.entry import signals_at_entry
from libs.quant.exits.history import PriceHistory
from libs.quant.exits.terms import ExitTerms, TermsFile
from libs.runtime.settings import Settings
from tests.fakes.log_lines import log_lines

SOON_S = 0.2
"""How long rules rest here before they are read, instead of 2 s."""

AS_OF, NEXT = date(2012, 6, 29), date(2012, 7, 2)
SESSIONS = exchange_calendar("XNYS").sessions
RISING, TURNED = (0.01, 0.02, 0.03, 0.04), (0.04, 0.03, 0.02, -0.01)

PCT = st.one_of(st.none(), st.floats(0.0001, 99))
GAIN = st.one_of(st.none(), st.floats(0.0001, 10_000))
COUNT = st.one_of(st.none(), st.integers(1, 10_000))


def signals(months: tuple[float, ...], terms: ExitTerms, close: float = 100.0) -> dict[str, bool]:
    history = PriceHistory(months=months, close=close, peak=close)
    found = signals_at_entry("AAA", AS_OF, NEXT, terms, history, SESSIONS)
    return {signal.rule: signal.triggered for signal in found}


@settings(deadline=None)
@given(
    loss=PCT, trail=PCT, gain=GAIN, count=COUNT, close=st.floats(0.0001, 1e6), primary=st.booleans()
)
def test_a_rule_that_measures_from_the_purchase_never_fires_on_it(
    loss: float | None,
    trail: float | None,
    gain: float | None,
    count: int | None,
    close: float,
    primary: bool,
) -> None:
    asked = {
        "stop_loss": ("pct", loss),
        "trailing_stop": ("pct", trail),
        "take_profit": ("pct", gain),
        "hold_period": ("sessions", count),
    }
    named = {
        rule: {name: value, "primary": primary}
        for rule, (name, value) in asked.items()
        if value is not None
    }
    found = signals(RISING, ExitTerms.model_validate(named), close)
    assert not any(found.values())
    assert set(found) == {"momentum", *(named if primary else ())}


def test_the_month_that_a_check_would_sell_by_is_held_against_the_buy() -> None:
    assert signals(TURNED, ExitTerms()) == {"momentum": True}
    assert signals(TURNED, ExitTerms.model_validate({"momentum": {"least_gap_pct": 5}})) == {
        "momentum": False
    }


async def test_on_real_prices_it_says_what_the_check_says_and_the_accounts_terms_count() -> None:
    market = market_of(Settings())
    (apple,) = await exits_at_entry(market, "AAPL", AS_OF, ExitTerms())
    assert (apple.rule, apple.triggered, apple.limit) == ("momentum", True, "least_gap_pct 0.5")
    (ibm,) = await exits_at_entry(market, "IBM", AS_OF, ExitTerms(basket=("AAPL", "NONE")))
    assert not ibm.triggered
    own = {"growth/AAPL": {"momentum": {"least_gap_pct": 9}}}
    calm = TermsFile.model_validate({"position": own})
    for account, fires in (("main", True), ("growth", False)):
        (apple,) = await exits_at_entry(market, "AAPL", AS_OF, calm.of(account, "AAPL"))
        assert apple.triggered is fires


async def test_a_file_that_was_never_good_has_no_terms_and_a_missing_one_the_defaults(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exit_terms, "SETTLED_S", SOON_S)
    path = tmp_path / "exit_signals.toml"
    exits = AccountExits(DeskExitRules(path), "main")
    assert await exits.of("AAPL") == ExitTerms()
    path.write_text("[default.momentum]\nleast_gap_pct = 2\n")
    terms = await exits.of("AAPL")
    assert terms == terms_in(path).of("main", "AAPL")
    assert terms is not None
    assert Decimal(str(terms.momentum.least_gap_pct)) == 2
    path.write_text("[default.trailing_stop]\npercent = 8\n")
    assert await exits.of("AAPL") == terms, "a running desk keeps the last good file"
    assert await AccountExits(DeskExitRules(path), "main").of("AAPL") is None


async def test_a_file_that_breaks_is_logged_once_a_change_and_the_last_good_one_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exit_terms, "SETTLED_S", SOON_S)
    path = tmp_path / "exit_signals.toml"
    path.write_text("[default]\nstop_pct = 8\n")
    rules = DeskExitRules(path)
    with log_lines() as logs:
        path.write_text("[default]\nstop_pct = 9\n[default")
        for _ in range(3):
            assert (await rules.read()).default.stop_pct == 8
        assert "exit_signals.toml cannot be used" in rules.note
        path.write_bytes(b"\xff\xfe\x00")
        assert (await rules.read()).default.stop_pct == 8
        path.write_text("[default]\nstop_pct = 9\n")
        for _ in range(2):
            assert (await rules.read()).default.stop_pct == 9
    assert not rules.note
    bad, good = "market.exit_rules_bad", "market.exit_rules_good_again"
    assert [line["event"] for line in logs] == [bad, bad, good]
    path.write_text("stop")
    with pytest.raises(BadExitTerms):
        await DeskExitRules(path).read()


@pytest.mark.parametrize("how", ["empty", "away", "half saved"])
async def test_rules_that_are_changed_for_a_moment_stand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    path, text = tmp_path / "exit_signals.toml", "[default]\nstop_pct = 8\nrest_shares_min = 9\n"
    path.write_text(text)
    rules = DeskExitRules(path)
    monkeypatch.setattr(exit_terms, "SETTLED_S", 1e9)
    monkeypatch.setattr(exit_terms, "WAIT_S", 0.0)

    def change() -> None:
        if how == "away":
            path.unlink()
        else:
            path.write_text("" if how == "empty" else text[: text.index("rest")])

    for _ in range(2):
        change()
        assert (await rules.read()).default.rest_shares_min == 9
        assert "it changed less than" in rules.note
        path.write_text(text)
        assert (await rules.read()).default.rest_shares_min == 9
        assert not rules.note
    change()
    await rules.read()
    monkeypatch.setattr(exit_terms, "SETTLED_S", 0.0)
    for _ in range(2):
        read = await rules.read()
        assert read.default.rest_shares_min != 9
        assert read.default.stop_pct == (8 if how == "half saved" else None)
    assert not rules.note


async def test_a_read_waits_until_changed_rules_have_settled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exit_terms, "SETTLED_S", SOON_S)
    path = tmp_path / "exit_signals.toml"
    path.write_text("[default]\nstop_pct = 8\n")
    rules = DeskExitRules(path)
    path.write_text("[default]\nstop_pct = 9\n")
    assert (await rules.read()).default.stop_pct == 9
    assert not rules.note
