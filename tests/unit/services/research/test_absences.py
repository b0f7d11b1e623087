"""Three absences: the source has nothing, it did not answer, it was not looked up. Never mixed."""

import re
from datetime import date
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.facts import ReportAhead
from libs.facts.fact import FactIndex
from libs.facts.market import ToolAnswer, market_facts
from libs.llm.provider import ToolEvidence
from services.research.logic import finding_texts

DAY = "2023-11-03"
SEALED = {"ticker": "AAA", "source": "mine", "as_of": DAY}
HEADLINE = {
    "event": "headline-1a2b",
    "known_at": "2023-11-02T10:00:00+00:00",
    "title": "AAA opens a factory",
    "publisher": "Wire",
}
REPORT = {"event": "announced-9f", "known_at": DAY, "report_date": "2024-02-15"}
YEAR = {"known_at": "2023-11-01", "currency": "USD", "notes": [], "fiscal_year_end": "2023-09-30"}
ANSWERS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "get_news": ({"items": []}, {"items": [HEADLINE]}),
    "get_earnings": (
        {"upcoming": None, "last_reported": None},
        {"upcoming": REPORT, "last_reported": None},
    ),
    "get_fundamentals": (
        {"figures": None, "note": "source mine has no figures of AAA up to 2023-11-03"},
        {"figures": {**YEAR, "eps_ttm": 4.5}},
    ),
}
"""By tool: an answer that says nothing, and one that says something."""
SAYS_NONE = {
    "get_news": "source mine has no headlines of AAA up to 2023-11-03",
    "get_earnings": "source mine has no next report date of AAA up to 2023-11-03",
    "get_fundamentals": "source mine has no figures of AAA up to 2023-11-03",
}
OF_THE_WORLD = re.compile(r"nothing had been|none was known|known at as_of|\bno (headlines|report)")
"""Claims that a source cannot make: it knows what it has, not what there was."""
ERROR = {"error": {"code": "source_unavailable", "message": "the source is away"}}
AHEAD = ReportAhead(on=date(2024, 2, 15), sessions=70)
DONE = ("not asked", "nothing", "something", "error", "error about another")


def told(done: dict[str, str], report: ReportAhead | None = None) -> dict[str, str]:
    """The texts of a finding of AAA after each tool has done so."""
    evidence = []
    for tool, (nothing, something) in ANSWERS.items():
        result: dict[str, Any] = {
            "nothing": {**SEALED, **nothing},
            "something": {**SEALED, **something},
        }.get(done[tool], ERROR)
        about = "BBB" if done[tool] == "error about another" else "AAA"
        if done[tool] != "not asked":
            place = f"E{len(evidence)}"
            evidence.append(ToolEvidence(id=place, tool=tool, result=result, about=about))
    answers = [ToolAnswer(item.id, item.tool, item.result) for item in evidence]
    facts = FactIndex.of(market_facts(answers))
    texts = finding_texts("AAA", (), evidence, facts, report)
    return {name: text.text for name, text in texts.items()}


@given(
    st.fixed_dictionaries({tool: st.sampled_from(DONE) for tool in ANSWERS}),
    st.sampled_from([None, AHEAD]),
)
def test_no_sentence_claims_the_absence_of_what_is_on_record_or_was_not_looked_up(
    done: dict[str, str], report: ReportAhead | None
) -> None:
    texts = told(done, report)
    fields = dict(zip(ANSWERS, ("news_summary", "earnings_outlook", "summary"), strict=True))
    for tool, field in fields.items():
        text = texts[field]
        known = tool == "get_earnings" and report is not None
        says_none = SAYS_NONE[tool] in text
        assert OF_THE_WORLD.search(text.replace(SAYS_NONE[tool], "")) is None
        assert says_none == (done[tool] == "nothing" and not known), (tool, done[tool], text)
        assert ("not looked up" in text) == (
            done[tool] in ("not asked", "error about another") and not known
        )
        assert ("no answer: the source is away" in text) == (done[tool] == "error" and not known)
    if report is not None or done["get_earnings"] == "something":
        assert "next report" in texts["earnings_outlook"]


def test_what_was_looked_up_by_nobody_is_not_called_unreported() -> None:
    """Price and indicators alone were called; the source has figures and a report date."""
    texts = told(dict.fromkeys(ANSWERS, "not asked"), AHEAD)
    assert texts["earnings_outlook"] == "next report on 2024-02-15"
    assert texts["summary"] == "no reason was given. Fundamentals: not looked up."
    assert texts["news_summary"] == "news not looked up"


@pytest.mark.parametrize("figures", [{**YEAR}, {**YEAR, "eps_fiscal_year": 4.5}])
def test_figures_that_are_none_of_the_usual_are_not_called_unreported(
    figures: dict[str, Any],
) -> None:
    result = {"ticker": "AAA", "figures": figures}
    evidence = [ToolEvidence(id="E0", tool="get_fundamentals", result=result, about="AAA")]
    facts = FactIndex.of(market_facts([ToolAnswer("E0", "get_fundamentals", result)]))
    text = finding_texts("AAA", (), evidence, facts)["summary"].text
    assert "what was reported has none of the usual figures" in text
