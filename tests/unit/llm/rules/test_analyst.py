"""The analyst by rules: figures score by stated thresholds; what is not known scores nothing."""

import pytest

from contracts.reasons import Speaks
from libs.llm.provider import ToolEvidence
from libs.llm.rules.analyst import EARNINGS_DAYS, FILED_DAYS, _due, _finding
from libs.llm.rules.rule_set import EvidenceIndex

CALM = {"close": 120.0, "volatility_3m_pct": 15.0, "rsi_14": 50.0, "below_high_pct": 0.0}
GOOD = {
    "pe_ratio": 10.0,
    "profit_growth_pct": 30.0,
    "profit_margin_pct": 25.0,
    "debt_to_equity": 0.1,
}
POOR = {
    "pe_ratio": 50.0,
    "profit_growth_pct": -5.0,
    "profit_margin_pct": 1.0,
    "debt_to_equity": 3.0,
}


def known(figures: dict[str, float], *filings: tuple[str, int]) -> EvidenceIndex:
    facts: dict[str, float | str] = {f"A.{k}": v for k, v in {**CALM, **figures}.items()}
    facts |= {f"A.filing@2010-05-0{n}#x": text for n, (text, _) in enumerate(filings, 1)}
    items = [{"text": text, "age_days": age} for text, age in filings]
    result = {"ticker": "A", "items": items}
    return EvidenceIndex([ToolEvidence(id="E1", tool="get_filings", result=result)], facts)


@pytest.mark.parametrize(
    ("figures", "score"),
    [
        (GOOD, 10.0),
        (POOR, 0.0),
        ({"pe_ratio": 20.0}, 5.0),
        ({"pe_ratio": 20.0, "profit_growth_pct": 66.5}, 6.25),
        ({"profit_growth_pct": -1.0}, 3.75),
    ],
)
def test_each_figure_moves_the_score_by_its_threshold(
    figures: dict[str, float], score: float
) -> None:
    assert _finding("A", {}, known(figures)).fundamental_score == score


def test_no_data_is_no_score_and_never_the_worst() -> None:
    assert _finding("A", {}, known({})).fundamental_score is None
    assert _finding("A", {}, known({"shares_outstanding": 5.0})).fundamental_score is None


def test_a_filing_that_holders_have_to_fear_is_a_reason_and_a_risk() -> None:
    grave = "8-K: 4.02 earlier accounts cannot be relied on"
    before = _finding("A", {}, known({}, ("10-Q: quarterly report", 2)))
    found = _finding("A", {}, known({}, (grave, 2)))
    assert found.risk_score == before.risk_score + 2
    (reason,) = [each for each in found.reasons if "filing" in each.fact]
    assert (reason.speaks, reason.why) == (Speaks.AGAINST, "its accounts cannot be relied on")
    assert not [each for each in before.reasons if "filing" in each.fact]

    old = _finding("A", {}, known({}, (grave, FILED_DAYS + 1)))
    assert old.risk_score == before.risk_score


@pytest.mark.parametrize(
    ("days", "due"), [(-1, False), (0, True), (EARNINGS_DAYS, True), (EARNINGS_DAYS + 1, False)]
)
def test_a_report_that_is_due_within_a_week_speaks_against_buying(days: int, due: bool) -> None:
    reasons, _ = _due("A", known({"days_to_report": float(days)}))
    assert [reason.speaks for reason in reasons] == ([Speaks.AGAINST] if due else [])
