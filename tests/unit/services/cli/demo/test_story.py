"""What the demo is filled with: designs of its own years, headlines that say what they are."""

import csv
from datetime import date, datetime

import pytest

from libs.llm.rules.lexicon import tone
from libs.report.strategies.files import spec_of
from services.cli.demo.filling import DESIGNED, DESIGNS
from services.cli.demo.market import HEADLINES, TICKERS, TODAY


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
