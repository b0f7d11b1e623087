"""What the demo is filled with: designs of its own years, headlines that say what they are."""

import csv
from datetime import date, datetime

import pytest

from libs.llm.rules.lexicon import tone
from libs.report.strategies.files import spec_of
from libs.runtime import extras
from services.cli.demo.filling import DESIGNED, DESIGNS, EXTRA
from services.cli.demo.market import HEADLINES, TICKERS, TODAY
from services.cli.demo.tour import of_the_study


@pytest.mark.parametrize("name", DESIGNED)
def test_a_design_is_tested_on_nothing_behind_the_demos_last_session(name: str) -> None:
    spec = spec_of((DESIGNS / f"{name}.yaml").read_text())
    assert spec.name == name
    assert {*spec.universe} <= {*TICKERS}
    assert spec.train is not None
    assert spec.held_out is not None
    assert spec.train.last is not None
    assert spec.train.last < spec.held_out.first
    assert spec.held_out.last is not None
    assert spec.held_out.last <= TODAY


def test_every_headline_says_that_it_is_synthetic_and_when_it_became_known() -> None:
    rows = list(csv.DictReader(HEADLINES.open(encoding="utf-8")))
    assert {row["ticker"] for row in rows} == {*TICKERS}
    for row in rows:
        assert row["title"].endswith(" [synthetic]")
        assert date(2009, 6, 1) < datetime.fromisoformat(row["known_at"]).date() < date(2010, 7, 1)
    tones = [tone(row["title"]) for row in rows]
    assert min(tones) < 0 < max(tones), "good news and bad news, or there is nothing to read"


def test_the_tour_promises_no_study_where_its_packages_are_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert "it fills in now" in of_the_study()
    monkeypatch.setattr(extras, "EXTRAS", {**extras.EXTRAS, EXTRA: "no_such_package"})
    assert "pip install 'deskbus[strategies]'" in of_the_study()
